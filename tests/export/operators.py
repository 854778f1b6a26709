"""The operators of a SavedModel."""

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

# Of cuDNN, of XLA, of oneDNN, of graph rewriters, and of the Python that traced.
FOREIGN = ("Cudnn", "Xla", "Mkl", "_", "PyFunc", "EagerPyFunc")
CALLS = {"StatefulPartitionedCall", "PartitionedCall"}


def graph_of(folder):
    """The GraphDef of a SavedModel."""
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((folder / "saved_model.pb").read_bytes())
    return saved_model.meta_graphs[0].graph_def


def operators(folder):
    """The names of all operators of a SavedModel, its functions included."""
    graph = graph_of(folder)
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    return {node.op for node in nodes}


def require_core(folder):
    """Assert that a SavedModel holds operators of TensorFlow's core only."""
    found = operators(folder)
    assert found
    registered = {*tf.raw_ops.__dict__, *CALLS}
    foreign = {name for name in found if name not in registered or name.startswith(FOREIGN)}
    assert not foreign
