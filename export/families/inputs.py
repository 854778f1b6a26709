"""Inputs of models that seqkeras does not define: named by the user, known to Keras, or fed by the
pipeline."""

import inspect
import keyword
import re
from collections.abc import Mapping

import keras
import tensorflow as tf

from export.pipelines.feeds import NUMBERS
from serving.manifest import TensorSpec

NAME_THEM = (
    "name them, as inputs={'token_ids': ('int64', ('batch', 'length'))} of save_run or "
    "inputs=[TensorSpec('token_ids', 'int64', ('batch', 'length'))] of plan_export"
)


def first_that_works(candidates, use):
    """The result of `use` for the first candidate for which it raises no ValueError.

    Raises:
        ValueError: that of the first candidate, if `use` fails for all.
    """
    errors = []
    for specs in candidates:
        try:
            return use(specs)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def candidates(model, feeds):
    """Lists of `TensorSpec` with which a model that seqkeras does not define may be called.

    Raises:
        ValueError: if nothing is known of its inputs.
    """
    return keras_specs(model, feeds) or fed_specs(model, feeds)


def require_specs(inputs):
    """Return the inputs of a model as a list of `TensorSpec`.

    Raises:
        ValueError: with every reason, if one is not a `TensorSpec` with a name, type and shape that
            a graph can have.
    """
    inputs = list(inputs)
    reasons = [reason for spec in inputs for reason in _problems(spec)]
    if not reasons:
        names = [spec.name for spec in inputs]
        reasons = [f"{name} is there twice" for name in {*names} if names.count(name) > 1]
    if reasons or not inputs:
        raise ValueError(f"inputs: {'; '.join(reasons) or 'none are named'}; {NAME_THEM}.")
    return inputs


def _problems(spec):
    if not isinstance(spec, TensorSpec):
        yield f"each must be a TensorSpec; received {spec!r}"
        return
    if (
        not isinstance(spec.name, str)
        or not spec.name.isidentifier()
        or keyword.iskeyword(spec.name)
    ):
        yield f"a name must be one that Python can have; received {spec.name!r}"
    try:
        tf.as_dtype(spec.dtype)
    except TypeError:
        yield f"{spec.name}: no such type: {spec.dtype!r}"
    shape = spec.shape
    if not isinstance(shape, list | tuple) or not all(type(size) in (int, str) for size in shape):
        yield f"{spec.name}: a shape must be of sizes and names of axes; received {shape!r}"


def keras_specs(model, feeds):
    """What Keras knows of the inputs of a functional model.

    Args:
        model: any Keras model.
        feeds: name -> (dtype, shape) of the pipeline's feeds. An unnamed input, and an only input,
            get the first feed's name.

    Returns:
        Lists of `TensorSpec`, none if Keras knows nothing. If several inputs have open axes, these
        have separate names in the first list and share "length" in the others.
    """
    try:
        tensors = keras.tree.flatten(model.inputs)
    except (AttributeError, ValueError):
        return []
    if not tensors:
        return []
    names = [_name(tensor.name, place, len(tensors), feeds) for place, tensor in enumerate(tensors)]
    several = sum(None in tensor.shape[1:] for tensor in tensors) > 1
    fed = set(names) <= set(feeds)
    return [
        require_specs(
            _spec(tensor, name, shared, feeds) for tensor, name in zip(tensors, names, strict=True)
        )
        for shared in ([(), (1,), range(1, 9)] if several and not fed else [(1,)])
    ]


def _name(name, place, count, feeds):
    if count == 1 and feeds and name not in feeds:
        return next(iter(feeds))
    if not re.fullmatch(r"(keras_tensor|input_layer)(_\d+)?", name):  # a default name of Keras
        return name
    return f"input_{place}" if count > 1 else next(iter(feeds), "input")


def _spec(tensor, name, shared, feeds):
    """A `TensorSpec`; `shared` are the axes that are "length" if they are open."""
    dtype, axes = feeds.get(name, (tensor.dtype, ()))
    if dtype == "float32" and "int" in tensor.dtype:
        dtype = tensor.dtype  # a feed of ids stays a feed of ids
    if len(axes) != len(tensor.shape):
        axes = ["length" if n in shared else f"{name}_axis_{n}" for n in range(len(tensor.shape))]
    shape = (own if size is None else size for own, size in zip(axes, tensor.shape, strict=True))
    return TensorSpec(name, dtype, ("batch", *[*shape][1:]))


def fed_specs(model, feeds):
    """The inputs of a subclass of `keras.Model`, by the names in its `call`, or by those of the
    dictionary that it was built with.

    Args:
        model: a Keras model that is built.
        feeds: name -> (dtype, shape).

    Returns:
        Lists of `TensorSpec`. Numbers have the feature sizes with which the model was built, and in
        the first list an open length unless that axis is the only one.

    Raises:
        ValueError: if it is not known.
    """
    shape = (model.get_build_config() or {}).get("input_shape")
    if isinstance(shape, Mapping):
        takes, others = list(shape), [name for name in shape if name not in feeds]
    else:
        parameters = inspect.signature(model.call).parameters.values()
        takes = [parameter.name for parameter in parameters]
        needed = [
            parameter.name for parameter in parameters if parameter.default is parameter.empty
        ]
        others = [name for name in needed if name not in (*feeds, "kwargs", "training", "mask")]
        if feeds and len(needed) == len(others) == 1:  # one sequence, named by the user
            takes, others = [next(iter(feeds))], []
    if others or not (own := [name for name in feeds if name in takes]):
        unknown = f", {', '.join(others)} among others" if feeds and others else ""
        raise ValueError(
            f"it is not known what a {type(model).__name__} is called with{unknown}; {NAME_THEM}."
        )
    first = own[0]
    built = shape.get(first) if isinstance(shape, Mapping) else shape
    if feeds[first] != NUMBERS or len(built or ()) < 2:
        return [[TensorSpec(name, *feeds[name]) for name in own]]
    leading = ["length"] if len(built) > 2 else []
    return [
        [
            TensorSpec(first, "float32", ("batch", length, *built[2:])),
            *(TensorSpec(name, *feeds[name]) for name in own[1:]),
        ]
        for length in (*leading, built[1])
    ]
