"""Rows of pre-training: pairs of sentences, full sentences, and their batches."""

import numpy as np
import pytest
from keras import tree

from seqkeras.data.masking import IGNORED, Masking
from seqkeras.data.pretraining import EveryRow, PretrainingBatches, ShardOrder
from seqkeras.data.sentence_pairs import FullSentences, SentencePairs
from seqkeras.data.token_records import ShardTokens
from seqkeras.tokenizers import word_piece
from tests.refusals import refusals

CLS, SEP = 2, 3


def shards(sizes=((9, 1, 14), (11, 6)), longest=13, seed=0):
    """Shards of documents, whose tokens count up from 1,000: each is found again by its number."""
    draw, token, found = np.random.default_rng(seed), 1000, []
    for counts in sizes:
        documents = []
        for count in counts:
            documents.append([])
            for length in draw.integers(1, longest, count).tolist():
                documents[-1].append([*range(token, token + length)])
                token += length
        found.append(documents)
    return found, [ShardTokens.of_documents(documents) for documents in found]


def text_of(part):
    """A row's part without its special tokens."""
    return part[part >= 1000]


def drawn(rows, repeats=1):
    """Every row, drawn so many times."""
    generator = np.random.default_rng(1)
    return [
        rows(shard, chunk, generator)
        for _ in range(repeats)
        for shard, count in enumerate(rows.counts)
        for chunk in range(count)
    ]


def places(documents):
    """token -> the number of its document, and of its sentence; and the last token of each."""
    document_of, begins, last = {}, set(), {}
    for number, document in enumerate(sum(documents, [])):
        for sentence in document:
            begins.add(sentence[0])
            for token in sentence:
                document_of[token] = number
                last[number] = token
    return document_of, begins, last


@pytest.mark.parametrize("max_length", [7, 29, 300])
def test_a_second_text_follows_or_begins_with_a_sentence_of_another_document(max_length):
    documents, tokens = shards()
    document_of, begins, last = places(documents)
    for parts, is_other in drawn(SentencePairs(tokens, max_length, CLS, SEP), 60):
        first, second = map(text_of, parts)
        assert parts[0].tolist() == [CLS, *first, SEP] and parts[1].tolist() == [*second, SEP]
        assert len(first) and len(second) and sum(map(len, parts)) <= max_length
        for text in (first, second):
            assert (np.diff(text) == 1).all()
            assert len({document_of[token] for token in text}) == 1
        one, other = document_of[first[0]], document_of[second[0]]
        if is_other:
            assert one != other and second[0] in begins
        else:
            assert second[0] == first[-1] + 1 and one == other


def test_half_of_the_second_texts_follow_and_a_tenth_of_the_rows_is_short():
    documents, tokens = shards(((90, 70), (80,)))
    _, _, last = places(documents)
    found = drawn(SentencePairs(tokens, 41, CLS, SEP), 100)
    assert np.mean([is_other for _, is_other in found]) == pytest.approx(0.5, abs=0.015)
    lengths = np.array([sum(map(len, parts)) for parts, _ in found])
    ends = np.array([parts[1][-2] in {*last.values()} for parts, _ in found])
    # Rows are full, unless they are short or the document of B ends; 37 of 38 short lengths are
    # under the row's.
    assert (lengths[~ends] < 41).mean() == pytest.approx(0.1 * 38 / 39, abs=0.015)
    none_short = drawn(SentencePairs(tokens, 41, CLS, SEP, short=0.0), 10)
    assert all(
        sum(map(len, parts)) == 41 or parts[1][-2] in {*last.values()} for parts, _ in none_short
    )


def test_other_documents_are_drawn_alike_from_every_shard():
    documents, tokens = shards(((30,), (3, 5), (2,)))
    document_of, _, _ = places(documents)
    found = [
        document_of[text_of(parts[1])[0]]
        for parts, is_other in drawn(SentencePairs(tokens, 15, CLS, SEP), 300)
        if is_other and document_of[text_of(parts[0])[0]] == 0
    ]
    np.testing.assert_allclose(np.bincount(found)[1:] / len(found), 1 / 3, atol=0.03)


@pytest.mark.parametrize("max_length", [5, 17, 90])
def test_full_sentences_are_every_token_once_with_a_sep_between_documents(max_length):
    documents, tokens = shards(((9, 1, 14), (11, 6)), longest=20)
    rows = FullSentences(tokens, max_length, CLS, SEP)
    found, lengths = [], []
    document_of, _, _ = places(documents)
    for [row], is_other in drawn(rows):
        assert not is_other and row[0] == CLS and row[-1] == SEP
        lengths.append(len(row))
        for before, token, after in zip(row[1:-2], row[2:-1], row[3:]):
            if token == SEP:
                assert document_of[before] + 1 == document_of[after]
            elif before != SEP:
                assert document_of[before] == document_of[token]
        found += text_of(row).tolist()
    assert found == [token for part in documents for d in part for s in d for token in s]
    assert max(lengths) <= max_length
    assert np.mean(lengths) > 0.6 * max_length


