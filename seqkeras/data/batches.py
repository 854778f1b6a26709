"""Examples as arrays, and their batches as `fit` takes them."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import tree

from seqkeras.data.batching import WORTH, few_sizes, rounded_up
from seqkeras.data.nested import NestedSequences
from seqkeras.data.stored import GrowingArray
from seqkeras.targets import counts

if TYPE_CHECKING:
    import tensorflow as tf

    from seqkeras.data.batching import Order


class Sequences:
    """Rows of integers of different lengths in one flat array; rows that are taken are padded.

    Args:
        rows: list of lists of integers.
        width: the length to which every row is padded; None pads to the longest that is taken.
        padding: the integer that stands after a row's end.

    Attributes:
        lengths: (rows,) int64.

    Raises:
        ValueError: if a row is longer than the width.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import Sequences
        >>> token_ids = Sequences([[5, 6, 7], [8], [9, 9]])
        >>> token_ids[np.array([1, 2])].tolist()  # as long as the longest of these
        [[8, 0], [9, 9]]
    """

    dtype: np.dtype = np.dtype("int64")

    def __init__(self, rows: Sequence[Sequence[int]], width: int | None = None, padding: float = 0):
        self.lengths = np.array([len(row) for row in rows], self.dtype)
        longest = self.lengths.max(initial=0)
        if width is not None and longest > width:
            raise ValueError(f"Sequences: rows must have at most {width} ids; received {longest}.")
        self.width, self.padding = width, padding
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.values = _narrow(np.fromiter(itertools.chain.from_iterable(rows), self.dtype))

    @classmethod
    def flat(cls, values: np.ndarray, lengths: np.ndarray, padding: float = 0) -> Self:
        """Return rows of the lengths (rows,) int64, whose values lie one row after the other."""
        rows = cls([], padding=padding)
        rows.values, rows.lengths, rows.starts = values, lengths, np.cumsum(lengths) - lengths
        return rows

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of all parts, one part after the other; there must be one part at least.

        Width and padding are the first part's. Many values are kept in a file
        (`seqkeras.data.stored`).
        """
        whole: Any = None
        lengths, starts, values = [], [], GrowingArray()
        for part in parts:
            whole = whole or copy.copy(part)
            lengths.append(part.lengths)
            starts.append(part.starts + len(values))
            values.append(part.values)
        whole.lengths, whole.starts = np.concatenate(lengths), np.concatenate(starts)
        whole.values = values.whole()
        return whole

    def chosen(self, rows: np.ndarray | slice) -> Self:
        """Return some rows, which share the values with these.

        Args:
            rows: an array of integers, an array of booleans for all rows, or a slice.
        """
        some = copy.copy(self)
        some.starts, some.lengths = self.starts[rows], self.lengths[rows]
        return some

    def compact(self, rows: np.ndarray) -> Self:
        """Return the rows of an array of integers, whose values lie one row after the other in an
        array of their own."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        ends = np.cumsum(lengths)
        places = np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())
        return self.flat(self.values[places], lengths, self.padding)

    def without_ends(self, first: int = 0, last: int = 0, padding: float = 0) -> Self:
        """Return the rows without some first and last values; the values are shared.

        Args:
            first, last: counts of values that each row has at least.
            padding: the integer that stands after a row's end.
        """
        inner = copy.copy(self)
        inner.starts, inner.lengths = self.starts + first, self.lengths - first - last
        inner.padding = padding
        return inner

    @property
    def shape(self) -> tuple[int | None, ...]:
        return len(self.lengths), self.width

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return (len(rows), width) int64, padded after each row's end."""
        return self.padded(rows)

    def rows(self) -> list[list[int]]:
        """Return the rows as lists, without padding."""
        return [*self.each_row()]

    def each_row(self) -> Iterator[list[int]]:
        """Yield the rows as lists, without padding."""
        for start, end in zip(self.starts, self.starts + self.lengths):
            yield self.values[start:end].tolist()

    @property
    def sizes(self) -> np.ndarray:
        """The (rows, axes) sizes of the axes that a batch pads as it likes: none, with a width."""
        return self.lengths[:, np.newaxis][:, : int(self.width is None)]

    def padded(
        self, rows: np.ndarray, sizes: Sequence[int] | None = None, more: int = 0
    ) -> np.ndarray:
        """Return the rows of a batch.

        Args:
            rows: integers, which rows.
            sizes: to what the axes of `sizes` are padded; None: to the longest of these rows.
            more: how much further.
        """
        lengths = self.lengths[rows]
        width = self.width
        if width is None:
            width = int(lengths.max(initial=0) if sizes is None else sizes[0]) + more
        steps = np.arange(width)
        real = steps < lengths[:, None]
        padded = np.full((*real.shape, *self.values.shape[1:]), self.padding, self.dtype)
        padded[real] = self.values[(self.starts[rows][:, None] + steps)[real]]
        return padded


