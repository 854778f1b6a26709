import numpy as np
import pytest

from seqkeras.decoding import beam, greedy
from seqkeras.models import GPT, presets
from tests import vectors
from tests.agreement import DTYPES, arrays_of, assert_agrees, count_parameters
from tests.arrays import close, numbers
from tests.catalogue import options_long
from tests.catalogue.case import B
from tests.catalogue.transformer_models import GPTS
from tests.conftest import others_long
from tests.refusals import refusals
from tests.seqkeras.decoding.toys import compiled

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


COUNTS = {"GPT2_SMALL": 124_439_808, "GPT1": 116_534_784, "GPT2_XL": 1_557_611_200}


@pytest.mark.parametrize("name, count", others_long(COUNTS.items()))
def test_published_sizes_have_the_published_number_of_parameters(name, count):
    assert count_parameters(GPT(**getattr(presets, name))) == count


@every_model
def test_text_is_read_in_pieces(case):
    model, token_ids = case.built(), case.inputs()["token_ids"]
    lengths = np.array([3, 2])
    _, state = model.read(token_ids[:, :3], lengths)
    logits, _ = model.read(token_ids[:, 3:5], state=state)
    for row, length in enumerate(lengths):
        text = np.concatenate([token_ids[row, :length], token_ids[row, 3:5]])[None]
        close(logits[row], model({"token_ids": text})[0, length:], rtol=1e-4, atol=1e-5)


@every_model
def test_no_text_is_read_too(case):
    """One token is all there is before it, where the last one starts the decoding."""
    model, token_ids = case.built(), case.inputs()["token_ids"]
    for before in (None, model.read(token_ids[:, :3])[1]):
        logits, state = model.read(token_ids[:, :0], state=before)
        assert logits.shape == (B, 0, model.config["vocab_size"])
        before = model.initial_state(B) if before is None else before
        close(list(state.values()), list(before.values()))


def test_a_cache_too_small_for_the_tokens_is_refused_before_the_first_one():
    model = GPTS[0].built()
    options = {"start_id": 1, "end_id": 2, "state_entries": model.state_entries}
    message = (
        "^decode: the state must have room for max_length, {}, tokens; key_0 has 7 places, and {} "
        r"of them are taken\.$"
    )

    def generate(start_id):
        given = options | {"start_id": start_id, "max_length": 8}
        return greedy(model.step, model.initial_state(B, 7), **given)

    start_id = np.array([1, 3], "int32")
    for call in (generate, lambda start_id: compiled(generate, start_id)):
        with pytest.raises(ValueError, match=message.format(8, 0)):
            call(start_id)
    _, state = model.read(np.ones((B, 3), "int32"), state=model.initial_state(B, 7))
    with pytest.raises(ValueError, match=message.format(5, 3)):
        beam(model.step, state, **options, max_length=5, num_beams=3)
    token_ids, _, _ = greedy(model.step, state, **options, max_length=4)
    assert token_ids.shape == (B, 4)


def test_more_tokens_than_positions_are_refused_though_a_window_has_room_for_them():
    model = GPT(17, 6, 1, 3, 11, max_length=7, attention_window=2)
    model.build()
    message = "the model must have a position for each of max_length, 8, tokens; it has 7, and 0 "
    with pytest.raises(ValueError, match=message):
        greedy(model.step, model.initial_state(B), start_id=1, end_id=2, max_length=8)


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


def small():
    return GPT(17, **SIZES, max_length=5)


def without_position():
    state = small().initial_state(2)
    state.pop("position")
    return state


test_what_can_not_be_read_is_refused = refusals(
    (
        lambda: small().read(np.array([[3], [4]]), state=without_position()),
        "GPT: the state must hold what initial_state gives",
    ),
    (lambda: small().initial_state(2, 6), "GPT: a sequence must have from 1 to max_length, 5, pos"),
    (
        lambda: small().read_beams(np.zeros((2, 1, 0), int), small().initial_state(2)),
        "GPT: token_ids must hold at least one token of every beam; ... (2, 1, 0).",
    ),
)
