"""Inputs of models of one's own: named by the user, known to Keras, or fed by the pipeline."""

import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import keras
import tensorflow as tf

from seqkeras.export.families.binding import (
    AmbiguousInputs,
    arguments_of,
    bound_by_user,
    built_shape,
    by_words,
    entries_of,
    fed_by_form,
    paths_of,
    question,
    structure_of,
)
from seqkeras.export.feeds import NUMBERS
from seqkeras.serving.manifest import TensorSpec

ANY_FEED = {"token_ids": ("int64", ("batch", "length"))}  # of an example, without a pipeline


def first_that_works(candidates: Iterable[Any], use: Callable[[Any], Any]) -> Any:
    """Return the result of `use` for the first candidate for which it raises no ValueError.

    If it fails for all, the error is that of the first.
    """
    errors = []
    for specs in candidates:
        try:
            return use(specs)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def candidates(
    model: keras.Model,
    feeds: Mapping[str, Any],
    binding: Mapping[str, Any] | None = None,
    by_numbers: bool = False,
) -> list[Any]:
    """Return inputs with which a model that seqkeras does not define may be called: lists of
    `TensorSpec`, and the binding of each.

    Raises:
        AmbiguousInputs: if an input may be one of the pipeline's feeds, and no name says which;
            with `by_numbers` also if its name is another one.
        ValueError: if nothing is known of the inputs.
    """
    if structure_of(model) is None:
        return [(specs, binding) for specs in fed_specs(model, feeds, binding or {})]
    return keras_specs(model, feeds, binding or {}, by_numbers)


def require_specs(inputs: Any) -> list[TensorSpec]:
    """Return the inputs of a model as a list of `TensorSpec`s that a graph can have.

    A ValueError has every reason why one is none.
    """
    inputs = list(inputs)
    reasons = [reason for spec in inputs for reason in _problems(spec)]
    if not reasons:
        names = [spec.name for spec in inputs]
        reasons = [f"{name} is there twice" for name in {*names} if names.count(name) > 1]
    if reasons or not inputs:
        raise ValueError(f"inputs: {'; '.join(reasons) or 'none are named'}; {_name_them()}.")
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


def _name_them(feeds=None, entries=()):
    """Return the way out where inputs are unknown; its example has a feed for each entry."""
    feeds = [*(feeds or ANY_FEED).items()]
    shapes = [entry.shape or () for entry in entries if not entry.optional] or [()]
    example = {
        name: (
            dtype,
            ("batch", *shape[1:]) if "float" in dtype and len(shape) == len(axes) else axes,
        )
        for (name, (dtype, axes)), shape in zip(feeds, shapes)
    }
    specs = ", ".join(
        f"TensorSpec({name!r}, {dtype!r}, {axes})" for name, (dtype, axes) in example.items()
    )
    return f"name them, as inputs={example} of save_run or inputs=[{specs}] of plan_export"


def keras_specs(
    model: keras.Model, feeds: Mapping[str, Any], binding: Mapping[str, Any], by_numbers: bool
) -> Any:
    """Return what Keras knows of the inputs of a functional model; see `candidates`.

    An input has the name that the user's binding gives it, or that of the pipeline's feed which is
    its word in the user's call; an only input is the first feed. Without a pipeline, its own key or
    name is its name.

    If several inputs have open axes, these have separate names in the first list and share "length"
    in the others.
    """
    entries = entries_of(model) or []
    said = bound_by_user(binding, entries)
    names = _names(model, entries, feeds, said, by_numbers)
    paths = {name: entry.path for name, entry in zip(names, entries, strict=True)}
    several = sum(None in entry.shape[1:] for entry in entries) > 1
    fed = set(names) <= set(feeds)
    return [
        (
            require_specs(
                _spec(entry, name, shared, feeds)
                for entry, name in zip(entries, names, strict=True)
            ),
            paths,
        )
        for shared in ([(), (1,), range(1, 9)] if several and not fed else [(1,)])
    ]


