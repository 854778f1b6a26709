"""The outputs of a model that its user calls, for the first validation examples of a run.

    reference[i] = model(call)[i]

They are computed before any function of export's exists and lie in the run, so a comparison with
them shows inputs that export binds wrongly, and weights or arguments that saving has lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from seqkeras import files
from seqkeras.runs.record import TRAIN_AGAIN, RunError

if TYPE_CHECKING:
    import keras

REFERENCE = "reference.npz"
"""The outputs of the model as its user calls it, `Reference`."""
MOST_EXAMPLES = 64
MOST_BYTES = 64 * 2**20


@dataclasses.dataclass(frozen=True)
class OwnCall:
    """The user's call of a model with the inputs that export names.

    Args:
        paths: our name -> path of keys and indices in what the model is called with; () if that
            is the tensor itself.
        by_keyword: whether the first key of a path is the name of an argument of `call`.
    """

    paths: Mapping
    by_keyword: bool = False

    def __call__(self, model: keras.Model, arrays: Mapping[str, Any]) -> Any:
        """Return the model's outputs for arrays by our names."""
        inputs = _nested({path: arrays[name] for name, path in self.paths.items()})
        return model(**inputs) if self.by_keyword else model(inputs)


@dataclasses.dataclass(frozen=True)
class Reference:
    """Outputs of the user's call, with which export compares its own.

    Args:
        examples: the outputs of each validation example, from the first on: name -> array, whose
            first axis is the rows of the batch that the model reads for the example.

    Example:
        >>> import keras, numpy as np
        >>> from seqkeras.runs import Reference
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> reference = Reference.of_call(".", model, np.ones((4, 3)), count=4)
        >>> len(reference.examples), reference.examples[0]["output"].shape
        (4, (1, 2))
    """

    examples: list

    @classmethod
    def of_call(cls, where: Path | str, model: keras.Model, call: Any, count: int) -> Self:
        """Return the outputs of `model(call)`.

        Args:
            where: the run's folder, for errors.
            model: a Keras model.
            call: see `save_run`.
            count: the number of validation examples.

        Raises:
            RunError: if the model can not be called so, or the outputs are not of these examples.
        """
        try:
            call_rows = 0 if callable(call) else _rows(call)
            with _in_full_precision():
                outputs = _arrays(call(model) if callable(call) else model(_first(call)))
        except Exception as error:  # the model's own code can raise anything
            reason = " ".join(str(error).split()).rstrip(".")
            raise RunError(
                f"{where}: call must be what the model is called with, or a function of the model "
                f"that calls it; {type(error).__name__}: {reason}."
            ) from error
        rows = {array.shape[0] if array.ndim else None for array in outputs.values()}
        num_rows = next(iter(rows)) if len(rows) == 1 else None
        if num_rows is None or not 1 <= max(num_rows, call_rows) <= count:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in outputs.items())
            what = (
                f"it has {call_rows} rows" if call_rows > count else f"the model answers {shapes}"
            )
            raise RunError(
                f"{where}: call must be a batch of the validation examples, in their order, "
                f"{count} at most; {what}."
            )
        return cls._limited(
            {name: array[row : row + 1] for name, array in outputs.items()}
            for row in range(num_rows)
        )

    @classmethod
    def by_names(
        cls,
        model: keras.Model,
        own_call: OwnCall | None,
        feeds: Iterable[Mapping[str, Any]],
        binding: Mapping[str, Any],
    ) -> Self:
        """Return outputs of a model that is called with each feed by the names of the model's
        inputs.

        Where these are our names, and no binding says else, Keras itself binds the dictionary.

        Args:
            model: a Keras model.
            own_call: an `OwnCall`, for a model with other names.
            feeds: for each example the arrays by our names.
            binding: what the user says, see `save_run`.
        """
        own_names = None if binding else _own_names(model)
        with _in_full_precision():
            return cls._limited(
                _arrays(model(feed) if own_names == set(feed) else own_call(model, feed))
                for feed in feeds
            )

    @classmethod
    def _limited(cls, examples: Iterable[dict[str, np.ndarray]]) -> Self:
        limited, room = [], MOST_BYTES
        for outputs in examples:
            room -= sum(array.nbytes for array in outputs.values())
            if limited and (room < 0 or len(limited) == MOST_EXAMPLES):
                break
            limited.append(outputs)
        return cls(limited)

    def write(self, folder: Path | str) -> None:
        """Write the outputs into a run's folder, whole or not at all.

        Args:
            folder: the run's folder, which exists.

        Raises:
            OSError: if they can not be written.
        """
        arrays = {
            f"{index}/{name}": array
            for index, outputs in enumerate(self.examples)
            for name, array in outputs.items()
        }
        with files.written_aside(Path(folder) / REFERENCE) as aside:
            np.savez(aside, **arrays)

    @classmethod
    def read(cls, folder: Path | str) -> Self | None:
        """Return the reference of a run, or None if the run has none.

        Raises:
            RunError: if the file is damaged.
        """
        path = Path(folder) / REFERENCE
        if not path.exists():
            return None
        examples = {}
        try:
            with np.load(path, allow_pickle=False) as arrays:
                for key in arrays:
                    index, _, name = key.partition("/")
                    examples.setdefault(int(index), {})[name] = arrays[key]
            return cls([examples[index] for index in range(len(examples))])
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise RunError(f"can not be read: {error}", where=path, advice=TRAIN_AGAIN) from error


