"""The few computations that a runtime has a fused kernel for, as pure functions of tensors.

Called in Python they are ordinary Keras, on any backend. While `as_nodes` names it (TensorFlow
only), each call becomes one function node of the traced graph that keeps the computation's name and
options; `export.composites` lowers such a node to the fused ONNX operator. A composite without a
lowering still exports, op by op.
"""

from seqkeras.composites.nodes import as_nodes, composite
from seqkeras.composites.recurrent import bidirectional, gru, keras_rnn, lstm, rnn

__all__ = ["as_nodes", "bidirectional", "composite", "gru", "keras_rnn", "lstm", "rnn"]
