import numpy as np
from keras import ops

from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats, numbers
from tests.catalogue import call, frames, models, options_long, seq2seq
from tests.catalogue.case import B, S
from tests.catalogue.recurrent import BIDIRECTIONAL, RECURRENT
from tests.catalogue.transformer_models import GPTS, TRANSFORMERS

TRANSLATORS = [*seq2seq.CASES, *TRANSFORMERS, *frames.CASES]
LANGUAGE = [*models.LANGUAGE, *models.PAST_LANGUAGE, *models.ANY_CELL_LANGUAGE, *GPTS]
CACHE = 13  # `max_length` of a Transformer
NEAR = {"rtol": 1e-4, "atol": 1e-5}


def steps_of(cell, sequences, mask, states, backwards=False):
    """The cell in a Python loop: (B, S, U) outputs and the final states."""
    outputs = [None] * S
    for t in reversed(range(S)) if backwards else range(S):
        output, new_states = cell(sequences[:, t], states)
        real = mask[:, t, None]
        states = [ops.where(real, new, old) for new, old in zip(new_states, states)]
        outputs[t] = ops.where(real, output, 0.0)
    return ops.stack(outputs, axis=1), states


def begun(model, inputs):
    """The state before the first token, and the tokens that a step reads."""
    if "target_ids" not in inputs:
        return numbers(model.initial_state(B)), inputs["token_ids"]
    source = inputs["frames" if "frames" in inputs else "token_ids"]
    return numbers(model.encode(source, inputs["lengths"])), inputs["target_ids"]


def sizes(model, entry, inputs):
    """The shape of an entry of the state, without the axes of rows and beams."""
    source = inputs.get("frames", inputs.get("token_ids"))
    known = {"source_length": source.shape[1], "cache_length": CACHE}
    known["window_length"] = model.get_config().get("attention_window")
    return tuple(known.get(size, size) for size in entry.shape)


@options_long(RECURRENT)
def test_a_layer_is_its_cell_step_by_step(case):
    layer, inputs = case.built(), case.inputs()
    states = [floats(B, size, seed=index) for index, size in enumerate(layer.cell.state_size)]
    outputs, *final_states = call(layer, inputs | {"initial_state": states})
    expected, expected_states = steps_of(layer.cell, **inputs, states=states)
    close([outputs, *final_states], [expected, *expected_states])


@options_long(BIDIRECTIONAL)
def test_a_bidirectional_layer_is_two_cells_step_by_step(case):
    layer, inputs = case.built(), case.inputs()
    halves, states = [], []
    for one, backwards in ((layer.forward_layer, False), (layer.backward_layer, True)):
        start = one.cell.get_initial_state(B)
        half, final = steps_of(one.cell, **inputs, states=start, backwards=backwards)
        halves.append(half)
        states += final
    close(list(call(layer, inputs)), [ops.concatenate(halves, axis=-1), *states])


@options_long(TRANSLATORS + LANGUAGE)
def test_a_model_step_by_step_is_all_at_once(case):
    model, inputs = case.built(), case.inputs()
    (state, token_ids), logits = begun(model, inputs), []
    for t in range(token_ids.shape[1]):
        (step_logits, *_), state = model.step(token_ids[:, t : t + 1], state)
        logits.append(step_logits)
    given = inputs if case in TRANSLATORS else {"token_ids": token_ids}
    expected = numbers(call(model, given))
    expected[..., list(getattr(model, "never_generated", ()))] = BANNED_LOGIT
    close(ops.concatenate(logits, axis=1), expected, **NEAR)


@options_long(TRANSLATORS + LANGUAGE)
def test_beams_do_not_meet(case):
    model, inputs = case.built(), case.inputs()
    (start, _), K = begun(model, inputs), 3
    beams = {
        entry.name: _of_type(
            3 * floats(B, K, *sizes(model, entry, inputs), seed=place), entry.dtype
        )
        for place, entry in enumerate(model.state_entries)
        if entry.per == "beam"
    }
    state = start | beams
    token_ids = np.array([[3, 4, 5], [6, 7, 8]])
    outputs, new_state = model.step(token_ids, state)
    for beam in range(K):
        alone = state | {name: state[name][:, beam : beam + 1] for name in beams}
        one, one_state = model.step(token_ids[:, beam : beam + 1], alone)
        close(one, [each[:, beam : beam + 1] for each in outputs], **NEAR)
        for name in beams:
            close(one_state[name], new_state[name][:, beam : beam + 1], **NEAR)


def _of_type(array, dtype):
    if dtype == "bool":
        return array > 0
    return np.abs(array).astype(dtype) if "int" in dtype else array.astype(dtype)


@options_long(TRANSLATORS)
def test_the_state_is_what_the_entries_say(case):
    model, inputs = case.built(), case.inputs()
    state, token_ids = begun(model, inputs)
    assert list(state) == [entry.name for entry in model.state_entries]
    _, after = model.step(token_ids[:, :1], state)
    for each in (state, numbers(after)):
        for entry in model.state_entries:
            leading = (B, 1) if entry.per == "beam" else (B,)
            assert each[entry.name].shape == leading + sizes(model, entry, inputs)
            assert each[entry.name].dtype == entry.dtype
