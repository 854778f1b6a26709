"""Models that answer in one go: from all inputs to all outputs, without a state."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from export.families.shapes import infer_outputs
from export.signatures import Signature
from seqkeras import models
from serving.manifest import TensorSpec

ROLE = "model"
TOKENS = {"token_ids": ("int64", ("batch", "length")), "lengths": ("int64", ("batch",))}
SEGMENTS = {"segment_ids": ("int64", ("batch", "length"))}
MASKS = {"masked_positions": ("int64", ("batch", "masks"))}


def _encoder(model):
    return TOKENS | (SEGMENTS if "segment_ids" in model.id_limits else {})


def _with_heads(model):
    inputs = _encoder(model.encoder)
    if _has(model, models.MultipleChoiceHead):
        inputs = {
            name: (dtype, (shape[0], "choices", *shape[1:]))
            for name, (dtype, shape) in inputs.items()
        }
    # The logits of a token are as many as the vocabulary has tokens: only those that are asked for.
    return inputs | (MASKS if _has(model, models.MaskedLMHead) else {})


def _has(model, kind):
    return any(isinstance(head, kind) for head in model.heads.values())


def _bidaf(model):
    inputs = {}
    for part in ("context", "query"):
        words = ("batch", f"{part}_length")
        inputs |= {
            f"{part}_ids": ("int64", words),
            f"{part}_characters": ("int64", (*words, f"{part}_word_length")),
            f"{part}_lengths": ("int64", ("batch",)),
        }
    return inputs


def _bilm(model):
    characters = ("batch", "length", "word_length")
    return {"character_ids": ("int64", characters), "lengths": TOKENS["lengths"]}


def _forecaster(model):
    return {
        "window": ("float32", ("batch", "length", model.num_features)),
        "lengths": TOKENS["lengths"],
        **(
            {"known": ("float32", ("batch", model.sizes["horizon"], model.num_known))}
            if model.num_known
            else {}
        ),
    }


def _tree_classifier(model):
    return {
        "token_ids": ("int64", ("batch", "nodes")),
        "lengths": ("int64", ("batch",)),
        "children": ("int64", ("batch", "nodes", model.sizes["num_children"])),
        "levels": ("int64", ("batch", "height", "width")),
    }


# What each of our models takes: name -> (dtype, symbolic shape).
INPUTS = {
    models.Bert: _encoder,
    models.WithHeads: _with_heads,
    models.SentenceEncoder: lambda model: _encoder(model.encoder),
    models.BiDAF: _bidaf,
    models.BiLM: _bilm,
    models.Forecaster: _forecaster,
    models.TreeClassifier: _tree_classifier,
}


def graphs(model, inputs=None):
    """The graphs of a model by role: "model", and for a `BiLM` its "representations" too.

    Args:
        model: one of `INPUTS`, or any Keras model.
        inputs: list of `TensorSpec`, what the model is called with; None for what is known of it.
            Several sequences are then of one length only if the model takes no others.

    Raises:
        ValueError: if it is not known what the model is called with.
    """
    if inputs is not None:
        return _graphs(model, list(inputs))
    if declared := _declared(model):
        return _graphs(model, declared)
    tensors = _keras_inputs(model)
    try:
        return _graphs(model, [_spec(each, tensors) for each in tensors])
    except (ValueError, tf.errors.OpError):
        if len(tensors) == 1:
            raise
        return _graphs(model, [_spec(each, [each]) for each in tensors])


def _graphs(model, inputs):
    functions = {"model": _call_of(model, inputs)}
    if isinstance(model, models.BiLM):
        functions["representations"] = lambda **tensors: {"layers": model.represent(tensors)}
    return {
        role: Signature(function, inputs, infer_outputs(function, inputs))
        for role, function in functions.items()
    }


def _declared(model):
    """The `TensorSpec`s of one of our models, or None."""
    for kind, declared in INPUTS.items():
        if isinstance(model, kind):
            return [TensorSpec(name, *spec) for name, spec in declared(model).items()]
    return None


def _keras_inputs(model):
    try:
        tensors = keras.tree.flatten(model.inputs)
    except (AttributeError, ValueError):
        tensors = []
    if not tensors:
        raise ValueError(
            f"export: it is not known what a {type(model).__name__} is called with; name its "
            "inputs, as inputs=[TensorSpec('token_ids', 'int64', ('batch', 'length'))]."
        )
    return tensors


def _spec(tensor, beside):
    """The `TensorSpec` of an input; "length" is the second axis of the only one that is open."""
    alone = sum(None in each.shape[1:] for each in beside) == 1
    own = {0: "batch", **({1: "length"} if alone else {})}
    shape = (
        own.get(axis, f"{tensor.name}_axis_{axis}") if size is None else size
        for axis, size in enumerate(tensor.shape)
    )
    return TensorSpec(tensor.name, tensor.dtype, tuple(shape))


def _call_of(model, inputs):
    """The model as a function of tensors by keyword."""
    names = [spec.name for spec in inputs]
    known = isinstance(model, tuple(INPUTS))
    structure = None if known else getattr(model, "_inputs_struct", None)

    def function(**tensors):
        if known or (structure is None and len(names) > 1) or isinstance(structure, Mapping):
            outputs = model(tensors)
        else:
            outputs = model(keras.tree.pack_sequence_as(structure, [tensors[n] for n in names]))
        return _by_name(outputs)

    return function


def _by_name(outputs, prefix=""):
    """Outputs of any structure as a flat dictionary; names within names are joined by "_".

    The only output of a model is called "output".
    """
    if isinstance(outputs, Mapping):
        named = outputs
    elif isinstance(outputs, list | tuple):
        named = {str(place): each for place, each in enumerate(outputs)}
    else:
        return {prefix or "output": outputs}
    flat = {}
    for name, value in named.items():
        own = f"{prefix}_{name}" if prefix else f"output_{name}" if named is not outputs else name
        flat |= _by_name(value, own)
    return flat