class FrameSequences(Sequences):
    """Rows of frames, float32 arrays (length, features) of different lengths; rows that are taken
    are padded with zeros.

    Args:
        rows: list of such arrays, one at least.

    Attributes:
        lengths: (rows,) int64.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import FrameSequences
        >>> frames = FrameSequences([np.ones((5, 3)), np.ones((2, 3))])
        >>> frames.shape
        (2, None, 3)
        >>> padded = frames[np.array([0, 1])]
        >>> padded.shape, float(padded.sum())  # zeros are padding
        ((2, 5, 3), 21.0)
    """

    dtype = np.dtype("float32")

    def __init__(self, rows: Sequence[np.ndarray]):
        self.lengths = np.array([len(row) for row in rows], "int64")
        self.width, self.padding = None, 0
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.values = np.concatenate(rows).astype(self.dtype)

    @property
    def shape(self) -> tuple[int | None, ...]:
        return len(self.lengths), None, *self.values.shape[1:]


class Batches(keras.utils.PyDataset):
    """(inputs, targets) of the rows that an order names, on every backend.

    As a `keras.utils.PyDataset` it has an epoch for each pass over the rows:
    `model.fit(batches, epochs=5)`.

    Args:
        inputs, targets: an array with a row for each example, `Sequences`, `FrameSequences`,
            `NestedSequences`, or a dictionary of these.
        order: the rows of each batch, such as `seqkeras.data.BucketedBatches`.
        few_shapes: pad to few sizes, for backends that compile a step for each shape; None: where
            the backend is not TensorFlow. Batches of one number of rows have at most six shapes,
            fewer where there are few batches (`seqkeras.data.batching.few_sizes`); other batches
            have sizes that are `rounded_up`.
        tokens: (rows,) integers, the number of tokens of each row, by which speed is counted; None:
            the length of the first array that has one, targets before inputs.
        vary: (number of a batch, its rows) -> inputs and targets of these rows, in their order, of
            the same forms; None: a row is the same whenever it is taken.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import Batches, BucketedBatches, Sequences
        >>> token_ids, labels = Sequences([[5, 6, 7], [8], [9, 9, 9], [7]]), np.array([1, 0, 1, 0])
        >>> order = BucketedBatches(token_ids.lengths, batch_size=2, seed=0)
        >>> batches = Batches({"token_ids": token_ids}, labels, order)  # for model.fit(batches)
        >>> sorted(targets.tolist() for _, targets in batches)
        [[0, 0], [1, 1]]
    """

    def __init__(
        self,
        inputs: object,
        targets: object,
        order: Order,
        few_shapes: bool | None = None,
        tokens: Sequence[int] | np.ndarray | None = None,
        vary: Callable[[int, np.ndarray], tuple[Any, Any]] | None = None,
    ):
        super().__init__()
        self.arrays = inputs, targets
        self.order: Any = order  # with passes for `fit`; without them, `from_step` alone
        self.tokens = None if tokens is None else np.asarray(tokens)
        if few_shapes is None:
            few_shapes = keras.backend.backend() != "tensorflow"
        self.few_shapes = few_shapes
        self.number = -1  # of the pass; Keras looks at two batches before the first one begins
        self.group, self.ignored = None, None
        self.vary = vary

    def __len__(self) -> int:
        return self.order.batches_per_pass

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Return a batch of the present pass, by its index.

        If the first two batches have the same length, Keras on TensorFlow takes it for the length
        of all batches; the second batch is therefore padded by one step more.
        """
        number = max(self.number, 0)
        rows = self.order.of_pass(number)[index]
        more = int(index == 1 and keras.backend.backend() == "tensorflow")
        return self._numbered(number * len(self) + index, rows, more)

    def on_epoch_begin(self) -> None:
        self.number += 1  # `on_epoch_end` is called once before the first epoch too

    def from_step(self, step: int) -> Iterator[tuple[Any, ...]]:
        """Yield the batches of `step`, `step + 1`, and so on without end, as NumPy arrays."""
        batches = self._batches_from(step * (self.group or 1))
        yield from batches if self.group is None else self._weighted(batches)

    def in_groups(self, size: int, ignored: float | None = None) -> Self:
        """Return the same batches, each with a weight for every target, which sum to the size over
        so many batches: the sum of weighted losses, over the size, is the mean over a group.

        Args:
            size: batches of which one step is made.
            ignored: target that is left out, such as padding, or NaN; None: none is.
        """
        grouped = copy.copy(self)
        grouped.group, grouped.ignored = size, ignored
        return grouped

    def tokens_from(self, step: int) -> Iterator[int]:
        """Yield the number of tokens of each of these batches; of rows without an axis of several
        steps the rows."""
        inputs = sorted(tree.flatten(self.arrays[0]), key=lambda array: not _are_tokens(array))
        arrays = [*tree.flatten(self.arrays[1]), *inputs]
        several = (array for array in arrays if len(array.shape) > 1 and array.shape[1] != 1)
        counted = next(several, arrays[0])
        for rows in self.order.from_step(step * (self.group or 1)):
            yield _tokens(counted, rows) if self.tokens is None else int(self.tokens[rows].sum())

    def for_fit(self, step: int) -> Any:
        """Return batches from a step on as `model.fit` takes them on the backend that there is."""
        is_tensorflow = keras.backend.backend() == "tensorflow"
        return self.dataset(step) if is_tensorflow else self.from_step(step)

    def dataset(self, step: int = 0) -> tf.data.Dataset:
        """Return the batches as a `tf.data.Dataset`, which prepares two batches ahead."""
        import tensorflow as tf

        def spec(array, dtype=None):
            shape = self.order.batch_size, *array.shape[1:]
            return tf.TensorSpec(shape, dtype or array.dtype)

        signature = tree.map_structure(spec, self.arrays)
        if self.group is not None:
            weights = tree.map_structure(lambda array: spec(array, "float32"), self.arrays[1])
            signature = *signature, weights
        batches = tf.data.Dataset.from_generator(
            lambda: self.from_step(step), output_signature=signature
        )
        options = tf.data.Options()
        options.autotune.enabled = False  # its thread delays the end of an iterator by up to 40 s
        return batches.prefetch(2).with_options(options)

    def _batches_from(self, number):
        return itertools.starmap(self._numbered, enumerate(self.order.from_step(number), number))

    def _numbered(self, number, rows, more=0):
        """Return the batch of a number, which may vary its rows."""
        if self.vary is None:
            return self._batch(rows, more)
        return self._padded(self.vary(number, rows), np.arange(len(rows)), more)

    def _batch(self, rows, more=0):
        return self._padded(self.arrays, rows, more)

    def _padded(self, arrays, rows, more):
        flat = tree.flatten(arrays)
        sizes = self._few_sizes(flat, rows) if self.few_shapes else len(flat) * [None]
        taken = [
            array.padded(rows, size, more) if _are_tokens(array) else array[rows]
            for array, size in zip(flat, sizes, strict=True)
        ]
        return tree.pack_sequence_as(arrays, taken)

    @functools.cached_property
    def _few(self):
        """For each array a list of the few sizes of each of its axes; None where batches differ in
        rows, or are not known."""
        if self.order.batch_size is None or not hasattr(self.order, "of_pass"):
            return None
        batches = self.order.of_pass(0)
        worth = 0.0 if keras.backend.backend() == "torch" else WORTH  # PyTorch compiles no step
        return [
            [
                few_sizes(
                    [axis[rows].max() for rows in batches], longest=axis.max(initial=1), worth=worth
                )
                for axis in _sizes(array).T
            ]
            for array in tree.flatten(self.arrays)
        ]

    def _few_sizes(self, arrays, rows):
        """Return the sizes to which each array is padded: of each axis one of the few, in the same
        place for all."""
        needed = [_sizes(array)[rows].max(axis=0, initial=0) for array in arrays]
        if self._few is None:
            return [rounded_up(sizes) for sizes in needed]
        axes = zip(itertools.chain(*self._few), itertools.chain(*needed), strict=True)
        index = max((np.searchsorted(few, size) for few, size in axes), default=0)
        return [
            [max(few[min(index, len(few) - 1)], size) for few, size in zip(*pair, strict=True)]
            for pair in zip(self._few, needed, strict=True)
        ]

    def _weighted(self, batches):
        while group := list(itertools.islice(batches, self.group)):
            counted = [tree.map_structure(self._counted, targets) for _, targets in group]
            totals = tree.map_structure(
                lambda *arrays: sum(count.sum() for count in arrays), *counted
            )
            for (inputs, targets), real in zip(group, counted, strict=True):
                weights = tree.map_structure(
                    lambda count, total: (count * (self.group / max(total, 1))).astype("float32"),
                    real,
                    totals,
                )
                yield inputs, targets, weights

    def _counted(self, targets):
        if self.ignored is None:
            return np.ones(targets.shape)
        return counts(targets, self.ignored).astype("float64")


def _narrow(integers):
    """Return integers in half as many bytes, if all of them fit."""
    limits = np.iinfo("int32")
    fits = limits.min <= integers.min(initial=0) and integers.max(initial=0) <= limits.max
    return integers.astype("int32") if fits else integers


def _are_tokens(array):
    return isinstance(array, Sequences | NestedSequences)


def _sizes(array):
    """Return the (rows, axes) sizes of what is padded; no axes where nothing is."""
    return array.sizes if _are_tokens(array) else np.empty((array.shape[0], 0), int)


def _tokens(array, rows):
    if _are_tokens(array):
        return int(array.lengths[rows].sum())
    return len(rows) * (array.shape[1] if len(array.shape) > 1 else 1)
