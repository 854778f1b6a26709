"""Rows of token ids to the rectangle that a graph takes."""

from collections.abc import Sequence

import numpy as np

from .vocabularies import PAD


def pad(rows: Sequence[Sequence[int]], pad_id: int = PAD) -> tuple[np.ndarray, np.ndarray]:
    """Pad rows on the right, as far as the longest.

    Args:
        rows: B sequences of token ids.
        pad_id: the id of padding.

    Returns:
        token_ids: (B, T) int64, with pad_id behind each row's end.
        lengths: (B,) int64, how many ids of each row are its own.
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    token_ids = np.full((len(rows), lengths.max(initial=0)), pad_id, dtype=np.int64)
    for padded, row in zip(token_ids, rows):
        padded[: len(row)] = row
    return token_ids, lengths


def pad_nested(rows, pad_id=PAD):
    """Pad rows of lists, as words of characters or nodes of children.

    Args:
        rows: B lists of lists of ids.
        pad_id: the id of padding.

    Returns:
        (B, T, W) int64, each axis behind the first as long as its longest list and at least 1.
    """
    longest = max([1, *map(len, rows)])
    widest = max([1, *(len(each) for row in rows for each in row)])
    padded = np.full((len(rows), longest, widest), pad_id, dtype=np.int64)
    for row, lists in zip(padded, rows):
        for place, each in zip(row, lists):
            place[: len(each)] = each
    return padded
