"""Rows of lists of integers, such as the children of a tree's nodes, padded batch by batch."""

from collections.abc import Sequence

import numpy as np

from seqkeras.serving.text.packing import pad_nested


class NestedSequences:
    """Rows of lists of integers; rows that are taken are padded on both axes.

    Args:
        rows: list of lists of lists of integers.
        width: the length to which every list is padded; None pads to the longest that is taken.
        padding: the integer that stands after the end of a list, and in lists after a row's end.

    Attributes:
        lengths: (rows,) int64, the number of lists in each row.
        sizes: (rows, axes) int64, sizes of the axes that a batch pads as it likes: `lengths`, and
            without a width the length of each row's longest list.

    Raises:
        ValueError: if a list is longer than the width.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import NestedSequences
        >>> letters = NestedSequences([[[3, 4], [5]], [[6]]])  # the characters of words
        >>> letters.padded(np.array([0, 1])).tolist()
        [[[3, 4], [5, 0]], [[6, 0], [0, 0]]]
    """

    dtype = np.dtype("int64")

    def __init__(
        self, rows: Sequence[Sequence[Sequence[int]]], width: int | None = None, padding: int = 0
    ):
        self.rows, self.width, self.padding = rows, width, padding
        self.lengths = np.array([len(row) for row in rows], self.dtype)
        widths = np.array([max(map(len, row), default=0) for row in rows], self.dtype)
        sizes = [self.lengths] if width is not None else [self.lengths, widths]
        self.sizes = np.stack(sizes, axis=1)
        widest = widths.max(initial=0)
        if width is not None and widest > width:
            raise ValueError(
                f"NestedSequences: lists must have at most {width} ids; received {widest}."
            )

    @property
    def shape(self) -> tuple[int | None, ...]:
        return len(self.rows), None, self.width

    def padded(
        self, rows: np.ndarray, sizes: Sequence[int] | None = None, more: int = 0
    ) -> np.ndarray:
        """Return (len(rows), longest, width) int64.

        Args:
            rows: integers, which rows.
            sizes: to what the axes of `sizes` are padded; None: to the longest of these rows.
            more: how many empty lists stand after the longest row.
        """
        taken = pad_nested([self.rows[row] for row in rows], self.padding)
        longest, widest = taken.shape[1:]
        if sizes is not None:
            longest, widest = sizes[0], sizes[-1]
        width = widest if self.width is None else self.width
        room = [(0, 0), (0, longest + more - taken.shape[1]), (0, width - taken.shape[2])]
        return np.pad(taken, room, constant_values=self.padding)
