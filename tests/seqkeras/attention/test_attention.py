import keras
import numpy as np
import pytest

from seqkeras.attention import AdditiveScore, Attention
from tests import references
from tests.arrays import close, floats, numbers, right_padded
from tests.catalogue.attention import attention_inputs
from tests.complex_step import assert_is_the_formula


def case():
    def reference(weights, query, key, value, attention_mask=None):
        scores = references.additive_score(query, key, *weights)
        return references.attention(scores, value, attention_mask)

    return lambda: Attention(AdditiveScore(17)), attention_inputs(), reference


def test_attention_and_its_gradients_are_the_papers_formula():
    make, inputs, reference = case()
    inputs["attention_mask"][1, 2] = False
    assert_is_the_formula(make, inputs, reference)
    del inputs["attention_mask"]
    assert_is_the_formula(make, inputs, reference)


@pytest.mark.parametrize("kind", ["dot", "additive"])
def test_attention_is_that_of_keras(kind):
    mask, scale = right_padded([5, 3], 5), floats(7, seed=3)
    query, key, value = floats(2, 3, 7), floats(2, 5, 7, seed=1), floats(2, 5, 7, seed=2)
    ours = Attention() if kind == "dot" else Attention(AdditiveScore(7))
    rival = keras.layers.Attention() if kind == "dot" else keras.layers.AdditiveAttention()
    rival([query, value, key])
    ours(query, key, value)
    if kind == "additive":  # Keras has no kernels
        ours.set_weights([np.eye(7), np.eye(7), scale[:, None]])
        rival.set_weights([scale])
    expected = rival([query, value, key], mask=[None, mask], return_attention_scores=True)
    close(ours(query, key, value, attention_mask=mask[:, None]), expected)


def test_a_score_that_is_built_is_used_as_it_is():
    query, key, value = floats(2, 3, 7), floats(2, 5, 11), floats(2, 5, 13)
    score = AdditiveScore(17)
    scores = score(query, key)
    _, weights = Attention(score)(query, key, value)
    close(weights, references.attention(numbers(scores), value)[1])
