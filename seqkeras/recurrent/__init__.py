"""Recurrent cells, and the loop over their steps."""

from seqkeras.recurrent.cells import GRUCell, LSTMCell, SimpleRNNCell
from seqkeras.recurrent.rnn import GRU, LSTM, Bidirectional, SimpleRNN

__all__ = [
    "GRU",
    "LSTM",
    "Bidirectional",
    "GRUCell",
    "LSTMCell",
    "SimpleRNN",
    "SimpleRNNCell",
]