def test_a_pass_reads_each_row_once_in_an_order_of_its_own():
    order = ShardOrder([7, 0, 12, 5], 5, seed=3)
    assert order.batches_per_pass == 4
    passes = []
    for number in range(2):
        batches = [order.batch(number, place) for place in range(4)]
        passes.append([row for each in batches for row in zip(each.shards, each.chunks)])
        assert len({*passes[-1]}) == 20 and all(
            0 <= chunk < [7, 0, 12, 5][shard] for shard, chunk in passes[-1]
        )
    assert passes[0] != passes[1]
    with pytest.raises(ValueError, match="^a batch of 25 needs as many rows; received 24"):
        ShardOrder([7, 0, 12, 5], 25, seed=3)


TOKENIZER = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(3000))])


def batches_of(few_shapes=False, seed=1, pairs=True):
    _, tokens = shards(((30, 20), (25, 9)))
    kind = SentencePairs if pairs else FullSentences
    rows = kind(tokens, 31, CLS, SEP)
    order = ShardOrder(rows.counts, 6, seed)
    return PretrainingBatches(rows, Masking(TOKENIZER), order, 31, few_shapes)


@pytest.mark.parametrize("few_shapes", [False, True])
@pytest.mark.parametrize("pairs", [True, False])
def test_a_batch_is_what_the_model_reads_and_what_it_is_asked(pairs, few_shapes):
    batches = batches_of(few_shapes, pairs=pairs)
    for _, (inputs, targets) in zip(range(9), batches.from_step(0)):
        token_ids, lengths = inputs["token_ids"], inputs["lengths"]
        width = token_ids.shape[1]
        assert width == 31 if few_shapes else lengths.max() <= width <= 31
        assert (token_ids[:, 0] == CLS).all()
        assert (token_ids[np.arange(6), lengths - 1] == SEP).all()
        assert (token_ids[np.arange(width) >= lengths[:, None]] == 0).all()
        assert (targets["masked"] != IGNORED).sum() > 6
        assert ("segment_ids" in inputs) == ("next" in targets) == pairs
        if pairs:
            for ids, segments, length in zip(token_ids, inputs["segment_ids"], lengths):
                middle = int(np.flatnonzero(ids == SEP)[0]) + 1
                expected = (np.arange(width) >= middle) & (np.arange(width) < length)
                np.testing.assert_array_equal(segments, expected)
            assert {*targets["next"].tolist()} <= {0, 1}


def test_batches_are_a_function_of_seed_and_step_with_fresh_masks_at_each_pass():
    batches = batches_of()
    stream = [batch for _, batch in zip(range(30), batches.from_step(0))]
    later = [batch for _, batch in zip(range(8), batches_of().from_step(22))]
    for one, same in zip(stream[22:], later, strict=True):
        tree.map_structure(np.testing.assert_array_equal, one, same)
    per_pass = batches.order.batches_per_pass
    masked = [
        {tuple(row) for inputs, _ in part for row in inputs["token_ids"].tolist()}
        for part in (stream[:per_pass], stream[per_pass : 2 * per_pass])
    ]
    assert not masked[0] & masked[1]
    other = next(batches_of(seed=2).from_step(0))
    assert other[0]["token_ids"].tolist() != stream[0][0]["token_ids"].tolist()


def test_every_row_stands_once_and_of_many_some_do():
    rows = [*EveryRow([5, 3], 3, 0, 100).from_step(0)]
    assert [len(batch.shards) for batch in rows] == [3, 3, 2]
    found = [pair for batch in rows for pair in zip(batch.shards, batch.chunks)]
    assert found == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]
    assert sum(len(batch.shards) for batch in EveryRow([50, 30], 3, 0, 20).from_step(0)) == 20


test_one_document_and_short_rows_are_refused = refusals(
    (
        lambda: SentencePairs(shards(((9,),))[1], 20, CLS, SEP),
        "two documents at least...; received 1",
    ),
    (lambda: SentencePairs(shards()[1], 4, CLS, SEP), "max_length must be at least 5; received 4"),
    (lambda: FullSentences(shards()[1], 2, CLS, SEP), "max_length must be at least 3; received 2"),
)
