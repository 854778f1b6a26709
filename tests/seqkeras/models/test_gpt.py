import keras
import numpy as np
import pytest

from seqkeras.decoding import beam, greedy
from seqkeras.models import GPT, presets
from tests import vectors
from tests.agreement import (
    DTYPES,
    arrays_of,
    assert_agrees,
    count_parameters,
)
from tests.arrays import close, needs_tensorflow, numbers, randomize
from tests.catalogue import call, options_long
from tests.catalogue.case import B
from tests.catalogue.transformer_models import GPTS
from tests.conftest import others_long
from tests.seqkeras.decoding import test_recompute as recompute
from tests.seqkeras.models.support import losses_by_heart

SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
STORED = vectors.load("transformer")
every_model = options_long(GPTS)


def logits_of(layer, given):
    return layer({"token_ids": given["token_ids"]})


@pytest.mark.parametrize("dtype", DTYPES)
def test_gpt2_agrees_with_hugging_face(dtype):
    arrays = arrays_of(STORED, "gpt2", dtype)
    assert_agrees(lambda: GPT(17, **SIZES, max_length=13), arrays, dtype, logits_of)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gpt1_agrees_with_hugging_face(dtype):
    sizes = SIZES | {"feed_forward_dim": 24}
    arrays = arrays_of(STORED, "gpt1", dtype)
    assert_agrees(lambda: GPT(17, **sizes, max_length=13, pre_norm=False), arrays, dtype, logits_of)


def test_published_sizes_have_the_published_number_of_parameters():
    assert count_parameters(GPT(**presets.GPT2_SMALL)) == 124_439_808
    assert count_parameters(GPT(**presets.GPT2_XL)) == 1_557_611_200
    assert count_parameters(GPT(**presets.GPT1)) == 116_534_784


@every_model
def test_step_by_step_is_all_at_once(case):
    model, inputs = case.build(), case.inputs()
    token_ids, logits = inputs["token_ids"], []
    state = model.initial_state(B)
    for t in range(token_ids.shape[1]):
        (step_logits,), state = model.step(token_ids[:, t : t + 1], state)
        logits.append(numbers(step_logits))
    close(np.concatenate(logits, axis=1), call(model, inputs), rtol=1e-4, atol=1e-5)


@every_model
def test_text_is_read_in_pieces(case):
    model, token_ids = case.build(), case.inputs()["token_ids"]
    lengths = np.array([3, 2])
    _, state = model.read(token_ids[:, :3], lengths)
    logits, _ = model.read(token_ids[:, 3:5], state=state)
    for row, length in enumerate(lengths):
        text = np.concatenate([token_ids[row, :length], token_ids[row, 3:5]])[None]
        close(logits[row], model({"token_ids": text})[0, length:], rtol=1e-4, atol=1e-5)


@every_model
def test_no_text_is_read_too(case):
    """One token is all there is before it, where the last one starts the decoding."""
    model, token_ids = case.build(), case.inputs()["token_ids"]
    for before in (None, model.read(token_ids[:, :3])[1]):
        logits, state = model.read(token_ids[:, :0], state=before)
        assert logits.shape == (B, 0, model.config["vocab_size"])
        before = model.initial_state(B) if before is None else before
        close(list(state.values()), list(before.values()))


def test_a_cache_too_small_for_the_tokens_is_refused_before_the_first_one():
    model = GPTS[0].build()
    options = {"start_id": 1, "end_id": 2, "state_entries": model.state_entries}
    message = (
        "^decode: the state must have room for max_length, {}, tokens; key_0 has 7 places, and {} "
        r"of them are taken\.$"
    )
    with pytest.raises(ValueError, match=message.format(8, 0)):
        greedy(model.step, model.initial_state(B, 7), **options, max_length=8)
    _, state = model.read(np.ones((B, 3), "int32"), state=model.initial_state(B, 7))
    with pytest.raises(ValueError, match=message.format(5, 3)):
        beam(model.step, state, **options, max_length=5, num_beams=3)
    token_ids, _, _ = greedy(model.step, state, **options, max_length=4)
    assert token_ids.shape == (B, 4)


@every_model
def test_the_state_is_what_the_entries_say(case):
    model = case.build()
    state = model.initial_state(B, 11)
    assert list(state) == [entry.name for entry in model.state_entries]
    for entry in model.state_entries:
        shape = tuple(11 if size == "cache_length" else size for size in entry.shape)
        assert state[entry.name].shape == (B, 1, *shape)


@pytest.mark.parametrize("pre_norm", others_long([True, False]))
def test_decoding_with_the_cache_is_decoding_without_it(pre_norm):
    vocab_size, max_length = recompute.VOCAB_SIZE, recompute.MAX_LENGTH
    model = GPT(vocab_size, **SIZES, max_length=max_length, pre_norm=pre_norm)
    model({"token_ids": recompute.SOURCES % vocab_size})
    randomize(model)

    def all_logits(rows, token_ids, sources):
        return model({"token_ids": token_ids})

    step, state, entries = recompute.recomputing(all_logits)
    options = {"start_id": 1, "end_id": 2, "max_length": max_length, "prompt": recompute.PROMPT}
    for search, extra in ((greedy, {}), (beam, {"num_beams": 3, "n_best": 2})):
        cached = search(
            model.step,
            model.initial_state(3, max_length),
            state_entries=model.state_entries,
            **options,
            **extra,
        )
        anew = search(step, state, state_entries=entries, **options, **extra)
        for one, other in zip(cached[:2], anew[:2], strict=True):
            np.testing.assert_array_equal(numbers(one), numbers(other))
        close(cached[2], anew[2], rtol=1e-4, atol=1e-4)


