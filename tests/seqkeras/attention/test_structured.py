import keras
import numpy as np

from seqkeras.attention import StructuredSelfAttention
from tests import references
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.complex_step import assert_is_the_formula

HOPS, UNITS = 3, 5


def make(**options):
    return StructuredSelfAttention(UNITS, HOPS, **options)


def reference(weights, sequence, mask=None):
    return references.structured_self_attention(sequence, *weights, mask)[:2]


INPUTS = {"sequence": floats(2, 7, 11), "mask": right_padded([7, 4], 7)}


def test_structured_self_attention_and_its_gradients_are_the_papers_formula():
    for inputs in (INPUTS, {"sequence": INPUTS["sequence"]}):
        assert_is_the_formula(make, inputs, reference)


def test_the_penalty_is_that_of_the_paper_and_there_only_if_asked_for():
    layer = make(penalty=0.7)
    layer(**INPUTS)
    randomize(layer)
    layer(**INPUTS)
    *_, penalty = references.structured_self_attention(
        INPUTS["sequence"], *layer.get_weights(), INPUTS["mask"]
    )
    close(layer.losses, [0.7 * penalty], rtol=1e-4)
    without = make()
    without(**INPUTS)
    assert without.losses == []


def test_the_mask_of_an_embedding_is_read_and_ends_here():
    token_ids = np.array([[3, 4, 0], [5, 0, 0]])
    embedded = keras.layers.Embedding(7, 6, mask_zero=True)(token_ids)
    output, weights = make()(embedded)
    assert np.all(numbers(weights)[~np.repeat((token_ids != 0)[:, None], HOPS, axis=1)] == 0)
    assert getattr(output, "_keras_mask", None) is None
