"""Masks: how many, of what, and what stands in their place."""

import numpy as np
import pytest

from seqkeras.data.masking import IGNORED, KINDS, Masking
from seqkeras.tokenizers import byte_pairs, word_piece
from tests.conftest import others_long

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{number}" for number in range(31)]
PIECES = [f"##p{number}" for number in range(11)]
TOKENIZER = word_piece([*SPECIAL, *WORDS, *PIECES])
SIZE, MASK, FIRST_PIECE = len(TOKENIZER), 4, 5 + len(WORDS)


def rows(count, width, seed=0):
    """[CLS] words of one to four tokens, an unknown one here and there [SEP], and padding."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(7, width + 1, count)
    token_ids = draw.integers(5, FIRST_PIECE, (count, width))
    pieces = draw.integers(FIRST_PIECE, SIZE, (count, width))
    token_ids = np.where(draw.random((count, width)) < 0.3, pieces, token_ids)
    token_ids = np.where(draw.random((count, width)) < 0.05, 1, token_ids)
    token_ids[:, 0] = 2
    token_ids[np.arange(count), lengths - 1] = 3
    return np.where(np.arange(width) < lengths[:, None], token_ids, 0), lengths


@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_what_stood_at_ordinary_places_and_nothing_else_changes(kind):
    token_ids, lengths = rows(301, 53)
    masked, positions, targets = Masking(TOKENIZER, kind)(
        token_ids, lengths, np.random.default_rng(1)
    )
    restored = masked.copy()
    for row in range(len(token_ids)):
        own = targets[row] != IGNORED
        assert not own[np.argmin(own) :].any() or own.all()  # those that count stand first
        assert (positions[row][~own] == 0).all() and (np.diff(positions[row][own]) > 0).all()
        assert (targets[row][own] >= 5).all()
        restored[row, positions[row][own]] = targets[row][own]
    np.testing.assert_array_equal(restored, token_ids)
    assert positions.shape == targets.shape == (301, round(0.15 * 53))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", others_long([0.4, 0.15]))
def test_the_share_of_a_row_is_chosen_of_which_a_tenth_is_kept_and_a_tenth_random(kind, share):
    token_ids, lengths = rows(4001, 61)
    masking = Masking(TOKENIZER, kind, share)
    masked, positions, targets = masking(token_ids, lengths, np.random.default_rng(1))
    found = (targets != IGNORED).sum(axis=1)
    wanted = np.maximum(1, np.round(share * (token_ids >= 5).sum(axis=1)))
    assert (found <= wanted).all()
    assert (found == wanted).mean() > (0.9 if kind == "words" else 0.999)
    own = targets != IGNORED
    given = np.take_along_axis(masked, positions, axis=1)[own]
    shares = [(given == MASK).mean(), (given == targets[own]).mean()]
    # A random token is the own one at times; spans are of one kind, so their shares vary more.
    tolerance = 0.015 if kind == "spans" else 0.006
    np.testing.assert_allclose(shares, [0.8, 0.1 + 0.1 / (SIZE - 5)], atol=tolerance)
    others = given[(given != MASK) & (given != targets[own])]
    counts = np.bincount(others, minlength=SIZE)
    assert counts[:5].sum() == 0  # never a special one
    expected = len(others) / (SIZE - 5)
    assert (np.abs(counts[5:] - expected) < 6 * expected**0.5 + 9).all()


def test_every_ordinary_place_is_chosen_alike():
    token_ids = np.tile(np.append(np.arange(5, 25), 3), (20_000, 1))
    lengths = np.full(20_000, 21)
    _, positions, targets = Masking(TOKENIZER)(token_ids, lengths, np.random.default_rng(1))
    counts = np.bincount(positions[targets != IGNORED], minlength=21)
    assert counts[20] == 0
    np.testing.assert_allclose(counts[:20] / 20_000, 3 / 20, atol=0.012)


def words_of(row):
    """The places of each word of a row."""
    found, before = [], False
    for place, token in enumerate(row):
        if token >= 5:
            if token >= FIRST_PIECE and before:
                found[-1].append(place)
            else:
                found.append([place])
        before = token >= 5
    return found


@pytest.mark.parametrize("kind", ["words", "spans"])
def test_words_are_chosen_as_a_whole_or_not_at_all(kind):
    token_ids, lengths = rows(501, 53)
    _, positions, targets = Masking(TOKENIZER, kind)(token_ids, lengths, np.random.default_rng(1))
    parts = 0
    for row in range(len(token_ids)):
        chosen = {*positions[row][targets[row] != IGNORED].tolist()}
        cut = [word for word in words_of(token_ids[row]) if 0 < len(chosen & {*word}) < len(word)]
        parts += len(cut)
        assert len(cut) <= (kind == "spans")  # where the budget ends
    assert kind == "words" or parts < 501


def test_spans_have_the_lengths_of_the_paper():
    """3.8 words on average (Joshi et al. 2020, section 3.1), and at most ten."""
    token_ids, lengths = np.full((4000, 401), 7), np.full(4000, 401)
    _, positions, targets = Masking(TOKENIZER, "spans", 10 / 401)(
        token_ids, lengths, np.random.default_rng(1)
    )
    sizes = [
        [len(run) for run in np.split(own, np.flatnonzero(np.diff(own) > 1) + 1)]
        for own in (row[of_row != IGNORED] for row, of_row in zip(positions, targets))
    ]
    assert {sum(of_row) for of_row in sizes} == {10}
    # Ten tokens a row are spans, of which the last is cut: so many as a renewal process makes.
    draw, counts = np.random.default_rng(2), []
    shares = 0.2 * 0.8 ** np.arange(10)
    for _ in range(20_000):
        spans = 1 + draw.choice(10, 10, p=shares / shares.sum())
        counts.append(1 + np.searchsorted(np.cumsum(spans), 10))
    # Two that are drawn side by side look like one, about 2 of 100 pairs.
    assert np.mean([len(of_row) for of_row in sizes]) == pytest.approx(np.mean(counts), rel=0.04)
    mean = np.sum(np.arange(1, 11) * shares / shares.sum())
    assert mean == pytest.approx(3.8, abs=0.01)


def test_byte_pairs_know_words_by_the_space_before_them():
    tokens = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "\u0120a", "b", "\u0120c"]
    tokenizer = byte_pairs({token: place for place, token in enumerate(tokens)}, [], "roberta")
    masking = Masking(tokenizer, "words", 0.6)
    assert tokens[masking.mask_id] == "<mask>"
    row = np.array([[2, 5, 6, 6, 7, 3]])
    for seed in range(9):
        _, positions, targets = masking(row, np.array([6]), np.random.default_rng(seed))
        assert {*positions[targets != IGNORED].tolist()} in ({4}, {1, 2, 3})


def test_a_vocabulary_without_a_mask_is_refused():
    with pytest.raises(ValueError, match=r"must hold \[MASK\] or <mask>"):
        Masking(word_piece(["[UNK]", "[CLS]", "[SEP]", "a"]))
    with pytest.raises(
        ValueError, match="kind must be one of tokens, words, spans; received 'all'"
    ):
        Masking(TOKENIZER, "all")


def test_a_row_without_an_ordinary_token_has_no_mask():
    token_ids = np.array([[2, 1, 3, 0], [2, 5, 6, 3]])
    masked, positions, targets = Masking(TOKENIZER)(
        token_ids, np.array([3, 4]), np.random.default_rng(1)
    )
    assert targets[0].tolist() == [IGNORED] and positions[0].tolist() == [0]
    np.testing.assert_array_equal(masked[0], token_ids[0])
    assert (targets[1] != IGNORED).sum() == 1
