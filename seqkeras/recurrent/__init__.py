"""Recurrent cells, and the loop over their steps."""

from seqkeras.recurrent.bidirectional import Bidirectional
from seqkeras.recurrent.cells import GRUCell, LSTMCell, SimpleRNNCell
from seqkeras.recurrent.qrnn import QRNN
from seqkeras.recurrent.rnn import GRU, LSTM, RNN, SimpleRNN
from seqkeras.recurrent.stacked import StackedCells
from seqkeras.recurrent.tree import TreeLSTM, TreeRNN

__all__ = [
    "GRU",
    "LSTM",
    "QRNN",
    "RNN",
    "Bidirectional",
    "GRUCell",
    "LSTMCell",
    "SimpleRNN",
    "SimpleRNNCell",
    "StackedCells",
    "TreeLSTM",
    "TreeRNN",
]
