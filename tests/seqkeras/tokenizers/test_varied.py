"""Words that are cut anew, beside the probabilities of all cuts of a word, added up by hand."""

import collections

import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from seqkeras.serving.text import SentencePieces, WordTable, word_piece
from seqkeras.tokenizers import learn_byte_pairs, learn_sentence_pieces, learn_word_piece
from seqkeras.tokenizers.varied import VariedPieces, VariedWordPieces, require_varied
from tests.refusals import refusals

LETTERS = ["a", "b", "c", "##a", "##b", "##c"]
TOKENS = [*LETTERS, "ab", "abc", "##bc", "##ca", "##cab", "##ab"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TOKENS, "d", "de"]
DRAWS = 20_000
WORDS = ["low", "lower", "lowest", "newer", "newest", "wide", "wider", "slow", "slower", "now"]


def texts(count=300, seed=0):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, 7))) for _ in range(count)]


def cuts(word, first=True):
    """Yield each way to cut a word, as a tuple of tokens of `TOKENS`."""
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        token = word[:end] if first else f"##{word[:end]}"
        if token in TOKENS:
            for rest in cuts(word[end:], first=False):
                yield (token, *rest)


def chance(cut, word, rate):
    """The probability of a cut, token by token: those that are longer were passed over."""
    product, place = 1.0, 0
    for token in cut:
        length = len(token.removeprefix("##"))
        prefix = "##" if place else ""
        longer = range(length + 1, len(word) - place + 1)
        passed = sum(f"{prefix}{word[place : place + size]}" in TOKENS for size in longer)
        product *= rate**passed * (1 if length == 1 else 1 - rate)
        place += length
    return product


def shares(drawn):
    counts = collections.Counter(map(tuple, drawn))
    return {cut: count / len(drawn) for cut, count in counts.items()}


def close(found, expected):
    """Shares of what was drawn are within five standard errors."""
    assert sum(expected.values()) == pytest.approx(1)
    assert found.keys() <= expected.keys()
    for cut, share in expected.items():
        error = 5 * (share * (1 - share) / DRAWS) ** 0.5 + 1e-6
        assert found.get(cut, 0) == pytest.approx(share, abs=error)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.7])
def test_a_word_is_cut_as_often_as_max_match_dropout_says(rate):
    word, tokenizer = "abcab", word_piece(VOCABULARY)
    row = tokenizer.analyze(word).token_ids
    drawn = [
        [tokenizer.token_of(index) for index in ids[1:-1]]
        for ids, _ in VariedWordPieces(tokenizer, rate)([row] * DRAWS, seed=3)
    ]
    expected = {cut: chance(cut, word, rate) for cut in cuts(word)}
    assert len(expected) > 8
    close(shares(drawn), expected)


def test_a_rate_of_0_cuts_as_ever():
    tokenizer = learn_word_piece(texts(), 60)
    rows = [tokenizer.analyze(text).token_ids for text in texts(20, seed=1)]
    assert [ids for ids, _ in VariedWordPieces(tokenizer, 0.0)(rows, seed=0)] == rows


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_words_stay_what_they_are(rate):
    tokenizer = learn_word_piece(texts(), 60)
    rows = [tokenizer.analyze(text).token_ids for text in texts(100, seed=1)]
    varied = VariedWordPieces(tokenizer, rate)
    drawn = varied(rows, seed=0)
    assert drawn == varied(rows, seed=0) != varied(rows, seed=1)
    assert [ids for ids, _ in drawn] != rows
    for row, (ids, places) in zip(rows, drawn, strict=True):
        assert tokenizer.decode(ids) == tokenizer.decode(row)
        assert (ids[0], ids[-1]) == (row[0], row[-1])
        begins = [place for place, index in enumerate(row) if not goes_on(tokenizer, index)]
        assert [*dict.fromkeys(places)] == begins
        assert [goes_on(tokenizer, index) for index in ids] == repeated(places)


def goes_on(tokenizer, index):
    return tokenizer.token_of(index).startswith("##")


def repeated(places):
    return [False, *(place == before for before, place in zip(places, places[1:]))]


def test_what_can_not_be_cut_otherwise_stays():
    tokenizer = word_piece(VOCABULARY)  # "e" is no token: where "de" is left out, nothing fits
    rows = [tokenizer.analyze("de xyz").token_ids]
    assert [tokenizer.token_of(index) for index in rows[0]] == ["[CLS]", "de", "[UNK]", "[SEP]"]
    for seed in range(20):
        assert VariedWordPieces(tokenizer, 0.9)(rows, seed) == [(rows[0], [0, 1, 2, 3])]