def named_outputs(outputs: Any, prefix: str = "") -> dict[str, Any]:
    """Return outputs of any structure as a flat dictionary; names within names are joined by "_".

    The only output of a model is called "output".

    Raises:
        ValueError: if two outputs get one name.
    """
    if isinstance(outputs, Mapping):
        named = {str(name): output for name, output in outputs.items()}
    elif isinstance(outputs, list | tuple):
        named = {str(index): output for index, output in enumerate(outputs)}
        prefix = prefix or "output"
    else:
        return {prefix or "output": outputs}
    flat = {}
    for name, value in named.items():
        parts = named_outputs(value, f"{prefix}_{name}" if prefix else name)
        if twice := flat.keys() & parts:
            raise ValueError(f"two outputs of the model have the name {', '.join(sorted(twice))}")
        flat |= parts
    return flat


def _rows(call):
    """Return the length of the longest batch of what a model is called with."""
    import keras  # which a reader of records does not need

    return max(len(array) for array in keras.tree.flatten(call))


def _first(call):
    """Return the first rows of what a model is called with, no more than are kept."""
    import keras

    return keras.tree.map_structure(lambda array: array[:MOST_EXAMPLES], call)


def _arrays(outputs):
    """Return outputs by name as arrays of NumPy's types."""
    import keras

    arrays = {}
    for name, tensor in named_outputs(outputs).items():
        array = keras.ops.convert_to_numpy(tensor)
        arrays[name] = array if array.dtype.kind in "biuf" else array.astype("float32")
    return arrays


def _own_names(model):
    """Return names by which a functional model of several inputs binds a dictionary, or None."""
    structure = getattr(model, "_inputs_struct", None)
    if isinstance(structure, Mapping):
        return set(structure)
    if isinstance(structure, list | tuple) and all(hasattr(one, "name") for one in structure):
        return {tensor.name for tensor in structure}
    return None


def _nested(values):
    """Return values by their paths as dictionaries and lists."""
    if () in values:
        return values[()]
    parts = {}
    for (key, *path), value in values.items():
        parts.setdefault(key, {})[tuple(path)] = value
    branches = {key: _nested(inner) for key, inner in parts.items()}
    if all(isinstance(key, int) for key in branches):
        return [branches.get(index) for index in range(max(branches) + 1)]
    return branches


def _in_full_precision():
    """Return a context on the CPU, where TensorFlow can choose: a GPU rounds products of
    float32."""
    import keras

    on_cpu = keras.backend.backend() == "tensorflow"
    return keras.device("cpu:0") if on_cpu else contextlib.nullcontext()
