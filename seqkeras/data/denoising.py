"""Damaged rows of tokens, and what restores them, in NumPy.

    text      Thank you for inviting me to your party last week .
    spans     Thank you <0> me to your party <1> week .  ->  <0> for inviting <1> last
    infilling Thank you <mask> me to your <mask> party <mask> .  ->  the whole text

Damage is drawn for all rows of a batch at once.
"""

from typing import NamedTuple

import numpy as np


class Damaged(NamedTuple):
    """Damaged rows and their targets.

    Attributes:
        sources: (B, S) token ids, padded with zeros on the right.
        source_lengths: (B,) integers.
        targets: (B, T) token ids, padded likewise.
        target_lengths: (B,) integers.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import Damaged
        >>> three = np.array([3])
        >>> damaged = Damaged(np.array([[5, 90, 8]]), three, np.array([[90, 6, 7]]), three)
        >>> damaged.targets.tolist()  # the span that sentinel 90 stands for
        [[90, 6, 7]]
    """

    sources: np.ndarray
    source_lengths: np.ndarray
    targets: np.ndarray
    target_lengths: np.ndarray


def most_spans(length: int, share: float, span_length: float) -> int:
    """Return how many spans `span_mask` chooses in a row of a length at most."""
    [noise], [spans] = _counts(np.array([length]), share, span_length)
    return min(int(spans) + 1, int(noise))


def span_mask(
    lengths: np.ndarray,
    width: int,
    generator: np.random.Generator,
    share: float = 0.15,
    span_length: float = 3.0,
) -> np.ndarray:
    """Return (B, width) booleans, the tokens of random spans.

        n tokens of noise = round(share l), at least 1 and at most l - 1
        k spans           = round(n / span_length), at least 1 and at most n and l - n

    The n tokens are cut into k spans at random, every cut as likely as another, and the l - n
    others likewise; spans that stay and spans of noise take turns. Then the row is rolled by a
    random number of tokens (T5's random_roll), so that noise stands everywhere alike: without that,
    a row ends with noise, and a short one has no other. A span that is rolled over the end of the
    row becomes two. A row of one token has no noise.

    Args:
        lengths: (B,) integers l.
        width: tokens of the longest row, or more.
        generator: a `numpy.random.Generator`.
        share: share of tokens that are noise.
        span_length: mean length of a span.

    Reference: Raffel et al. 2020, section 3.3.4, https://arxiv.org/abs/1910.10683;
    https://github.com/google-research/text-to-text-transfer-transformer (random_spans_noise_mask)

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import span_mask
        >>> mask = span_mask(np.array([10, 4]), 10, np.random.default_rng(0), share=0.3)
        >>> mask.shape, mask.sum(axis=1).tolist()  # tokens of noise: 3 of 10, 1 of 4
        ((2, 10), [3, 1])
    """
    noise, spans = _counts(lengths, share, span_length)
    most = max(int(spans.max(initial=0)), 1)
    kept_lengths = _segment_lengths(lengths - noise, spans, most, generator)
    noise_lengths = _segment_lengths(noise, spans, most, generator)
    parts = np.stack([kept_lengths, noise_lengths], axis=2).reshape(len(lengths), 2 * most)
    ends = np.cumsum(parts, axis=1)  # of kept, noise, kept, noise, ...
    tokens = np.arange(width)
    rolled = (tokens + generator.integers(lengths)[:, None]) % lengths[:, None]
    part = (rolled[:, :, None] >= ends[:, None, :]).sum(axis=2)  # (B, width)
    return (part % 2 == 1) & (tokens < lengths[:, None])


def _counts(lengths, share, span_length):
    """Return (B,) tokens of noise and (B,) spans of rows."""
    noise = np.maximum(np.round(share * lengths), 1).astype(int)
    noise = np.minimum(noise, np.maximum(lengths - 1, 0))
    spans = np.minimum(np.maximum(np.round(noise / span_length), 1).astype(int), noise)
    return noise, np.minimum(spans, lengths - noise)


def _segment_lengths(counts, segments, most, generator):
    """Return (B, most) lengths of segments that make (B,) counts, each at least 1; zeros behind."""
    rows, width = len(counts), max(int(counts.max(initial=0)) - 1, 0)
    keys = np.where(np.arange(width) < counts[:, None] - 1, generator.random((rows, width)), 2.0)
    ranks = np.argsort(np.argsort(keys, axis=1), axis=1)
    begins = np.pad(ranks < segments[:, None] - 1, [(0, 0), (1, 0)], constant_values=True)
    number = np.cumsum(begins, axis=1) - 1
    real = np.arange(width + 1) < counts[:, None]
    lengths = np.zeros((rows, most), int)
    np.add.at(lengths, (np.nonzero(real)[0], number[real]), 1)
    return lengths


