"""Many sources of different lengths through a function of padded batches."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def in_batches(
    function: Callable[..., tuple[Any, ...]],
    rows: Sequence[Sequence[int]],
    pad: Callable[..., tuple[np.ndarray, np.ndarray]],
    batch_size: int = 256,
    advance: Callable[[int], object] | None = None,
) -> tuple[np.ndarray, ...]:
    """Call a function on rows, sorted by length and padded, and put its results in order again.

    Args:
        function: (token_ids, lengths) -> tuple of arrays with the batch first. The size of the
            second axis may differ from batch to batch; further axes have one size.
        rows: list of lists of token ids.
        pad: rows -> (token_ids, lengths).
        batch_size: the most rows in a batch.
        advance: called with the number of rows after each batch, for a progress bar.

    Returns:
        The tuple of arrays for all rows, in the order of `rows`; zeros fill the second axis up to
        the longest.

    Raises:
        ValueError: if there are no rows.

    Example:
        >>> from seqkeras.decoding import in_batches
        >>> from seqkeras.tokenizers import pad
        >>> double = lambda token_ids, lengths: (2 * token_ids, lengths)
        >>> doubled, lengths = in_batches(double, [[3, 4, 5], [6]], pad, batch_size=1)
        >>> doubled.tolist(), lengths.tolist()
        ([[6, 8, 10], [12, 0, 0]], [3, 1])
    """
    if not rows:
        raise ValueError("in_batches: needs one row at least; received none.")
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    results = []
    for start in range(0, len(rows), batch_size):
        chosen = order[start : start + batch_size]
        result = function(*pad([rows[index] for index in chosen]))
        results.append([np.asarray(part) for part in result])
        if advance:
            advance(len(chosen))
    rank = np.argsort(order)
    return tuple(np.concatenate(_padded(parts))[rank] for parts in zip(*results, strict=True))


def _padded(parts):
    if parts[0].ndim == 1:
        return parts
    longest = max(part.shape[1] for part in parts)
    rest = [(0, 0)] * (parts[0].ndim - 2)
    return [np.pad(part, [(0, 0), (0, longest - part.shape[1]), *rest]) for part in parts]
