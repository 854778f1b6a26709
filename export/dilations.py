"""Dilated convolutions as one node each.

TensorFlow convolves every d-th step by itself: it pads the steps to a multiple of d, spreads them
over the batch, then gathers and crops them. tf2onnx makes one node of this if the paddings and
crops are constants; with open lengths TensorFlow computes them. Their difference, the convolution's
own padding, does not depend on the length and is filled in here.
"""

import numpy as np
import tensorflow as tf
from tf2onnx import utils
from tf2onnx.rewriter.conv_dilations_rewriter import rewrite_conv_dilations

BETWEEN = ("Squeeze", "Conv2D", "Conv3D", "DepthwiseConv2dNative", "ExpandDims")


def dilations_of(tf_graph):
    """Return a rewriter for tf2onnx.

    Returns:
        (tf2onnx's graph, its nodes) -> its nodes.
    """
    names = {operation.name for operation in tf_graph.get_operations()}  # outside of functions

    def rewrite(graph, nodes):
        for gather in nodes:
            spread = _spread_before(gather)
            if spread is None or spread.name not in names or spread.inputs[2].is_const():
                continue
            paddings = _own_paddings(tf_graph, spread.name, gather.name)
            if paddings is not None:
                _set_paddings(graph, spread, paddings)
                _set_paddings(graph, gather, np.zeros_like(paddings))
        return rewrite_conv_dilations(graph, graph.get_nodes())

    return rewrite


def _set_paddings(graph, node, value):
    constant = graph.make_const(utils.make_name(f"{node.name}/paddings"), value)
    graph.replace_input(node, node.input[2], constant.output[0], 2)


def _spread_before(node):
    """Return the SpaceToBatchND whose steps a BatchToSpaceND gathers after a convolution, else
    None."""
    if node.type != "BatchToSpaceND":
        return None
    node = node.inputs[0]
    while node.type in BETWEEN:
        node = node.inputs[0]
    return node if node.type == "SpaceToBatchND" else None


def _own_paddings(tf_graph, spread, gather):
    """Return padding minus cropping; None if it depends on the sizes of inputs."""
    tensors = [tf_graph.get_operation_by_name(name).inputs[2] for name in (spread, gather)]
    sources = _sources(tensors)
    if any(operation.type != "Shape" for operation in sources):
        return None
    shapes = [operation.outputs[0] for operation in sources]
    found = []
    with tf.compat.v1.Session(graph=tf_graph) as session:
        for size in (1, 2):
            sizes = {shape.name: np.full(shape.shape, size, "int32") for shape in shapes}
            padded, cropped = session.run(tensors, sizes)
            found.append(padded - cropped)
    return found[0] if np.array_equal(*found) else None


def _sources(tensors):
    """Return the operations at which the computation of tensors starts: sizes and inputs."""
    operations, sources = [tensor.op for tensor in tensors], []
    for operation in operations:
        if operation.type in ("Shape", "Placeholder"):
            sources.append(operation)
        else:
            operations.extend(tensor.op for tensor in operation.inputs)
    return sources
