"""RNNSeq2Seq with multi-head attention, before and after the cell."""

import numpy as np
import pytest

from seqkeras.attention import MultiHeadAttention
from tests import references
from tests.arrays import close, floats, numbers, right_padded
from tests.catalogue import seq2seq
from tests.catalogue.seq2seq import SIZES, model_of

BOTH_DIRECTIONS = 2 * SIZES["units"]


@pytest.mark.parametrize("case", seq2seq.HEADS, ids=lambda case: case.name)
def test_attention_gives_what_the_heads_give_together_and_the_weights_of_each(case):
    decoder = case.built().decoder
    query, values = floats(2, 3, 13), floats(2, 5, BOTH_DIRECTIONS)
    mask = right_padded([5, 3], 5)
    context, weights, _ = decoder.attend(query, decoder.first_state(None, values, mask))
    kernels = numbers(list(decoder.attention.weights))
    if not decoder.attention.use_bias:
        zeros = [np.zeros(kernel.shape[-2:]) for kernel in kernels[:3]]
        pairs = zip(kernels, [*zeros, np.zeros(kernels[3].shape[-1])])
        kernels = [each for pair in pairs for each in pair]
    expected, by_head = references.multi_head_attention(
        query, values, values, np.repeat(mask[:, None], 3, axis=1), kernels
    )
    close(context, expected)
    close(weights, by_head)


@pytest.mark.parametrize("arguments", [{"causal": True}, {"dropout": 0.1}], ids=str)
def test_heads_that_would_not_see_the_whole_source_are_refused(arguments):
    message = (
        r"^BahdanauDecoder: multi-head attention sees the whole .* and dropout=0; rec.* <MultiHead"
    )
    with pytest.raises(ValueError, match=message):
        model_of(attention=MultiHeadAttention(3, 2, **arguments))
