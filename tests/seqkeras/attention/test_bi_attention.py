import numpy as np

from seqkeras.attention import BiAttention
from tests import references
from tests.arrays import close, numbers, randomize
from tests.catalogue.attention import bi_attention_inputs
from tests.complex_step import assert_is_the_formula


def reference(weights, context, query, context_mask=None, query_mask=None):
    return references.bi_attention(context, query, *weights, context_mask, query_mask)


def built(inputs):
    layer = BiAttention()
    layer(**inputs)
    return randomize(layer)


def test_bi_attention_and_its_gradients_are_the_papers_formula():
    inputs = bi_attention_inputs()
    unmasked = {name: inputs[name] for name in ("context", "query")}
    without_a_query = inputs | {"query_mask": inputs["query_mask"] & [[True], [False]]}
    for given in (inputs, unmasked, without_a_query):
        assert_is_the_formula(BiAttention, given, reference)


def test_the_weights_of_both_directions_are_distributions():
    inputs = bi_attention_inputs()
    to_query, to_context = numbers(built(inputs).attention_weights(**inputs))
    assert to_query.shape == (2, 5, 3) and to_context.shape == (2, 5)
    close(to_query.sum(axis=-1), np.ones((2, 5)))
    close(to_context.sum(axis=-1), np.ones(2))
    assert np.all(to_query[0, :, 2] == 0) and np.all(to_context[1, 3:] == 0)
