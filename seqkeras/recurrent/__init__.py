"""Recurrent cells, and the loop over their steps."""

from seqkeras.recurrent.bidirectional import Bidirectional
from seqkeras.recurrent.gru import GRU, GRUCell
from seqkeras.recurrent.lstm import LSTM, LSTMCell
from seqkeras.recurrent.qrnn import QRNN
from seqkeras.recurrent.rnn import RNN
from seqkeras.recurrent.simple_rnn import SimpleRNN, SimpleRNNCell
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
