"""Examples as arrays, and their batches as `fit` takes them."""

import itertools
import operator

import numpy as np
from keras import tree


class Sequences:
    """Rows of integers of different lengths in one flat array; what is taken of them is padded.

    Args:
        rows: list of lists of integers.
        width: the length to which every row is padded; None pads to the longest that is taken.
        padding: the integer that stands behind a row's end.

    Attributes:
        lengths: (rows,) int64.

    Raises:
        ValueError: if a row is longer than the width.
    """

    dtype = np.dtype("int64")

    def __init__(self, rows, width=None, padding=0):
        self.lengths = np.array([len(row) for row in rows], self.dtype)
        longest = self.lengths.max(initial=0)
        if width is not None and longest > width:
            raise ValueError(f"Sequences: rows must have at most {width} ids; received {longest}.")
        self.width, self.padding = width, padding
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.values = np.fromiter(itertools.chain.from_iterable(rows), self.dtype)

    @property
    def shape(self):
        return len(self.lengths), self.width

    def __getitem__(self, rows):
        """(len(rows), width) int64, padded after each row's end."""
        lengths = self.lengths[rows]
        width = lengths.max(initial=0) if self.width is None else self.width
        steps = np.arange(width)
        real = steps < lengths[:, None]
        padded = np.full(real.shape, self.padding, self.dtype)
        padded[real] = self.values[(self.starts[rows][:, None] + steps)[real]]
        return padded


class Batches:
    """(inputs, targets) of the rows that an order names, on every backend.

    Args:
        inputs, targets: an array with a row for each example, `Sequences`, or a dictionary of such.
        order: yields the rows of each batch, as `seqkeras.data.batching.BucketedBatches`.
    """

    def __init__(self, inputs, targets, order):
        self.arrays = inputs, targets
        self.order = order

    def from_step(self, step):
        """Yields the batches of `step`, `step + 1`, and so on without end, as NumPy arrays."""
        for rows in self.order.from_step(step):
            yield tree.map_structure(operator.itemgetter(rows), self.arrays)

    def dataset(self, step):
        """The same as a `tf.data.Dataset`, which prepares two batches ahead."""
        import tensorflow as tf

        signature = tree.map_structure(
            lambda array: tf.TensorSpec((self.order.batch_size, *array.shape[1:]), array.dtype),
            self.arrays,
        )
        batches = tf.data.Dataset.from_generator(
            lambda: self.from_step(step), output_signature=signature
        )
        return batches.prefetch(2)
