"""Computations for which a runtime has a fused kernel, as pure functions of tensors.

Called in Python they are ordinary Keras, on any backend. In a context `as_nodes` that names it
(TensorFlow only), each call becomes one function node of the traced graph with the computation's
name and options; `seqkeras.export.composites` lowers such a node to the fused ONNX operator. A
composite without a lowering still exports, op by op. The recurrent ones are `Network`s, in
`seqkeras.recurrent`.
"""

from seqkeras.composites.activations import gelu
from seqkeras.composites.attention import attention, attention_weights, cached_attention
from seqkeras.composites.checking import check_network
from seqkeras.composites.distances import distance_scores, relative_contexts, rows_of_distances
from seqkeras.composites.linear_recurrence import linear_recurrence
from seqkeras.composites.network import Network
from seqkeras.composites.nodes import as_nodes, composite, tracing_nodes
from seqkeras.composites.normalization import layer_norm

__all__ = [
    "Network",
    "as_nodes",
    "attention",
    "attention_weights",
    "cached_attention",
    "check_network",
    "composite",
    "distance_scores",
    "gelu",
    "layer_norm",
    "linear_recurrence",
    "relative_contexts",
    "rows_of_distances",
    "tracing_nodes",
]
