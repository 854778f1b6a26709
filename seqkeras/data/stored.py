"""Examples and arrays that are kept packed: in memory, and beyond a size in files without a name.

Such a file lies in the folder of temporary files (TMPDIR), and is gone when the process ends.
"""

from __future__ import annotations

import array
import contextlib
import copy
import io
import itertools
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqkeras.data.texts import DataError

MOST_IN_MEMORY = 2**28  # bytes
BLOCK = 128  # examples that are packed, and read, together


class Stored(Sequence):
    """Examples that are kept packed; each is made anew whenever it is asked for.

    Indexed by an integer it gives an example; by a slice, or an array of integers or booleans, the
    examples there, which share what is stored. It is equal to a list of the same examples.

    Args:
        examples: an iterable of tuples, texts, numbers, lists and dictionaries of these; a tuple
            may be a named one of this library.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data.stored import Stored
        >>> pairs = Stored((number, str(number)) for number in range(1000))
        >>> pairs[-1], [*pairs[np.array([7, 3])]], len(pairs[10:])
        ((999, '999'), [(7, '7'), (3, '3')], 990)
        >>> [*pairs.mapped(lambda pair: pair[1])[:3]]
        ['0', '1', '2']
    """

    def __init__(self, examples: Iterable[Any]):
        self._blocks = _Blocks()
        size, examples = 0, iter(examples)
        while block := [*itertools.islice(examples, BLOCK)]:
            self._blocks.append(block)
            size += len(block)
        self._rows = np.arange(size)
        self._functions: tuple[Callable[[Any], Any], ...] = ()
        self._latest: tuple[int, list[Any]] = -1, []

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice | np.ndarray):
            some = copy.copy(self)
            some._rows = self._rows[index]
            return some
        number, offset = divmod(int(self._rows[index]), BLOCK)
        latest, block = self._latest
        if latest != number:
            block = self._blocks[number]
            self._latest = number, block
        example = block[offset]
        for function in self._functions:
            example = function(example)
        return example

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | Stored) and [*self] == [*other]

    def __repr__(self) -> str:
        return f"<Stored: {len(self):,} examples>"

    def __iter__(self) -> Iterator[Any]:
        examples = self._each()
        for function in self._functions:
            examples = map(function, examples)
        return iter(examples)

    def mapped(self, function: Callable[[Any], Any]) -> Stored:
        """Return what a function makes of each example, whenever it is asked for."""
        made = copy.copy(self)
        made._functions += (function,)
        return made

    def _each(self):
        """Yield the stored examples; of a block that is asked for in a row, all at once."""
        numbers, places = np.divmod(self._rows, BLOCK)
        start = 0
        for end in (*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)):
            if start < end:
                block = self._blocks[int(numbers[start])]
                yield from map(block.__getitem__, places[start:end].tolist())
            start = end


class _Blocks:
    """Lists of examples, packed."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(MOST_IN_MEMORY)  # noqa: SIM115, till `__del__`
        self._lock = threading.Lock()
        self._ends = array.array("q", [0])

    def __del__(self) -> None:
        self._file.close()

    def append(self, examples):
        with _room():
            self._file.write(pickle.dumps(examples, pickle.HIGHEST_PROTOCOL))
            self._file.flush()
        self._ends.append(self._file.tell())

    def __getitem__(self, number: int) -> list[Any]:
        start, end = self._ends[number : number + 2]
        with self._lock:
            self._file.seek(start)
            content = self._file.read(end - start)
        return _Unpickler(io.BytesIO(content)).load()


class _Unpickler(pickle.Unpickler):
    """Makes objects of our own classes alone, and ranges."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] != "seqkeras" and (module, name) != ("builtins", "range"):
            raise pickle.UnpicklingError(
                f"Stored: must hold plain examples; found {module}.{name}."
            )
        return super().find_class(module, name)


@contextlib.contextmanager
def _room():
    """Turn an error of a temporary file that is written within into one of its folder."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{tempfile.gettempdir()}: examples that are too many for memory need a temporary file "
            f"there ({error.strerror}); make room, or name another folder by TMPDIR."
        ) from error


def taken(examples: Sequence[Any], rows: np.ndarray) -> Sequence[Any]:
    """Return the examples at an array of indices: a `Stored` for a `Stored`, a list for a list."""
    if isinstance(examples, Stored):
        return examples[rows]
    return [examples[row] for row in rows.tolist()]


def mapped(examples: Sequence[Any], function: Callable[[Any], Any]) -> Sequence[Any]:
    """Return what a function makes of each example: a list for a list."""
    return examples.mapped(function) if isinstance(examples, Stored) else [*map(function, examples)]


def joined(parts: Iterable[Sequence[Any]]) -> Sequence[Any]:
    """Return the examples of some parts, one after the other: a `Stored` if all parts are such."""
    parts = [*parts]
    if len(parts) == 1:
        return parts[0]
    keep = Stored if all(isinstance(part, Stored) for part in parts) else list
    return keep(itertools.chain.from_iterable(parts))


class GrowingArray:
    """An array that grows, of a dtype that holds all of its parts.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data.stored import GrowingArray
        >>> numbers = GrowingArray()
        >>> for part in (np.array([7, 8], "int32"), np.array([2**40])):
        ...     numbers.append(part)
        >>> len(numbers), numbers.whole().tolist()
        (3, [7, 8, 1099511627776])
    """

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._size, self._shape = 0, (0,)
        self._file: Any = None
        self._dtype: Any = None

    def __len__(self) -> int:
        return self._shape[0]

    def append(self, part: np.ndarray) -> None:
        """Append an array; all of them differ in the first axis alone."""
        wider = np.result_type(*filter(None, (self._dtype, part.dtype)))
        if self._file is not None and wider != self._dtype:
            self._parts = [self.whole()]
            self._file = None
        self._dtype = wider
        self._shape = self._shape[0] + len(part), *part.shape[1:]
        self._parts.append(part)
        self._size += part.nbytes
        if self._size > MOST_IN_MEMORY:
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115, till `whole`
            self._write()

    def whole(self) -> np.ndarray:
        """Return all parts, one behind the other, at the end: nothing can be appended then."""
        if self._file is None:
            return np.concatenate(self._parts)
        with self._file:
            self._write()
            return np.memmap(self._file, self._dtype, "r", shape=self._shape)

    def _write(self):
        with _room():
            self._file.writelines(np.ascontiguousarray(part, self._dtype) for part in self._parts)
            self._file.flush()
        self._parts, self._size = [], 0


def joined_arrays(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays one behind the other, as `GrowingArray.whole` does; one array as it is."""
    if len(arrays) == 1:
        return arrays[0]
    whole = GrowingArray()
    for part in arrays:
        whole.append(part)
    return whole.whole()
