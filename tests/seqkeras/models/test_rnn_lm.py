import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.decoding import greedy
from seqkeras.models import RNNLanguageModel
from tests import references
from tests.agreement import DTYPES
from tests.arrays import close, needs_tensorflow, numbers, right_padded
from tests.catalogue import models
from tests.catalogue.case import B, S
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long
from tests.references.language_models import rnn_language_model
from tests.seqkeras.models.support import compiled, losses_by_heart

SIZES = {"vocab_size": 17, "embedding_dim": 7, "units": 11}
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
named_cells = pytest.mark.parametrize(
    "case",
    others_long(models.PAST_LANGUAGE + models.LANGUAGE, 2),
    ids=lambda case: case.name,
)
every_model = pytest.mark.parametrize(
    "case",
    others_long(models.PAST_LANGUAGE + models.LANGUAGE + models.ANY_CELL_LANGUAGE),
    ids=lambda case: case.name,
)


def weights_of(model):
    named = {
        "E": model.embedding.embeddings,
        "layers": [layer.weights for layer in model.stack.recurrent_layers],
    }
    if model.output_layer is not None:
        named["output"] = model.output_layer.weights
    if model.projection is not None:
        [named["projection"]] = model.projection.weights
    if model.attention is not None:
        named["attention"] = model.attention.weights
    return named


def expected_logits(model, weights, inputs):
    mask = right_padded(inputs["lengths"], S)
    cell = model.get_config()["cell"]
    past = model.attention and (model.attention.window, model.attention.num_parts)
    return rnn_language_model(inputs["token_ids"], mask, cell, **weights, past=past)


@named_cells
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_and_gradients_are_the_papers_formula(case, dtype):
    assert_equals_loops(case.build, dtype, case.inputs(), weights_of, expected_logits)


@every_model
def test_without_lengths_every_step_is_real(case):
    model, inputs = case.build(), case.inputs()
    token_ids = inputs["token_ids"]
    lengths = np.array([S, S])
    close(model({"token_ids": token_ids}), model({"token_ids": token_ids, "lengths": lengths}))


def test_tied_weights_add_a_projection_only_where_sizes_differ():
    def shapes(**options):
        model = RNNLanguageModel(**SIZES | options, cell="simple_rnn")
        model(models.LANGUAGE[0].inputs())
        return [weight.shape for weight in model.weights[4:]]

    assert shapes() == [(11, 17), (17,)]
    assert shapes(tie_weights=True) == [(11, 7)]
    assert shapes(tie_weights=True, units=7) == []


@every_model
def test_a_text_read_in_pieces_is_the_text_read_at_once(case):
    model, inputs = case.build(), case.inputs()
    token_ids, lengths = inputs["token_ids"], inputs["lengths"]
    whole, end = model.read(token_ids, lengths)
    first, state = model.read(token_ids[:, :3])
    second, state = model.read(token_ids[:, 3:], lengths - 3, state)
    close(ops.concatenate([first, second], axis=1), whole)
    close(state, end)


@every_model
def test_the_state_is_that_behind_the_last_real_token(case):
    model, inputs = case.build(), case.inputs()
    _, state = model.read(**inputs)
    for row, length in enumerate(inputs["lengths"]):
        _, alone = model.read(inputs["token_ids"][row : row + 1, :length])
        close({name: each[row : row + 1] for name, each in state.items()}, alone)


@every_model
def test_a_model_step_by_step_is_all_at_once(case):
    model, inputs = case.build(), case.inputs()
    state, logits = model.initial_state(B), []
    for t in range(S):
        (step_logits,), state = model.step(inputs["token_ids"][:, t : t + 1], state)
        logits.append(step_logits)
    close(ops.concatenate(logits, axis=1), model({"token_ids": inputs["token_ids"]}))


@every_model
def test_beams_do_not_meet(case):
    model, token_ids = case.build(), case.inputs()["token_ids"][:, :3]
    _, start = model.read(token_ids)
    state = {
        name: ops.concatenate([each] * 3 if name == "real" else [each, 2 * each, -each], 1)
        for name, each in start.items()
    }
    (logits,), new_state = model.step(token_ids, state)
    for beam in range(3):
        alone = {name: each[:, beam : beam + 1] for name, each in state.items()}
        (one,), one_state = model.step(token_ids[:, beam : beam + 1], alone)
        close(one, logits[:, beam : beam + 1])
        close(one_state, {name: each[:, beam : beam + 1] for name, each in new_state.items()})


