"""Damaged rows: what the papers promise, and that source and target give the text back."""

import numpy as np
import pytest
from scipy import stats

from seqkeras.data.denoising import most_spans, span_corruption, span_mask, text_infilling

FIRST_TOKEN, MASK = 211, 7  # ids of the text are FIRST_TOKEN at least
SENTINELS = np.arange(199, 99, -1)  # as T5's, from the last id down


def texts(generator, rows=23, longest=61):
    """(B, T) token ids that are all different, and (B,) lengths from 1 on."""
    lengths = generator.integers(1, longest + 1, rows)
    lengths[:2] = 1, longest
    token_ids = FIRST_TOKEN + generator.permuted(np.tile(np.arange(longest), (rows, 1)), axis=1)
    return np.where(np.arange(longest) < lengths[:, None], token_ids, 0), lengths


def unpadded(damaged):
    """Sources and targets as lists, without padding."""
    sources, source_lengths, targets, target_lengths = damaged
    for rows, lengths in ((sources, source_lengths), (targets, target_lengths)):
        assert not rows[np.arange(rows.shape[1]) >= lengths[:, None]].any()
        yield [row[:length].tolist() for row, length in zip(rows, lengths, strict=True)]


def spans_of(target):
    """Sentinel -> the tokens behind it."""
    spans = {}
    for token in target:
        if token < FIRST_TOKEN:
            spans[token] = last = []
        else:
            last.append(token)
    return spans


def t5_counts(length, share, span_length):
    """T5's numbers of tokens of noise and of spans, as its code rounds them."""
    noise = min(max(int(np.round(length * share)), 1), length - 1)
    return noise, min(max(int(np.round(noise / span_length)), 1), noise, length - noise)


def t5_mask(length, share, span_length, generator):
    """T5's random_spans_noise_mask of one row with random_roll, a loop: cuts are drawn as its
    shuffle does."""

    def segments(count, number):
        cuts = np.array([1] * (number - 1) + [0] * (count - number))
        generator.shuffle(cuts)
        lengths = [1]
        for cut in cuts:
            if cut:
                lengths.append(0)
            lengths[-1] += 1
        return lengths

    noise, number = t5_counts(length, share, span_length)
    mask = []
    for kept, damaged in zip(segments(length - noise, number), segments(noise, number)):
        mask += [False] * kept + [True] * damaged
    offset = generator.integers(length)
    return [mask[(place + offset) % length] for place in range(length)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("share", "span_length"), [(0.15, 3), (0.5, 1), (0.5, 5.5), (0.9, 2)])
def test_source_and_target_of_spans_give_the_text_back(share, span_length, seed):
    generator = np.random.default_rng(seed)
    token_ids, lengths = texts(generator)
    damaged = span_corruption(token_ids, lengths, SENTINELS, generator, share, span_length)
    for source, target, row, length in zip(*unpadded(damaged), token_ids, lengths, strict=True):
        spans = spans_of(target)
        assert [*spans] == SENTINELS[: len(spans)].tolist()
        assert [token for token in source if token < FIRST_TOKEN] == [*spans]
        restored = [token for known in source for token in spans.get(known, [known])]
        assert restored == row[:length].tolist()
        if length > 1:
            noise, number = t5_counts(length, share, span_length)
            assert sum(map(len, spans.values())) == noise
            is_cut = source[0] < FIRST_TOKEN and source[-1] < FIRST_TOKEN  # by the roll
            assert len(spans) == number + is_cut <= most_spans(length, share, span_length)
        assert len(target) <= length + 1


def test_spans_are_drawn_as_t5_draws_them():
    """Every mask of a row of 7 tokens, 3 of noise in 2 spans, has the probability of T5's loop."""
    generator, draws = np.random.default_rng(0), 24000
    masks = span_mask(np.full(draws, 7), 7, generator, 0.45, 1.6)
    references = [t5_mask(7, 0.45, 1.6, generator) for _ in range(draws)]
    counts = [
        np.unique(np.asarray(rows) @ 2 ** np.arange(7), return_counts=True)
        for rows in (masks, references)
    ]
    np.testing.assert_array_equal(counts[0][0], counts[1][0])
    assert stats.chi2_contingency([count for _, count in counts]).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("share", "span_length"), [(0.3, 3), (0.15, 1), (0.7, 2), (0.99, 3)])
def test_source_of_infilling_is_the_text_with_a_mask_for_each_span(share, span_length, seed):
    generator = np.random.default_rng(seed)
    token_ids, lengths = texts(generator)
    damaged = text_infilling(token_ids, lengths, MASK, generator, share, span_length)
    for source, target, row, length in zip(*unpadded(damaged), token_ids, lengths, strict=True):
        assert target == row[:length].tolist()
        kept = [token for token in source if token != MASK]
        places = [target.index(token) for token in kept]
        assert places == sorted(places)
        masks = np.array(source) == MASK
        assert masks.any() and not (masks[1:] & masks[:-1]).any()
        before = dict(zip(kept[1:], np.diff(places), strict=True))  # what is missing has a mask
        for token, previous in zip(source[1:], source):
            assert previous == MASK or token == MASK or before[token] == 1
        most = max(1, round(share * length))
        assert length - len(kept) <= most
        if share * length > 2 and share < 0.5:
            assert length - len(kept) == most


def test_lengths_of_infilled_spans_are_poisson_s():
    generator, length = np.random.default_rng(0), 997
    token_ids = np.tile(FIRST_TOKEN + np.arange(length), (29, 1))
    damaged = text_infilling(token_ids, np.full(29, length), MASK, generator, 0.3, 3.0)
    drawn = []
    for source in next(unpadded(damaged)):
        ends = np.array([FIRST_TOKEN - 1, *source, FIRST_TOKEN + length])
        places = np.flatnonzero(ends == MASK)
        drawn += (ends[places + 1] - ends[places - 1] - 1).tolist()
    counts = np.bincount(np.minimum(drawn, 8), minlength=9)
    expected = stats.poisson(3.0).pmf(np.arange(8))
    expected = np.append(expected, 1 - expected.sum()) * counts.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    assert counts[0] > 0  # masks that are inserted


def test_every_place_of_a_text_is_damaged_alike():
    """In short texts, too, which have one span."""
    lengths = np.repeat([5, 11, 29], 7000)
    mask = span_mask(lengths, 29, np.random.default_rng(0))
    for length in (5, 11, 29):
        counts = mask[lengths == length].sum(axis=0)
        assert stats.chisquare(counts[:length]).pvalue > 1e-3 and not counts[length:].any()


def test_the_same_seed_damages_a_text_alike():
    token_ids, lengths = texts(np.random.default_rng(3))
    for damage, ids in ((span_corruption, SENTINELS), (text_infilling, MASK)):
        one, same, other = (
            damage(token_ids, lengths, ids, np.random.default_rng(seed)) for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(one.sources, same.sources)
        assert one.sources.shape != other.sources.shape or (one.sources != other.sources).any()


def test_more_spans_than_sentinels_are_refused():
    token_ids, lengths = texts(np.random.default_rng(0))
    message = r"sentinel_ids must have one for each span of a row; received 2 for \d+ spans"
    with pytest.raises(ValueError, match=message):
        span_corruption(token_ids, lengths, SENTINELS[:2], np.random.default_rng(0))
