"""SavedModels for TensorFlow Serving.

`saved_model/1` takes token ids, and has core operators of TensorFlow only. `saved_model_text/1`
takes strings, and may have operators of tensorflow-text too. Both load without seqkeras.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from seqkeras import composites
from seqkeras.export.signatures import to_trace

if TYPE_CHECKING:
    import keras

    from seqkeras.export.signatures import Signature

CALLS = ("PartitionedCall", "StatefulPartitionedCall")  # core, but not in `tf.raw_ops`


def write(model: keras.Model, signatures: Mapping[str, Signature], folder: Path) -> None:
    """Write a model's signatures, with its weights, as a SavedModel."""
    module = tf.Module()  # Keras's ExportArchive stores every variable twice
    module.weights = [variable.value for variable in model.variables]
    functions = {name: _traced(signature) for name, signature in signatures.items()}
    tf.saved_model.save(module, str(folder), signatures=functions)


def traced_once(signatures: Mapping[str, Signature]) -> dict[str, Signature]:
    """Return the signatures, each of which is traced when it is first called; both SavedModels then
    hold one graph of it."""

    def shared(signature):
        names = [spec.name for spec in signature.inputs]

        @functools.cache
        def concrete():
            with tf.init_scope():  # a `tf.function` is traced anew in each graph that calls it
                return _traced(signature).get_concrete_function()

        return lambda **tensors: concrete()(*(tensors[name] for name in names))

    return {
        name: dataclasses.replace(signature, function=shared(signature))
        for name, signature in signatures.items()
    }


def foreign_operators(folder: Path) -> set[str]:
    """Return the names of a SavedModel's operators outside TensorFlow's core."""
    content = (folder / "saved_model.pb").read_bytes()
    [meta_graph] = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    graph = meta_graph.graph_def
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    return {node.op for node in nodes} - {*vars(tf.raw_ops), *CALLS}


def _traced(signature):
    def function(**tensors):
        with composites.as_nodes(()):  # the graph must not hold operators of the GPU that traces it
            return signature.function(**tensors)

    return to_trace(function, signature.inputs)