def _names(model, entries, feeds, said, by_numbers):
    """Return our names of a functional model's inputs; `said`: the user's binding, resolved."""
    names = {entry.path: name for name, entry in said.items()}
    free = [entry for entry in entries if entry.path not in names]
    known = by_words(free, [name for name in feeds if name not in said])
    names |= {entry.path: name for name, entry in known.items()}
    if len(entries) == 1 and feeds and not names:
        return [next(iter(feeds))]
    unknown = [entry for entry in entries if entry.path not in names]
    rest = {name: spec for name, spec in feeds.items() if name not in names.values()}
    in_doubt = by_numbers or not all(entry.word for entry in unknown)
    if possible := fed_by_form(rest, unknown) if unknown and in_doubt else []:
        path_of = {name: path for path, name in names.items()}
        raise AmbiguousInputs(
            question(model, [" or ".join(rest)], unknown, possible[0]),
            [path_of | paths_of(known) for known in possible],
        )
    for entry in unknown:
        number = f"_{entries.index(entry)}" if len(entries) > 1 else ""
        label = entry.word or entry.name
        names[entry.path] = f"input{number}" if label is None or label in feeds else label
    return [names[entry.path] for entry in entries]


def _spec(entry, name, shared, feeds):
    """Return a `TensorSpec`; `shared` are the axes that are "length" if they are open."""
    dtype, axes = feeds.get(name, (entry.dtype, ()))
    if dtype == "float32" and "int" in entry.dtype:
        dtype = entry.dtype  # a feed of ids stays a feed of ids
    if len(axes) != len(entry.shape):
        axes = ["length" if n in shared else f"{name}_axis_{n}" for n in range(len(entry.shape))]
    shape = (axis if size is None else size for axis, size in zip(axes, entry.shape, strict=True))
    return TensorSpec(name, dtype, ("batch", *[*shape][1:]))


def fed_specs(model: keras.Model, feeds: Mapping[str, Any], binding: Mapping[str, Any]) -> Any:
    """Return the inputs of a subclass of `keras.Model`, by the names in its `call`, or by those of
    the dictionary that it was built with.

    Args:
        binding: our name -> name in the model's call or dictionary, where that is another.

    Returns:
        Lists of `TensorSpec`. Numbers have the feature sizes with which the model was built, and in
        the first list an open length unless that axis is the only one.

    Raises:
        ValueError: if it is not known.
    """
    ours = {key: name for name, key in binding.items() if isinstance(key, str)}
    shape, entries = built_shape(model), entries_of(model) or ()
    if isinstance(shape, Mapping):
        shape = {ours.get(name, name): inner for name, inner in shape.items()}
        takes, others = list(shape), [name for name in shape if name not in feeds]
    elif len(entries) > 1:
        takes, others = [], ["a list"]
    else:
        parameters = inspect.signature(model.call).parameters.values()
        takes = [ours.get(parameter.name, parameter.name) for parameter in parameters]
        needed = [
            name
            for name, parameter in zip(takes, parameters, strict=True)
            if parameter.default is parameter.empty
        ]
        others = [name for name in needed if name not in (*feeds, "kwargs", "training", "mask")]
        if feeds and len(needed) == len(others) == 1:  # one sequence, named by the user
            takes, others = [next(iter(feeds))], []
    if others or not (names := [name for name in feeds if name in takes]):
        unknown = f", {', '.join(others)} among others" if feeds and others else ""
        raise ValueError(
            f"it is not known what a {type(model).__name__} is called with{unknown}; "
            f"{_name_them(feeds, entries or arguments_of(model, feeds) or ())}."
        )
    first = names[0]
    built = (shape.get(first) if isinstance(shape, Mapping) else shape) or ()
    if feeds[first] != NUMBERS or len(built) < 2:
        return [[TensorSpec(name, *feeds[name]) for name in names]]
    leading = ["length"] if len(built) > 2 else []
    return [
        [
            TensorSpec(first, "float32", ("batch", length, *built[2:])),
            *(TensorSpec(name, *feeds[name]) for name in names[1:]),
        ]
        for length in (*leading, built[1])
    ]