@every_model
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_the_state_is_what_the_entries_say(case, policy):
    config = case.make().get_config() | {"dtype": policy}
    model = RNNLanguageModel.from_config(config)
    state = model.initial_state(B)
    _, after = model.step(case.inputs()["token_ids"][:, :1], state)
    _, read = model.read(**case.inputs())
    for each in (state, after, read):
        assert list(each) == [entry.name for entry in model.state_entries]
        for entry in model.state_entries:
            assert entry.per == "beam"
            assert each[entry.name].shape == (B, 1, *entry.shape)
            assert keras.backend.standardize_dtype(each[entry.name].dtype) == entry.dtype


def test_greedy_decoding_is_the_arg_max_of_reading_everything_again():
    model = models.LANGUAGE[2].build()

    def logits(row, prefix):
        return numbers(model({"token_ids": np.array([prefix])}))[0, -1]

    token_ids, lengths, scores = greedy(
        model.step, model.initial_state(1), start_id=1, end_id=2, max_length=7
    )
    expected_ids, expected_score = references.greedy(logits, 0, 1, 2, 7)
    assert numbers(token_ids)[0, : len(expected_ids)].tolist() == expected_ids
    assert numbers(lengths).tolist() == [len(expected_ids)]
    close(scores, [expected_score])


def test_dropout_drops_in_training_only_and_never_the_states():
    model = RNNLanguageModel(**SIZES, dropout=0.5)
    inputs = models.LANGUAGE[0].inputs()
    close(model(inputs), model(inputs, training=False))
    assert np.abs(numbers(model(inputs, training=True)) - numbers(model(inputs))).max() > 0.01
    model.embedding.set_weights([np.zeros((17, 7))])  # then there is nothing else to drop
    layer = model.stack.recurrent_layers[0]
    layer.set_weights([weight + 0.1 for weight in layer.get_weights()])
    close(model.read(**inputs, training=True)[1], model.read(**inputs)[1])


@pytest.mark.parametrize("name", [*SIZES, "num_layers"])
def test_a_size_under_one_is_refused(name):
    message = rf"^RNNLanguageModel: {name} must be a positive integer; received 0\.$"
    with pytest.raises(ValueError, match=message):
        RNNLanguageModel(**{**SIZES, name: 0})


def test_an_unknown_cell_is_refused():
    message = (
        r"^RNNLanguageModel: cell must be one of \['gru', 'lstm', 'qrnn', 'simple_rnn'\], .* 'q'\.$"
    )
    with pytest.raises(ValueError, match=message):
        RNNLanguageModel(**SIZES, cell="q")


@needs_tensorflow
def test_a_model_learns_a_batch_by_heart():
    keras.utils.set_random_seed(0)
    token_ids = models.ids(17, 7)
    inputs = {"token_ids": token_ids[:, :-1], "lengths": np.array([6, 4])}
    targets = np.where(right_padded([6, 4], 6), token_ids[:, 1:], 0)
    model = RNNLanguageModel(17, 11, 11, cell="gru", tie_weights=True)
    first, last = losses_by_heart(model, inputs, targets, LOSS, 60, 0.05)
    assert first > 2 and last < 0.05


def brackets(random, rows, length=23, kinds=3):
    """(rows, length) balanced so far: 1 to 3 open, 4 to 6 close; at most four are open at once."""
    token_ids = np.zeros((rows, length), int)
    for row in token_ids:
        opened = []
        for t in range(length):
            if opened and (len(opened) == 4 or random.random() < 0.5):
                row[t] = opened.pop() + kinds
            else:
                opened.append(random.integers(1, kinds + 1))
                row[t] = opened[-1]
    return token_ids


@pytest.mark.long
@needs_tensorflow
def test_an_lstm_learns_which_bracket_closes():
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    seen, unseen = brackets(random, 2048), brackets(random, 256)
    inputs = {"token_ids": seen[:, :-1]}
    model = compiled(RNNLanguageModel(7, 16, 32), inputs, LOSS, 0.02)
    model.fit(inputs, seen[:, 1:], batch_size=32, epochs=4, verbose=0)
    logits = numbers(model({"token_ids": unseen[:, :-1]}))
    closes = unseen[:, 1:] > 3
    chosen = logits[..., 4:].argmax(axis=-1) + 4
    assert np.mean(chosen[closes] == unseen[:, 1:][closes]) > 0.98


def test_an_attention_that_does_not_fit_is_refused():
    message = r"^RNNLanguageModel: attention must be one of \['key_value', .*; received 'hard'\.$"
    with pytest.raises(ValueError, match=message):
        RNNLanguageModel(**SIZES, attention="hard")
    message = (
        r"^RNNLanguageModel: units must be a multiple of 3 with attention 'key_value_predict'; "
        r"received 11\.$"
    )
    with pytest.raises(ValueError, match=message):
        RNNLanguageModel(**SIZES, attention="key_value_predict")
