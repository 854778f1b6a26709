"""A model as a function of tensors by keyword, however it takes them."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from seqkeras.export.families.binding import (
    AmbiguousInputs,
    bound,
    entries_of,
    keywords_of,
    structure_of,
)
from seqkeras.export.families.inputs import first_that_works
from seqkeras.export.families.shapes import at_some_size, infer_outputs
from seqkeras.runs.reference import OwnCall, named_outputs
from seqkeras.serving.manifest import TensorSpec
from seqkeras.tensors import Tensor


def called(
    model: keras.Model,
    inputs: Mapping[str, Any] | Sequence[TensorSpec],
    binding: Mapping[str, Any] | None = None,
) -> tuple[Callable[..., Any], Any]:
    """Return a Keras model as a function of tensors by keyword, and what it returns.

    A functional model takes the structure of its inputs, and so does a subclass of `keras.Model`
    that was built with a dictionary or a list. Another one is called with keywords if its `call`
    has these names or requires several, else with the only tensor, else with a dictionary.

    Returns:
        The function, the list of `TensorSpec` of its results, and the model's `OwnCall`.

    Raises:
        AmbiguousInputs: if nothing tells which input is which.
        ValueError: if the model can not be called so; it gives the model's own reason.
    """

    def traced(way, own_call):
        function = by_keyword(way)
        return function, infer_outputs(function, inputs, _has_plain_layers(model)), own_call

    return _with_first_way(model, inputs, binding, traced)


def _has_plain_layers(model):
    """Return whether all layers of a functional model are Keras's and ours, without a state: sizes
    of their results depend on no value, and a call changes nothing."""
    return structure_of(model) is not None and all(
        type(layer).__module__.split(".")[0] in ("keras", "seqkeras")
        and not isinstance(layer, keras.layers.Lambda)
        and not getattr(layer, "stateful", False)
        for layer in model._flatten_layers(include_self=False)
    )


def build(
    model: keras.Model, inputs: Sequence[TensorSpec], binding: Mapping[str, Any] | None = None
) -> None:
    """Call a model once to create the weights that Keras could not create while loading it."""

    def ones(sizes):
        return {
            spec.name: np.ones([sizes.get(size, size) for size in spec.shape], spec.dtype)
            for spec in inputs
        }

    def call(way, _):
        at_some_size(inputs, lambda sizes, _: way(ones(sizes)))

    try:
        _with_first_way(model, inputs, binding, call)
    except AmbiguousInputs as error:  # inputs of one form make the same weights
        first_that_works(
            error.bindings, lambda possible: _with_first_way(model, inputs, possible, call)
        )


def _with_first_way(model, inputs, binding, use):
    """Return the result of `use` for the first way of calling the model that raises nothing."""
    errors = []
    for way, own_call in _ways(model, inputs, binding or {}):
        try:
            return use(way, own_call)
        except Exception as error:  # the model's own code can raise anything
            errors.append(error)
    feeds = ", ".join(f"{spec.name} {spec.dtype} ({axes_of(spec.shape)})" for spec in inputs)
    raise ValueError(
        f"a {type(model).__name__} can not be called with {feeds}: {reason_of(errors[0])}; "
        "name its inputs, and axes that are alike by one name: `inputs` of save_run or plan_export."
    ) from errors[0]


def by_keyword(way: Callable[..., Any]) -> Callable[..., dict[str, Tensor]]:
    """Turn a function of a dictionary of tensors into one of keywords that returns a dictionary."""
    return lambda **tensors: named_outputs(way(tensors))


def _ways(model, inputs, binding):
    """Yield ways to call a model with tensors by name, the likeliest first, with its `OwnCall`."""
    paths = bound(model, inputs, binding)
    structure = structure_of(model)
    if structure is not None:
        names = {path: name for name, path in paths.items()}
        order = [names.get(tuple(path)) for path, _ in keras.tree.flatten_with_path(structure)]

        def functional(tensors):
            flat = [None if name is None else tensors[name] for name in order]
            return model(keras.tree.pack_sequence_as(structure, flat))

        yield functional, OwnCall(paths)
        return
    known = [] if paths is None else [OwnCall(paths, by_keyword=entries_of(model) is None)]
    for own_call in known or _calls(model, inputs, binding):
        yield functools.partial(own_call, model), own_call


def _calls(model, inputs, binding):
    """Yield the ways in which a subclass of `keras.Model` may take its inputs."""
    names = [spec.name for spec in inputs]
    keys = {name: binding.get(name, name) for name in names}
    paths = {
        name: tuple(key) if isinstance(key, list | tuple) else (key,) for name, key in keys.items()
    }
    if {*paths.values()} <= {(keyword,) for keyword in keywords_of(model)}:
        yield OwnCall(paths, by_keyword=True)
    if len(names) == 1 and not binding:
        yield OwnCall({names[0]: ()})
    yield OwnCall(paths)


def reason_of(error: BaseException) -> str:
    """Return an exception's message in one line, without the text that Keras and TensorFlow add."""
    text = re.sub(r"\x1b\[\d*m|\{\{.*?\}\} ?| ?\[Op:.*", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Exception encountered when calling")]
    reason = lines[0].rstrip(".") if lines else ""
    return reason if isinstance(error, ValueError) else f"{type(error).__name__}: {reason}"


def axes_of(shape: Sequence[Any]) -> str:
    """Return a shape in words."""
    return ", ".join(map(str, shape))
