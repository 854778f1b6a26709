"""Queries, keys, values and masks that do not belong together are refused, and not broadcast."""

import re

import numpy as np
import pytest

from seqkeras.attention import (
    Attention,
    DotScore,
    HardAttention,
    LocalAttention,
    MultiHeadAttention,
)
from tests.arrays import close, floats, numbers

B, T, S, D = 2, 3, 5, 6
ATTENTIONS = {
    "Attention": lambda: Attention(DotScore()),
    "LocalAttention": lambda: LocalAttention(DotScore(), 2),
    "HardAttention": lambda: HardAttention(DotScore()),
    "MultiHeadAttention": lambda: MultiHeadAttention(3, 2),
}
every_attention = pytest.mark.parametrize("make", ATTENTIONS.values(), ids=ATTENTIONS)


def call(layer, **masks):
    return layer(floats(B, T, D), floats(B, S, D), floats(B, S, D), **masks)


@every_attention
@pytest.mark.parametrize("name, length", [("query", T), ("key", S), ("value", S)])
def test_a_padding_mask_of_another_shape_is_refused(make, name, length):
    for shape in [(B, 1), (1, length), (B, length + 1), (B, length, 1)]:
        message = (
            f"{name}_mask must have the shape (batch, length) of the {name}, {(B, length)}; "
            f"received {shape}."
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            call(make(), **{f"{name}_mask": np.ones(shape, bool)})


@every_attention
@pytest.mark.parametrize(
    "shape", [(B, S, T), (B, T, 1), (B + 1, T, S), (B, T + 1, S), (B, 2, T, S), (T, S)], ids=str
)
def test_an_attention_mask_of_another_shape_is_refused(make, shape):
    message = f"attention_mask must have shape (batch, target, source), {(B, T, S)}"
    with pytest.raises(ValueError, match=f"{re.escape(message)}.*received {re.escape(str(shape))}"):
        call(make(), attention_mask=np.ones(shape, bool))


@every_attention
def test_an_attention_mask_may_be_one_for_all_rows_and_queries(make):
    mask, layer = floats(B, T, S) > 0, make()
    for part in (mask[:1], mask[:, :1], mask[:1, :1]):
        expected = numbers(call(layer, attention_mask=np.broadcast_to(part, (B, T, S))))
        close(numbers(call(layer, attention_mask=part)), expected)


@pytest.mark.parametrize("heads", [1, 3])
def test_an_attention_mask_may_have_an_axis_of_heads(heads):
    mask, layer = floats(B, heads, 1, S) > 0, MultiHeadAttention(3, 2)
    expected = numbers(call(layer, attention_mask=np.broadcast_to(mask, (B, 3, T, S))))
    close(numbers(call(layer, attention_mask=mask)), expected)


@every_attention
def test_keys_and_values_of_two_lengths_are_refused(make):
    message = (
        "key and value must have the same batch and length; received "
        f"{(B, S, D)} and {(B, S + 1, D)}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        make()(floats(B, T, D), floats(B, S, D), floats(B, S + 1, D))
