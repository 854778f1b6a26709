"""The inputs of a model's own call, bound to our names.

The word decides it that the user's call has: a key of a dictionary, an argument of `call`, or in a
list the name of a `keras.Input`. Where no word does, the shapes and types of the inputs may leave
one possibility. Else the user has to say it, by `binding` or, in a run, by the numbers that the
user's own call gives.
"""

import dataclasses
import inspect
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import keras

from seqkeras.serving.manifest import TensorSpec

DEFAULT_NAME = re.compile(r"(keras_tensor|input_layer)(_\d+)?")  # Keras's, of an unnamed Input
MOST_TRIED = 24  # bindings, the orders of four inputs that are alike


class AmbiguousInputs(ValueError):
    """No name says which input of the model is which; each possible binding is our name -> path."""

    def __init__(self, message: object, bindings: Sequence[Mapping[str, Any]]):
        super().__init__(message)
        self.bindings = bindings


@dataclasses.dataclass(frozen=True)
class InputEntry:
    """An input, as an entry of what the model's own call takes."""

    path: tuple  # keys and indices in what the model is called with; () for the tensor itself
    name: str | None  # name of the `keras.Input`, or None if its user gave none
    dtype: str | None  # None if it is unknown
    shape: tuple | None  # with None for an open size; None if it is unknown
    optional: bool = False  # whether the model can be called without it

    @property
    def key(self) -> str | None:
        """The keys of the path in one word, as the model's user writes them, or None."""
        if not self.path or not all(isinstance(key, str) for key in self.path[:1]):
            return None
        return "_".join(map(str, self.path))

    @property
    def word(self) -> str | None:
        """The name in the user's call: the key, or in a list the name of the Input, or None."""
        return self.key if any(isinstance(key, str) for key in self.path) else self.name

    def __str__(self) -> str:
        where = "".join(f"[{key!r}]" for key in self.path) or "the input"
        if self.shape is None:
            return where
        sizes = ", ".join("batch" if n == 0 else str(size) for n, size in enumerate(self.shape))
        return f"{where} {self.dtype or ''}".rstrip() + f" ({sizes})"


def structure_of(model: keras.Model) -> Any:
    """Return the structure of a functional or `Sequential` model's inputs, or None."""
    for part in (model, getattr(model, "_functional", None)):
        if (structure := getattr(part, "_inputs_struct", None)) is not None:
            return structure
    return None


def entries_of(model: keras.Model) -> list[InputEntry] | None:
    """Return the `InputEntry`s of a model, or None where Keras does not know them.

    The inputs of a subclass of `keras.Model` are known if it was built with a dictionary or a list.
    """
    structure = structure_of(model)
    if structure is not None:
        return [_entry(path, tensor) for path, tensor in keras.tree.flatten_with_path(structure)]
    shape = built_shape(model)
    if _is_shape(shape) or not isinstance(shape, Mapping | list | tuple):
        return None
    return [InputEntry(path, None, None, tuple(sizes)) for path, sizes in _shapes(shape)]


def built_shape(model: keras.Model) -> Any:
    """Return the shape, or the structure of shapes, of the first argument of a built model's
    `call`; None if Keras does not know it."""
    return (model.get_build_config() or {}).get("input_shape")


def arguments_of(model: keras.Model, names: Collection[str]) -> list[InputEntry] | None:
    """Return the arguments of a subclass's `call` as `InputEntry`s, or None if it takes one alone:
    none of our names is an argument, and no second one is required."""
    parameters = keywords_of(model)
    required = [name for name, value in parameters.items() if value.default is value.empty]
    if len(names) == 1 or (len(required) < 2 and not parameters.keys() & set(names)):
        return None
    shape = built_shape(model)
    first = {next(iter(parameters)): tuple(shape)} if _is_shape(shape) else {}
    return [
        InputEntry((name,), None, None, first.get(name), name not in required)
        for name in parameters
    ]


def by_words(entries: Sequence[InputEntry], names: Collection[str]) -> dict[str, InputEntry]:
    """Return a dictionary: our name -> `InputEntry`, for the words that are names of ours."""
    words = [entry.word for entry in entries]
    return {
        entry.word: entry
        for entry in entries
        if entry.word in names and words.count(entry.word) == 1
    }


def bound(
    model: keras.Model, specs: Sequence[TensorSpec], binding: Mapping[str, Any] | None = None
) -> dict[str, tuple[Any, ...]] | None:
    """Return a dictionary: our name -> path of each input, where words, or forms, decide it; None
    where the structure of what a subclass of `keras.Model` reads is unknown.

    A path begins with an argument of `call` if `entries_of(model)` is None.

    Args:
        binding: some of our names -> what the model calls these inputs: a key, the name of an
            Input, an index, or a path of keys and indices.

    Raises:
        AmbiguousInputs: if nothing decides.
        ValueError: if `binding` names no input of ours or of the model, or two that are the same.
    """
    binding = binding or {}
    names = [spec.name for spec in specs]
    if unknown := [name for name in binding if name not in names]:
        raise ValueError(
            f"binding: {', '.join(unknown)}: no such input; there are {', '.join(names)}."
        )
    entries = entries_of(model)
    if entries is None:
        entries = arguments_of(model, names)
    elif structure_of(model) is None and len(entries) == 1 < len(names):
        entries = None
    if entries is None:
        return None
    known = bound_by_user(binding, entries)
    known |= by_words(
        [entry for entry in entries if entry not in known.values()],
        [name for name in names if name not in known],
    )
    rest = [spec for spec in specs if spec.name not in known]
    free = [entry for entry in entries if entry not in known.values()]
    required = [entry for entry in free if not entry.optional]
    possible = _assignments(rest, required) or _assignments(rest, free)
    if len(possible) > 1:
        bindings = [_paths(known | assignment, entries) for assignment in possible]
        raise AmbiguousInputs(
            question(model, [spec.name for spec in rest], free, possible[0]), bindings
        )
    if not possible or any(
        not entry.optional for entry in free if entry not in possible[0].values()
    ):
        there, wanted = (" and ".join(map(str, several)) or "none" for several in (free, rest))
        raise ValueError(
            f"a {type(model).__name__} is called with {there}, which can not be {wanted}; name "
            "each of its inputs, with the axes that it has: `inputs` of save_run or plan_export."
        )
    return _paths(known | possible[0], entries)


