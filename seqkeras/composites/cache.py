"""The key/value cache of self-attention, one token or several at a time, passed in and out.

A cache is a buffer of a fixed length C, (B, N, C, H), so that a loop over steps keeps its shapes.
Every row has its own position: the number of tokens that it holds. Entries after it are never
attended to, and are overwritten.
"""

from keras import ops


def extend_cache(cache, entries, positions):
    """Write T entries after those that each row holds.

        cache(b, :, positions(b) + t) = entries(b, :, t)

    Args:
        cache: (B, N, C, H) keys or values.
        entries: (B, N, T, H), entries of T further tokens.
        positions: (B,) integers, how many each row holds.

    Returns:
        (B, N, C, H); entries that do not fit are left out.
    """
    positions = ops.convert_to_tensor(positions)[:, None]
    places = ops.cast(ops.arange(ops.shape(cache)[2]), positions.dtype)
    behind = places - positions  # (B, C): which t belongs here
    written = ops.logical_and(behind >= 0, behind < ops.shape(entries)[2])[:, None, :, None]
    cache, entries = ops.convert_to_tensor(cache), ops.convert_to_tensor(entries)
    if entries.shape[2] != 1:
        last = ops.shape(entries)[2] - 1
        chosen = ops.clip(behind, 0, last)[:, None, :, None]
        entries = ops.take_along_axis(entries, chosen, axis=2)
    return ops.where(written, entries, cache)


def cache_distances(positions, target_length, cache_length):
    """Return (B, T, C) integers: how far before each of T further tokens a place of the cache is.

    Args:
        positions: (B,) integers, how many tokens each row held before.
        target_length: T, a number or a scalar tensor.
        cache_length: C, in the same way.
    """
    positions = ops.convert_to_tensor(positions)[:, None]
    queries = positions + ops.cast(ops.arange(target_length), positions.dtype)  # (B, T)
    return queries[:, :, None] - ops.cast(ops.arange(cache_length), positions.dtype)


def cache_mask(distances, prefix_lengths=None):
    """Return (B, T, C) mask: each of T further tokens attends to itself and to what is before it.

    Args:
        distances: (B, T, C) integers, see `cache_distances`.
        prefix_lengths: (B,) integers, how many of a row's first tokens all attend to each other;
            None for none.
    """
    seen = distances >= 0
    if prefix_lengths is None:
        return seen
    places = ops.cast(ops.arange(ops.shape(distances)[2]), distances.dtype)
    lengths = ops.cast(prefix_lengths, distances.dtype)[:, None, None]
    return ops.logical_or(seen, places < lengths)
