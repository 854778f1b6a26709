from seqkeras.attention import BiAttention
from tests import references
from tests.catalogue.attention import bi_attention_inputs
from tests.complex_step import assert_is_the_formula


def reference(weights, context, query, context_mask=None, query_mask=None):
    return references.bi_attention(context, query, *weights, context_mask, query_mask)


def test_bi_attention_and_its_gradients_are_the_papers_formula():
    inputs = bi_attention_inputs()
    unmasked = {name: inputs[name] for name in ("context", "query")}
    without_a_query = inputs | {"query_mask": inputs["query_mask"] & [[True], [False]]}
    for given in (inputs, unmasked, without_a_query):
        assert_is_the_formula(BiAttention, given, reference)
