"""Pad rows of token ids to arrays."""

from collections.abc import Sequence

import numpy as np

from .vocabularies import PAD


def pad(rows: Sequence[Sequence[int]], pad_id: int = PAD) -> tuple[np.ndarray, np.ndarray]:
    """Pad rows on the right to the length of the longest.

    Args:
        rows: B sequences of token ids.
        pad_id: the id of padding.

    Returns:
        token_ids: (B, T) int64, with pad_id after each row's end.
        lengths: (B,) int64, the number of ids of each row without padding.

    Example:
        >>> from seqkeras.serving.text import pad
        >>> token_ids, lengths = pad([[5, 6, 7], [8]])
        >>> token_ids.tolist(), lengths.tolist()
        ([[5, 6, 7], [8, 0, 0]], [3, 1])
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    token_ids = np.full((len(rows), lengths.max(initial=0)), pad_id, dtype=np.int64)
    for padded, row in zip(token_ids, rows):
        padded[: len(row)] = row
    return token_ids, lengths


def pad_nested(rows, pad_id=PAD):
    """Pad rows of lists, such as the characters of words or the children of nodes.

    Args:
        rows: B lists of lists of ids.
        pad_id: the id of padding.

    Returns:
        (B, T, W) int64, each axis after the first as long as its longest list and at least 1.
    """
    longest = max([1, *map(len, rows)])
    widest = max([1, *(len(values) for row in rows for values in row)])
    padded = np.full((len(rows), longest, widest), pad_id, dtype=np.int64)
    for row, lists in zip(padded, rows):
        for target, values in zip(row, lists):
            target[: len(values)] = values
    return padded
