"""The attention of each head of each layer of a model, as a graph of its own.

The graph takes what that of answers takes, except that a choice is a row by itself.
"""

import collections
import dataclasses

import keras
from keras import layers, ops

from export.families.calling import by_keyword, called, reason_of
from export.families.shapes import infer_outputs
from export.signatures import Signature
from seqkeras.attention import StructuredSelfAttention
from seqkeras.attention.attention import ScoreAttention
from seqkeras.models.token_model import TokenModel
from serving.pipelines.attention import HEADS

GIVE_WEIGHTS = (ScoreAttention, StructuredSelfAttention)
GIVE_THEM_ON_REQUEST = (layers.MultiHeadAttention, layers.Attention, layers.AdditiveAttention)
WAY_OUT = (
    "leave out --attention-heads, or give the model a method attention_weights(inputs) that "
    "returns (batch, layers, heads, target, source)"
)


def attention_graph(model, inputs, method=None):
    """The graph of a model's attention, a `Signature` whose outputs are (B, L, N, T, S).

    Args:
        model: one with a method `attention_weights`, as `TokenModel` has it, or a functional model
            with layers that attend: ours that give weights, models of ours, or Keras's.
        inputs: list of `TensorSpec`, what the method, or the functional model, takes.
        method: in the place of `attention_weights`.

    Raises:
        ValueError: if the model does not attend, or not to what it reads.
    """
    try:
        if hasattr(model, "attention_weights"):
            function = by_keyword(method or model.attention_weights)
            found = Signature(function, inputs, infer_outputs(function, inputs))
        else:
            found = _stacked(inputs, *called(_attending(model), inputs))
        _require_labels(found)
    except Exception as error:  # whatever the model's own code raises
        raise ValueError(
            f"no attention leaves of a {type(model).__name__}: {reason_of(error)}; {WAY_OUT}."
        ) from error
    return found


def _require_labels(graph):
    """Raise a ValueError unless tokens, or queries of a fixed number, attend to tokens."""
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
    """A functional model that returns what the layers of another one attend with, by their names.

    Raises:
        ValueError: if none does.
    """
    by_depth = getattr(model, "_nodes_by_depth", {})
    found, calls = {}, collections.Counter()
    for node in (node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]):
        weights, name = _weights_of(node), node.operation.name
        if weights is not None:
            found[f"{name}_{calls[name]}" if calls[name] else name] = weights
            calls[name] += 1
    if not found:
        raise ValueError("none of its layers gives attention weights")
    return keras.Model(model._inputs_struct, found)


def _weights_of(node):
    """The weights (B, L, N, T, S) with which a layer attends in one call, or None."""
    layer, arguments = node.operation, node.arguments
    if isinstance(layer, GIVE_WEIGHTS):
        return _in_one_form(node.outputs[1])
    if isinstance(layer, GIVE_THEM_ON_REQUEST):
        return _ScoresOf(layer)(*arguments.args, **arguments.kwargs)
    if isinstance(layer, TokenModel):
        return _AttentionOf(layer)(arguments.args[0])
    return None


def _in_one_form(weights):
    """(B, T, S) or (B, N, T, S) to (B, 1, N, T, S)."""
    return ops.expand_dims(weights, (1, 2) if len(weights.shape) == 3 else 1)


class _ScoresOf(layers.Layer):
    """The weights of one of Keras's layers, which can not give them in one call of a functional
    model, and none in another."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.supports_masking = layer, True

    def call(self, *sequences, **options):
        options["return_attention_scores"] = True
        return _in_one_form(self.layer(*sequences, **options)[1])


class _AttentionOf(layers.Layer):
    """The attention of a model that is a layer of another one."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs):
        return next(iter(self.model.attention_weights(inputs).values()))


def _stacked(inputs, function, outputs):
    """The graph of layers; those of one shape are one output, a layer each."""
    first = outputs[0]
    if len(outputs) == 1 or any(spec.shape[1:] != first.shape[1:] for spec in outputs):
        return Signature(function, inputs, outputs)
    names = [spec.name for spec in outputs]
    shape = (first.shape[0], len(names) * first.shape[1], *first.shape[2:])

    def stacked(**tensors):
        found = function(**tensors)
        return {HEADS: ops.concatenate([found[name] for name in names], axis=1)}

    return Signature(stacked, inputs, [dataclasses.replace(first, name=HEADS, shape=shape)])
