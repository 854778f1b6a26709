"""The formulas of the papers as plain loops, in float64 NumPy; imports none of ours.

Weights come as Keras lays them out, gates side by side: i, f, c, o (LSTM) and z, r, h (GRU). The
models and what they are made of take complex numbers too, for `tests.complex_step`: where a formula
chooses, it chooses by the real parts.
"""

from tests.references.attention import (
    additive_score,
    attention,
    bi_attention,
    concat_score,
    distance_attention,
    dot_score,
    general_score,
    hard_attention,
    key_value_attention,
    local_attention,
    multi_head_attention,
    predicted_positions,
    scaled_dot_score,
    structured_self_attention,
    t5_bucket,
)
from tests.references.decoding import greedy
from tests.references.qrnn import linear_recurrence, qrnn
from tests.references.recurrent import bidirectional, gru, lstm, rnn
from tests.references.seq2seq import seq2seq

__all__ = [
    "additive_score",
    "attention",
    "bi_attention",
    "bidirectional",
    "concat_score",
    "distance_attention",
    "dot_score",
    "general_score",
    "greedy",
    "gru",
    "hard_attention",
    "key_value_attention",
    "structured_self_attention",
    "linear_recurrence",
    "local_attention",
    "lstm",
    "multi_head_attention",
    "predicted_positions",
    "qrnn",
    "rnn",
    "scaled_dot_score",
    "seq2seq",
    "t5_bucket",
]
