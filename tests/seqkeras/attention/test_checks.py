"""Queries, keys, values and masks that do not belong together are refused, and not broadcast."""

import numpy as np
import pytest

from seqkeras.attention import (
    AdditiveScore,
    Attention,
    BiAttention,
    ConcatScore,
    DotScore,
    GeneralScore,
    HardAttention,
    KeyValueAttention,
    KeyValuePredictAttention,
    LocalAttention,
    MovingAverageBaseline,
    MultiHeadAttention,
    RestrictedSelfAttention,
    ScaledDotScore,
    StructuredSelfAttention,
    reinforce_loss,
)
from tests.arrays import close, floats, numbers
from tests.refusals import refusals

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
def test_an_attention_mask_may_be_one_for_all_rows_and_queries(make):
    mask, layer = floats(B, T, S) > 0, make()
    for part in (mask[:1], mask[:, :1], mask[:1, :1]):
        expected = numbers(call(layer, attention_mask=np.broadcast_to(part, (B, T, S))))
        close(numbers(call(layer, attention_mask=part)), expected)


def of_size(*sizes):
    return [floats(*size) for size in sizes]


def masked(name, shape, layer="Attention"):
    return lambda: call(ATTENTIONS[layer](), **{name: np.ones(shape, bool)})


SAME, SELF = floats(5, 5, 7), floats(2, 3, 6)
FITS = "must have the shape (batch, length) of the"
POSITIVE = "must be a positive integer; received"
test_what_does_not_belong_together_is_refused = refusals(
    *(
        case
        for layer, make in ATTENTIONS.items()
        for case in (
            (masked("query_mask", (B, 1), layer), f"query_mask {FITS} query, (2, 3); received"),
            (masked("key_mask", (1, S), layer), f"key_mask {FITS} key, (2, 5); received (1, 5)."),
            (masked("value_mask", (B, S, 1), layer), f"value_mask {FITS} value, (2, 5); received"),
            (
                masked("attention_mask", (B, S, T), layer),
                f"{layer}: attention_mask must have shape (batch, target, source), (2, 3, 5)...; "
                "received (2, 5, 3). A padding mask (batch, source) becomes one of attention by ma",
            ),
            (
                lambda make=make: make()(*of_size((B, T, D), (B, S, D), (B, S + 1, D))),
                "key and value must have the same batch and length; received (2, 5, 6) and (2, 6, ",
            ),
        )
    ),
    *(
        (masked("attention_mask", shape), f"received {shape}")
        for shape in [(B, T, 1), (B + 1, T, S), (B, T + 1, S), (B, 2, T, S), (T, S)]
    ),
    *(
        (lambda make=make, score=score: make(score), f"score must be a layer of ...{score!r}.")
        for make in (Attention, HardAttention, lambda score: LocalAttention(score, 1))
        for score in (5, "dot", DotScore)
    ),
    (lambda: BiAttention()(*of_size((2, 0, 7), (2, 3, 7))), "context must have at least one step"),
    (lambda: BiAttention()(*of_size((2, 5, 7), (2, 0, 7))), "query must have at least one step"),
    (
        lambda: BiAttention().call(*of_size((2, 5, 7), (2, 3, 7)), np.ones((2, 1), bool)),
        f"BiAttention: context_mask {FITS} context, (2, 5); received (2, 1).",
    ),
    (
        lambda: BiAttention().call(*of_size((2, 5, 7), (2, 3, 7)), None, np.ones((2, 1), bool)),
        f"BiAttention: query_mask {FITS} query, (2, 3); received (2, 1).",
    ),
    (lambda: BiAttention()(*of_size((2, 5, 7), (2, 3, 11))), "the same dim; received 7 and 11."),
    (lambda: KeyValueAttention(2)(floats(2, 3, 7)), "dim of sequence must be a multiple of 2; rec"),
    (lambda: KeyValuePredictAttention(2)(floats(2, 3, 8)), "a multiple of 3; received 8."),
    (
        lambda: KeyValueAttention(2)(SELF, mask=np.ones((2, 1), bool)),
        f"KeyValueAttention: mask {FITS} sequence, (2, 3); received (2, 1).",
    ),
    (
        lambda: RestrictedSelfAttention(2, 3, window=2)(SELF, mask=np.ones((2, 1), bool)),
        f"RestrictedSelfAttention: mask {FITS} sequence, (2, 3); received (2, 1).",
    ),
    (lambda: RestrictedSelfAttention(3, 2, window=2, output_dim=0), f"output_dim {POSITIVE} 0."),
    (lambda: LocalAttention(DotScore(), 0), f"LocalAttention: window {POSITIVE} 0."),
    (lambda: LocalAttention(DotScore(), 1, "global"), "kind must be one of ('monotonic', 'predict"),
    (lambda: StructuredSelfAttention(5, 3, penalty=-1), "penalty must be at least 0; received -1."),
    *(
        (
            lambda score=score, shapes=shapes: score().build(*shapes),
            f"{name} must have shape (batch, length, dim); received",
        )
        for score in (lambda: AdditiveScore(3), lambda: ConcatScore(3), GeneralScore, DotScore)
        for name, shapes in {
            "query": ((3, 7), (2, 5, 11)),
            "key": ((2, 3, 7), (2, 5, None)),
        }.items()
    ),
    (lambda: ScaledDotScore()(*of_size((2, 3, 7), (2, 5, 11))), "dim; received 7 and 11. Genera"),
    (lambda: reinforce_loss(floats(5), floats(5, 2)), "losses and log_probabilities must ... (5,"),
    (lambda: reinforce_loss(floats(5), floats(1)), "the same shape; received (5,) and (1,)."),
    (lambda: MovingAverageBaseline(momentum=1), "MovingAverageBaseline: momentum must ... receive"),
)


@every_attention
def test_a_padding_mask_is_no_mask_of_one_step_s_attention(make):
    layer, mask = make(), np.ones((5, 5), bool)
    layer(SAME, SAME, SAME, mask[:, None])
    prepare = getattr(layer, "prepare", None)
    prepared = prepare(SAME, SAME) if prepare else (layer.score.prepare(SAME), SAME)
    calls = [lambda: layer.attend(SAME, *prepared, mask)]
    if isinstance(layer, HardAttention):
        calls.append(lambda: layer.log_probability(SAME, SAME, floats(5, 5, 5), mask))
        calls.append(lambda: layer.entropy(SAME, SAME, mask))
    for each in calls:
        with pytest.raises(
            ValueError, match=r"attention_mask must .* received \(5, 5\)\. A padding"
        ):
            each()
