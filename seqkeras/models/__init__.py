"""Models, one file per paper."""

from seqkeras.models.rnn_seq2seq import RNNSeq2Seq

__all__ = ["RNNSeq2Seq"]