@pytest.mark.parametrize("pairs", [False, True])
def test_rows_that_become_too_long_are_truncated_as_texts_are(pairs):
    tokenizer, most = learn_word_piece(texts(), 60), 9 if pairs else 5
    both = [(text, other if pairs else None) for text, other in zip(texts(60), texts(60, seed=1))]
    rows = [tokenizer.analyze(*two, max_length=most, truncate=True).token_ids for two in both]
    varied = VariedWordPieces(tokenizer, 0.5)
    full = varied(rows, seed=0)
    cut = varied(rows, seed=0, most=most)
    separator, changed = tokenizer.id_of("[SEP]"), 0
    for row, (ids, places), (all_ids, _) in zip(rows, cut, full, strict=True):
        assert len(ids) == len(places) == min(len(all_ids), most)
        ends = [[*token_ids].count(separator) for token_ids in (row, ids)]
        assert ends == [1 + pairs] * 2 and ids[-1] == separator
        found, expected = parts_of(ids, separator), parts_of(all_ids, separator)
        for part, whole in zip(found, expected, strict=True):
            assert part == whole[: len(part)]
        dropped = [len(whole) - len(part) for part, whole in zip(found, expected)]
        if max(dropped):  # the longer text loses tokens, until both are of a length
            longest = max(map(len, found))
            assert all(not lost or longest - len(part) <= 1 for part, lost in zip(found, dropped))
        changed += len(row) == most and ids != row
    assert changed > 10


def parts_of(ids, separator):
    """The texts of a row, without the special tokens around them."""
    parts = [[]]
    for index in ids[1:]:
        if index == separator:
            parts.append([])
        else:
            parts[-1].append(index)
    return parts[:-1]


def pieces_of(kind):
    return learn_sentence_pieces(texts(), 40, kind, suffix=("</s>",), hard_vocab_limit=False)


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_a_unigram_model_draws_a_cut_by_its_probability(rate):
    tokenizer = pieces_of("unigram")
    pieces = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model).pieces
    scores = {piece.piece: piece.score for piece in pieces if piece.type == 1}
    written, weights = "\u2581lowest\u2581newer", {}

    def walk(place, cut, score):
        if place == len(written):
            weights[cut] = np.exp(0.02 / rate * score)
        for end in range(place + 1, len(written) + 1):
            if (piece := written[place:end]) in scores:
                walk(end, (*cut, tokenizer.id_of(piece)), score + scores[piece])

    walk(0, (), 0.0)
    assert len(weights) > 3
    total = sum(weights.values())
    drawn = VariedPieces(tokenizer, rate)(["lowest newer"] * DRAWS, seed=5)
    close(shares(drawn), {cut: weight / total for cut, weight in weights.items()})


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_texts_of_sentence_pieces_stay_what_they_are(kind):
    tokenizer, unseen = pieces_of(kind), texts(50, seed=1)
    few, many = (VariedPieces(tokenizer, rate)(unseen, seed=0) for rate in (0.05, 0.5))
    assert [tokenizer.decode(ids) for ids in many] == unseen
    plain = tokenizer.encode_all(unseen)
    lengths = [sum(map(len, rows)) for rows in (plain, few, many)]
    assert lengths == sorted({*lengths})
    varied = VariedPieces(tokenizer, 0.5)
    assert many == varied(unseen, seed=0) == varied(unseen, seed=0) != varied(unseen, seed=1)
    ended = VariedPieces(tokenizer, 0.5, special_tokens=True)(unseen, seed=0)
    assert ended == [[*ids, tokenizer.id_of("</s>")] for ids in many]


def with_other_ids():
    pieces = pieces_of("unigram")
    vocabulary = {pieces.token_of(index): index for index in range(len(pieces))}
    return SentencePieces(pieces.model, vocabulary)


WAYS = "needs tokens of the kinds word-piece, unigram or bpe, which cut a word in several ways; "
test_tokens_of_one_way_are_refused = refusals(
    (lambda: require_varied(WordTable(["<pad>", "<unk>"])), f"{WAYS}received a WordTable."),
    (lambda: VariedWordPieces(learn_byte_pairs(texts(), 300), 0.1), f"{WAYS}received a Subwords."),
    (lambda: VariedPieces(with_other_ids(), 0.1), f"{WAYS}received a SentencePieces with"),
    (lambda: VariedWordPieces(pieces_of("bpe"), 0.1), "VariedWordPieces: needs a WordPiece"),
)
