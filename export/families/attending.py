"""The attention of each head of each layer of a model, as a graph of its own.

The graph has the inputs of the graph that answers, except that every choice is a row.
"""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import layers, ops

from seqkeras.attention import StructuredSelfAttention
from seqkeras.attention.attention import ScoreAttention
from seqkeras.export.families.calling import by_keyword, called, reason_of
from seqkeras.export.families.shapes import infer_outputs
from seqkeras.export.signatures import Signature
from seqkeras.models.token_model import TokenModel
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.pipelines.attention import HEADS

GIVE_WEIGHTS = (ScoreAttention, StructuredSelfAttention)
GIVE_THEM_ON_REQUEST = (layers.MultiHeadAttention, layers.Attention, layers.AdditiveAttention)
WAY_OUT = (
    "leave out --attention-heads, or give the model a method attention_weights(inputs) that "
    "returns (batch, layers, heads, target, source)"
)


def attention_graph(
    model: keras.Model,
    inputs: Sequence[TensorSpec],
    method: Callable[..., Any] | None = None,
    binding: Mapping[str, Any] | None = None,
) -> Signature:
    """Return the graph of a model's attention, a `Signature` whose outputs are (B, L, N, T, S).

    The model has a method `attention_weights`, in whose place `method` is called, or is functional
    with layers that attend: ours that give weights, models of ours, or Keras's. A ValueError says
    that the model has no attention over its inputs.
    """
    try:
        if hasattr(model, "attention_weights"):
            function = by_keyword(method or model.attention_weights)
            graph = Signature(function, inputs, infer_outputs(function, inputs))
        else:
            graph = _stacked(inputs, *called(_attending(model), inputs, binding)[:2])
        _require_labels(graph)
    except Exception as error:  # the model's own code can raise anything
        raise ValueError(
            f"the attention of a {type(model).__name__} can not be exported: {reason_of(error)}; "
            f"{WAY_OUT}."
        ) from error
    return graph


def _require_labels(graph):
    """Raise a ValueError unless tokens, or a fixed number of queries, attend to tokens."""
    lengths = {spec.shape[1] for spec in graph.inputs if len(spec.shape) > 1}
    for spec in graph.outputs:
        *leading, target, source = spec.shape
        is_query = isinstance(target, int) or target in lengths
        if len(leading) != 3 or source not in lengths or not is_query:
            raise ValueError(
                f"{spec.name} must be (batch, layers, heads, target, source), over the positions "
                f"of an input; it is ({', '.join(map(str, spec.shape))})"
            )


def _attending(model):
    """Return a functional model that returns the attention weights of another one's layers, by
    layer name."""
    by_depth = getattr(model, "_nodes_by_depth", {})
    weights_by_name, calls = {}, collections.Counter()
    for node in (node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]):
        weights, name = _weights_of(node), node.operation.name
        if weights is not None:
            weights_by_name[f"{name}_{calls[name]}" if calls[name] else name] = weights
            calls[name] += 1
    if not weights_by_name:
        raise ValueError("none of its layers gives attention weights")
    return keras.Model(model._inputs_struct, weights_by_name)


def _weights_of(node):
    """Return the weights (B, L, N, T, S) with which a layer attends in one call, or None."""
    layer, arguments = node.operation, node.arguments
    if isinstance(layer, GIVE_WEIGHTS):
        return _in_one_form(node.outputs[1])
    if isinstance(layer, GIVE_THEM_ON_REQUEST):
        return _ScoresOf(layer)(*arguments.args, **arguments.kwargs)
    if isinstance(layer, TokenModel):
        weights = layers.Lambda(lambda inputs: next(iter(layer.attention_weights(inputs).values())))
        return weights(arguments.args[0])
    return None


def _in_one_form(weights):
    """Map (B, T, S) or (B, N, T, S) to (B, 1, N, T, S)."""
    return ops.expand_dims(weights, (1, 2) if len(weights.shape) == 3 else 1)


class _ScoresOf(layers.Layer):
    """The attention weights of a Keras layer, whose calls in a functional model return none."""

    def __init__(self, layer: layers.Layer):
        super().__init__()
        self.layer, self.supports_masking = layer, True

    def call(self, *sequences, **options):
        options["return_attention_scores"] = True
        return _in_one_form(self.layer(*sequences, **options)[1])


def _stacked(inputs, function, outputs):
    """Return a `Signature` of layers' weights; layers of one shape are stacked into one output."""
    first = outputs[0]
    if len(outputs) == 1 or any(spec.shape[1:] != first.shape[1:] for spec in outputs):
        return Signature(function, inputs, outputs)
    names = [spec.name for spec in outputs]
    shape = (first.shape[0], len(names) * first.shape[1], *first.shape[2:])

    def stacked(**tensors):
        weights = function(**tensors)
        return {HEADS: ops.concatenate([weights[name] for name in names], axis=1)}

    return Signature(stacked, inputs, [dataclasses.replace(first, name=HEADS, shape=shape)])