def span_corruption(
    token_ids: np.ndarray,
    lengths: np.ndarray,
    sentinel_ids: np.ndarray,
    generator: np.random.Generator,
    share: float = 0.15,
    span_length: float = 3.0,
) -> Damaged:
    """Replace spans by sentinels; the targets hold each span after its sentinel.

    As in T5's code no sentinel stands after the last span; the paper's figure 2 has one.

    Args:
        token_ids: (B, T) integers.
        lengths: (B,) integers, of each row without padding.
        sentinel_ids: ids of the sentinels in their order, one for each span of a row.
        generator, share, span_length: see `span_mask`.

    Returns:
        `Damaged` rows and their targets.

    Raises:
        ValueError: if a row has more spans than there are sentinels.

    Reference: Raffel et al. 2020, sections 3.1.4 and 3.3.4, https://arxiv.org/abs/1910.10683

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import span_corruption
        >>> tokens, sentinels, generator = np.arange(1, 9)[None], [90, 91], np.random.default_rng(0)
        >>> damaged = span_corruption(tokens, np.array([8]), sentinels, generator, share=0.25)
        >>> damaged.sources.shape, damaged.targets.shape  # 6 + 1, 1 + 2
        ((1, 7), (1, 3))
    """
    mask = span_mask(lengths, token_ids.shape[1], generator, share, span_length)
    begins = mask & ~np.pad(mask[:, :-1], [(0, 0), (1, 0)])
    number = np.cumsum(begins, axis=1) - 1
    if (most := int(number.max(initial=-1)) + 1) > len(sentinel_ids):
        raise ValueError(
            f"span_corruption: sentinel_ids must have one for each span of a row; received "
            f"{len(sentinel_ids)} for {most} spans."
        )
    sentinels = np.asarray(sentinel_ids)[np.maximum(number, 0)]
    real = np.arange(token_ids.shape[1]) < lengths[:, None]
    sources = _compacted(np.where(begins, sentinels, token_ids), real & (begins | ~mask))
    behind = (
        np.stack(pair, axis=2).reshape(len(lengths), -1)
        for pair in ((sentinels, token_ids), (begins, mask))
    )
    return Damaged(*sources, *_compacted(*behind))


def _compacted(token_ids, kept):
    """Return the kept tokens of rows, moved together, and their numbers."""
    lengths = kept.sum(axis=1)
    order = np.argsort(~kept, axis=1, kind="stable")[:, : lengths.max(initial=0)]
    moved = np.take_along_axis(token_ids, order, axis=1)
    return np.where(np.arange(order.shape[1]) < lengths[:, None], moved, 0), lengths


def text_infilling(
    token_ids: np.ndarray,
    lengths: np.ndarray,
    mask_id: int,
    generator: np.random.Generator,
    share: float = 0.3,
    span_length: float = 3.0,
) -> Damaged:
    """Replace spans of random lengths by one mask each; the targets are the rows themselves.

        span lengths ~ Poisson(span_length), until they sum to round(share l), at least 1

    The last span is cut to that sum. A span of length 0 is a mask that is inserted. Between two
    masks stands a token at least, so that the lengths of what is missing are those drawn.

    Args:
        token_ids, lengths, generator: see `span_corruption`.
        mask_id: id of the mask.
        share: share of tokens that are replaced.
        span_length: mean length of a span.

    Returns:
        `Damaged` rows; their targets are the given rows.

    Reference: Lewis et al. 2020, section 2.2, https://arxiv.org/abs/1910.13461

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import text_infilling
        >>> tokens, generator = np.arange(1, 9)[None], np.random.default_rng(0)
        >>> damaged = text_infilling(tokens, np.array([8]), mask_id=90, generator=generator)
        >>> 90 in damaged.sources, damaged.targets.tolist()
        (True, [[1, 2, 3, 4, 5, 6, 7, 8]])
    """
    rows, width = token_ids.shape
    budget = np.minimum(np.maximum(np.round(share * lengths), 1).astype(int), lengths)
    drawn = generator.poisson(span_length, (rows, 2 * int(budget.max(initial=0)) + 9))
    before = np.cumsum(drawn, axis=1) - drawn
    used = (before < budget[:, None]) & (np.arange(drawn.shape[1]) <= (lengths - budget)[:, None])
    drawn = np.minimum(drawn, budget[:, None] - before) * used
    kept = lengths - drawn.sum(axis=1)
    # A span stands in a gap: before the first of the tokens that are kept, or after one of them.
    gaps = np.where(np.arange(width + 1) <= kept[:, None], generator.random((rows, width + 1)), 2.0)
    gaps = np.argsort(gaps, axis=1)[:, : drawn.shape[1]]
    used, drawn = used[:, : gaps.shape[1]], drawn[:, : gaps.shape[1]]
    masks, missing = np.zeros((2, rows, width + 1), int)
    np.put_along_axis(masks, gaps, used.astype(int), axis=1)
    np.put_along_axis(missing, gaps, drawn, axis=1)
    row, number = np.nonzero(np.arange(width) < kept[:, None])
    source_lengths = kept + used.sum(axis=1)
    sources = np.full((rows, source_lengths.max(initial=0)), mask_id, token_ids.dtype)
    shift = np.cumsum(masks, axis=1), np.cumsum(missing, axis=1)
    target, origin = (number + moved[row, number] for moved in shift)
    sources[row, target] = token_ids[row, origin]
    sources[np.arange(sources.shape[1]) >= source_lengths[:, None]] = 0
    return Damaged(sources, source_lengths, token_ids, lengths)
