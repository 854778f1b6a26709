"""What chooses tokens in `serving.decoding` does as its namesake in `seqkeras.decoding` does."""

import dataclasses
from inspect import signature

import numpy as np
import pytest
from keras import ops

import seqkeras.decoding
import seqkeras.serving.decoding
from seqkeras.decoding.sampling import inverse_cdf
from seqkeras.serving.decoding.choosing import inverse_cdf as serving_inverse_cdf
from seqkeras.serving.decoding.choosing import log_softmax
from seqkeras.serving.decoding.processors import MOST_OF_A_NUCLEUS
from seqkeras.serving.manifest import DecodingDefaults
from seqkeras.serving.pipelines import Translate
from seqkeras.serving.pipelines.options import Options
from tests.arrays import close, floats, numbers
from tests.seqkeras.decoding.toys import process

B, K, T, V = 2, 3, 5, 11
PROCESSORS = [
    ("Temperature", (0.3,)),
    ("TopK", (1,)),
    ("TopK", (4,)),
    ("TopK", (50,)),
    ("TopP", (1e-9,)),
    ("TopP", (0.6,)),
    ("TopP", (0.999,)),
    ("TopP", (1,)),
    ("RepetitionPenalty", (1.7,)),
    ("RepetitionPenalty", (0.4,)),
    ("BannedTokens", ((0, 7, 10),)),
    ("MinLength", (5, 3)),
    ("MinLength", (6, 3)),
    ("MinLength", (7, 3)),
    ("ForcedToken", (4, 5)),
    ("ForcedToken", (4, 2)),
]


@pytest.mark.parametrize("name, arguments", PROCESSORS, ids=str)
def test_processors_do_as_their_namesakes(name, arguments):
    token_ids = np.random.default_rng(0).integers(0, V, (B, K, T))
    logits = 2 * floats(B, K, V)
    logits[0, 1, ::2] = -np.inf  # banned before
    logits[1, 2] = 1.0  # all equal
    expected = process(getattr(seqkeras.decoding, name)(*arguments), logits, token_ids, T)
    prefix = seqkeras.serving.decoding.Prefix(token_ids, np.arange(B), np.full(B, T))
    before = logits.copy()
    actual = getattr(seqkeras.serving.decoding, name)(*arguments)(logits, prefix)
    np.testing.assert_array_equal(logits, before)
    close(actual, expected)


@pytest.mark.parametrize("scale", [0.5, 6.0])  # a nucleus of most tokens, and of a few
def test_a_nucleus_of_a_large_vocabulary_is_the_same(scale):
    logits = scale * floats(B, K, 1511)
    token_ids = np.zeros((B, K, T), "int64")
    expected = process(seqkeras.decoding.TopP(0.9), logits, token_ids, T)
    assert ((expected > -np.inf).sum(axis=-1) > MOST_OF_A_NUCLEUS).all() == (scale < 1)
    prefix = seqkeras.serving.decoding.Prefix(token_ids, np.arange(B), np.full(B, T))
    close(seqkeras.serving.decoding.TopP(0.9)(logits, prefix), expected)


def test_no_processor_is_left_out():
    runtime = seqkeras.serving.decoding
    classes = {name for name, value in vars(runtime).items() if isinstance(value, type)}
    names = {name for name in classes if hasattr(seqkeras.decoding, name)}
    assert names - {"Prefix", "Constraint", "Search"} == {name for name, _ in PROCESSORS}


def test_an_option_of_beam_search_has_one_name_from_library_to_manifest():
    beam = {*signature(seqkeras.decoding.beam).parameters}
    options = {"num_beams", "n_best", "length_penalty", "early_stopping"}
    for function in (seqkeras.serving.decoding.results_of, Translate.__call__, Options):
        assert options == beam & {*signature(function).parameters} - {"step", "state", "end_id"}
    fields = {field.name for field in dataclasses.fields(DecodingDefaults)}
    assert fields - {"regex"} <= beam  # which the runtime alone has


def test_an_option_of_sampling_has_one_name():
    sample = {*signature(seqkeras.decoding.sample).parameters}
    options = {"temperature", "top_k", "top_p", "seed"}
    assert options == sample & {*signature(Options).parameters}


def test_the_same_numbers_draw_the_same_tokens():
    logits = 3 * floats(101, V)
    logits[::3, ::2] = -np.inf
    uniform = np.random.default_rng(1).random(101).astype("float32")
    uniform[:3] = 0, 1 - 2**-24, 0.5
    log_probs = log_softmax(logits)
    expected = inverse_cdf(ops.convert_to_tensor(log_probs), ops.convert_to_tensor(uniform))
    drawn = serving_inverse_cdf(log_probs, uniform)
    np.testing.assert_array_equal(drawn, numbers(expected))
    assert (np.take_along_axis(logits, drawn[:, None], axis=1) > -np.inf).all()


@pytest.mark.parametrize("k", [1, 2, 5, 11, 99])
def test_the_most_probable_come_first_and_of_equal_ones_the_lower_id(k):
    for log_probs in (floats(7, 3, V), np.round(floats(7, 3, V))):  # without ties and with many
        log_probs[0, 0, :4] = np.nan
        found = seqkeras.serving.decoding.most_probable(log_probs, k)
        for row, best in zip(log_probs.reshape(-1, V), found.token_ids.reshape(21, -1)):
            value = np.where(np.isnan(row), -np.inf, row)
            assert best.tolist() == sorted(range(V), key=lambda i: (-value[i], i))[:k]