def bound_by_user(
    binding: Mapping[str, Any], entries: Sequence[InputEntry] | None
) -> dict[str, InputEntry]:
    """Return the user's binding as a dictionary: our name -> `InputEntry`.

    Raises:
        ValueError: if it names no input of the model, or two that are the same.
    """
    known = {name: _named_in(key, entries) for name, key in binding.items()}
    taken = [entry.path for entry in known.values()]
    if twice := [name for name, entry in known.items() if taken.count(entry.path) > 1]:
        raise ValueError(f"binding: {' and '.join(twice)} are the same input of the model.")
    return known


def fed_by_form(
    feeds: Mapping[str, Any], entries: Sequence[InputEntry]
) -> list[dict[str, InputEntry]]:
    """Return the bindings, our name -> `InputEntry`, of unnamed inputs to feeds of equal form."""
    orders = itertools.permutations(feeds, len(entries)) if len(entries) <= len(feeds) else ()
    bindings = (
        dict(zip(names, entries, strict=True))
        for names in orders
        if all(_alike(*feeds[name], entry) for name, entry in zip(names, entries, strict=True))
    )
    return list(itertools.islice(bindings, MOST_TRIED))


def paths_of(binding: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return a dictionary, our name -> path, for a binding, our name -> `InputEntry`."""
    return {name: entry.path for name, entry in binding.items()}


def _paths(binding, entries):
    """Return paths in the order of the model's dictionary, by which its code may read it."""
    return paths_of(dict(sorted(binding.items(), key=lambda item: entries.index(item[1]))))


def keywords_of(model: keras.Model) -> dict[str, inspect.Parameter]:
    """Return the parameters by name of a model's `call` that can be tensors."""
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {
        name: parameter
        for name, parameter in inspect.signature(model.call).parameters.items()
        if parameter.kind not in kinds and name != "training"
    }


def _entry(path, tensor):
    layer = getattr(getattr(tensor, "_keras_history", None), "operation", None)
    name = None if DEFAULT_NAME.fullmatch(tensor.name) else tensor.name
    return InputEntry(
        tuple(path), name, tensor.dtype, tensor.shape, getattr(layer, "optional", False)
    )


def _is_shape(shape):
    return isinstance(shape, list | tuple) and all(
        size is None or isinstance(size, int) for size in shape
    )


def _shapes(structure, path=()):
    if _is_shape(structure):
        yield path, structure
        return
    items = structure.items() if isinstance(structure, Mapping) else enumerate(structure)
    for key, inner in items:
        yield from _shapes(inner, (*path, key))


def _named_in(key, entries):
    """Return the entry that a user names by `key`."""
    path = tuple(key) if isinstance(key, list | tuple) else (key,)
    matching = [entry for entry in entries if entry.path == path]
    matching = matching or [entry for entry in entries if key == entry.name]
    if not matching:
        known = ", ".join(str(entry.name or _shown(entry)) for entry in entries)
        raise ValueError(f"binding: the model has no input {key!r}; it has {known}.")
    return matching[0]


def _assignments(specs, entries):
    """Return the ways to give each spec an entry of its form, dictionaries of name -> entry; [{}]
    without specs. Ways that keep the kind of numbers exclude the others."""
    for same_kind in (True, False):
        assignments = list(itertools.islice(_fitting(specs, entries, same_kind), MOST_TRIED))
        if assignments:
            return assignments
    return []


def _fitting(specs, entries, same_kind):
    if not specs:
        yield {}
        return
    first, *rest = specs
    for entry in entries:
        if _alike(first.dtype, first.shape, entry, same_kind):
            others = [other for other in entries if other is not entry]
            for more in _fitting(rest, others, same_kind):
                yield {first.name: entry, **more}


def _alike(dtype, shape, entry, same_kind=True):
    if same_kind and entry.dtype is not None and _kind(dtype) != _kind(entry.dtype):
        return False
    if entry.shape is None:
        return True
    return len(shape) == len(entry.shape) and not any(
        isinstance(size, int) and isinstance(closed, int) and size != closed
        for size, closed in zip(shape[1:], entry.shape[1:], strict=True)
    )


def _kind(dtype):
    return next((kind for kind in ("float", "int") if kind in dtype), dtype)


def question(
    model: keras.Model,
    names: Sequence[str],
    entries: Sequence[InputEntry],
    example: Mapping[str, Any],
) -> str:
    """Return the error of inputs that nothing tells apart; `example` is one of the bindings."""
    feeds = " and ".join(names)
    inputs = " and ".join(map(str, entries))
    binding = {name: _shown(entry) for name, entry in example.items()}
    return (
        f"no name tells which input of the {type(model).__name__}, {inputs}, is {feeds}: give "
        "save_run call=, what model(...) takes for the validation examples, or name them by "
        f"binding={binding}, if that is right"
    )


def _shown(entry):
    return entry.path[0] if len(entry.path) == 1 else list(entry.path)
