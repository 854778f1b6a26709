"""The formulas of the papers as plain loops, in float64 NumPy; imports none of ours.

Weights come as Keras lays them out, gates side by side: i, f, c, o (LSTM) and z, r, h (GRU).
"""

from tests.references.attention import additive_score, attention
from tests.references.decoding import greedy
from tests.references.recurrent import bidirectional, gru, lstm, rnn
from tests.references.seq2seq import bahdanau_decoder_step, bahdanau_encoder

__all__ = [
    "additive_score",
    "attention",
    "bahdanau_decoder_step",
    "bahdanau_encoder",
    "bidirectional",
    "greedy",
    "gru",
    "lstm",
    "rnn",
]