@needs_tensorflow
def test_a_graph_decodes_batches_of_any_size():
    import tensorflow as tf

    model = GPTS[0].build()

    @tf.function(input_signature=[tf.TensorSpec([None], "int32")], autograph=False)
    def graph(start_id):
        state = model.initial_state(tf.shape(start_id)[0], 7)
        return greedy(model.step, state, start_id=start_id, end_id=2, max_length=7)

    for size in (1, 3):
        start_id = np.arange(3, 3 + size, dtype="int32")
        state = model.initial_state(size, 7)
        expected = greedy(model.step, state, start_id=start_id, end_id=2, max_length=7)
        close(graph(start_id), expected, atol=1e-5)


@needs_tensorflow
def test_a_graph_refuses_a_cache_that_is_too_small_while_it_is_traced():
    import tensorflow as tf

    model = GPTS[0].build()

    @tf.function(autograph=False)
    def graph(start_id):
        options = {"end_id": 2, "max_length": 8, "state_entries": model.state_entries}
        return greedy(model.step, model.initial_state(2, 7), start_id=start_id, **options)

    with pytest.raises(ValueError, match="decode: the state must have room for max_length, 8, tok"):
        graph(tf.constant([1, 3]))


@pytest.mark.long
def test_a_line_is_learned_by_heart():
    keras.utils.set_random_seed(0)
    text = "the cat sat on the mat and the dog sat on the log\n"
    letters = sorted(set(text))
    token_ids = np.array([[letters.index(each) for each in text]])
    model = GPT(len(letters), 24, 2, 3, 48, max_length=len(text))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    inputs, targets = {"token_ids": token_ids[:, :-1]}, token_ids[:, 1:]
    _, last = losses_by_heart(model, inputs, targets, loss, steps=120, learning_rate=1e-2)
    assert last < 0.02
    state = model.initial_state(1, len(text) - 1)
    options = {"start_id": int(token_ids[0, 0]), "end_id": letters.index("\n")}
    found, _, _ = greedy(model.step, state, **options, max_length=len(text) - 1)
    assert text[0] + "".join(letters[each] for each in numbers(found)[0]) == text


def test_a_model_that_was_never_called_reads():
    model, token_ids = GPT(17, **SIZES, max_length=7), np.array([[3, 8, 16]])
    logits, _ = model.read(token_ids)
    close(logits, model({"token_ids": token_ids}))


def test_a_model_that_was_never_called_reads_from_a_state():
    state = GPT(17, **SIZES, max_length=5).initial_state(2)
    logits, _ = GPT(17, **SIZES, max_length=5).read(np.array([[3, 5], [4, 7]]), state=state)
    assert logits.shape == (2, 2, 17)


def test_a_state_of_another_model_is_refused():
    state = GPT(17, **SIZES, max_length=5).initial_state(2)
    state.pop("position")
    with pytest.raises(ValueError, match="^GPT: the state must hold what initial_state gives"):
        GPT(17, **SIZES, max_length=5).read(np.array([[3], [4]]), state=state)


def test_a_sequence_beyond_the_learned_positions_is_refused():
    model = GPT(17, **SIZES, max_length=5)
    message = r"LearnedPositions: a sequence must have at most max_length, 5, positions; received 6"
    with pytest.raises(ValueError, match=message):
        model({"token_ids": np.ones((2, 6), "int32")})
    message = r"^GPT: a sequence must have from 1 to max_length, 5, positions; received 6\.$"
    with pytest.raises(ValueError, match=message):
        model.initial_state(2, 6)


def test_an_id_beyond_the_vocabulary_is_refused():
    message = r"TokenEmbedding: token_ids must be from 0 to 16, as vocab_size is 17; received 17\."
    with pytest.raises(ValueError, match=message):
        GPT(17, **SIZES, max_length=5)({"token_ids": np.array([[3, 17]])})


def test_beams_without_a_token_are_refused():
    model = GPT(11, 6, 1, 3, 7, max_length=5)
    message = r"^GPT: token_ids must hold at least one token of every beam; .* \(2, 1, 0\)\.$"
    with pytest.raises(ValueError, match=message):
        model.read_beams(np.zeros((2, 1, 0), int), model.initial_state(2))


def test_heads_that_do_not_divide_the_width_are_refused():
    message = r"^GPT: num_heads must divide hidden_dim; received num_heads=5, hidden_dim=6\.$"
    with pytest.raises(ValueError, match=message):
        GPT(17, **SIZES | {"num_heads": 5}, max_length=5)


def test_the_last_kernels_of_gpt2s_sublayers_start_smaller():
    """Of normal numbers: 0.02 at first, scaled by one over the root of their number."""
    for pre_norm in (True, False):
        model = GPT(17, 60, 2, 3, 120, max_length=13, pre_norm=pre_norm)
        model.build(None)
        for block in model.decoder.blocks:
            kernels = block.attention.output_kernel, block.feed_forward.outer.kernel
            for kernel, columns in zip(kernels, (60, 120), strict=True):
                glorot = (2 / (60 + columns)) ** 0.5
                expected = 0.02 / 4**0.5 if pre_norm else glorot
                if pre_norm or kernel.shape == (120, 60):  # 3600 numbers at least
                    assert np.std(numbers(kernel)) == pytest.approx(expected, rel=0.05)
