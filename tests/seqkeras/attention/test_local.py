import numpy as np
import pytest

from seqkeras.attention import AdditiveScore, GeneralScore, LocalAttention
from tests import references
from tests.arrays import close, floats, numbers
from tests.catalogue.attention import attention_inputs, padding_inputs, positioned_inputs
from tests.complex_step import assert_is_the_formula


def monotonic():
    return LocalAttention(GeneralScore(), window=1)


def monotonic_reference(weights, query, key, value, attention_mask=None, positions=None):
    scores = references.general_score(query, key, *weights)
    centers = np.broadcast_to(np.arange(3), (2, 3)) if positions is None else positions
    return references.local_attention(scores, value, 1, centers, attention_mask)


def predictive():
    return LocalAttention(AdditiveScore(17), window=2, kind="predictive")


def predictive_reference(weights, query, key, value, attention_mask=None):
    *position_weights, query_kernel, key_kernel, scale = weights
    scores = references.additive_score(query, key, query_kernel, key_kernel, scale)
    real_keys = np.full((2, 3), 5) if attention_mask is None else attention_mask.sum(axis=-1)
    centers = references.predicted_positions(query, real_keys, *position_weights)
    return references.local_attention(scores, value, 2, centers, attention_mask, gaussian=True)


def unmasked(inputs):
    return {name: each for name, each in inputs.items() if name != "attention_mask"}


CASES = {
    "monotonic": (monotonic, attention_inputs, monotonic_reference),
    "positions": (monotonic, positioned_inputs, monotonic_reference),
    "predictive": (predictive, padding_inputs, predictive_reference),
}
every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_local_attention_and_its_gradients_are_the_papers_formula(name):
    make, inputs, reference = CASES[name]
    for given in (inputs(), unmasked(inputs())):
        assert_is_the_formula(make, given, reference)


@pytest.mark.parametrize("make", [monotonic, predictive])
@pytest.mark.parametrize("real", [[2, 3, 4], [0, 2, 4], [1, 2], []], ids=str)
def test_positions_count_the_real_keys_wherever_the_padding_is(make, real):
    layer, inputs = make(), padding_inputs()
    layer(**inputs)
    query, key, value = inputs["query"], inputs["key"], inputs["value"]
    mask = np.isin(np.arange(5), real)
    context, weights = numbers(layer(query, key, value, np.tile(mask, (1, 1, 1))))
    assert np.all(weights[..., ~mask] == 0)
    if real:
        close([context, weights[..., mask]], layer(query, key[:, mask], value[:, mask]))
    else:
        assert np.all(context == 0)


def test_a_query_past_the_end_of_the_source_gets_zeros():
    layer = monotonic()
    context, weights = numbers(layer(floats(1, 11, 7), floats(1, 5, 11), floats(1, 5, 13)))
    assert np.all(weights[0, :6].sum(axis=-1) > 0.99)
    assert np.all(context[0, 6:] == 0) and np.all(weights[0, 6:] == 0)
