"""Rows of documents, and batches of them that are damaged anew."""

import functools

import numpy as np
import pytest

from seqkeras.data.denoising import span_corruption, text_infilling
from seqkeras.data.denoising_batches import DenoisingBatches, Frame
from seqkeras.data.masking import IGNORED
from seqkeras.data.pretraining import ShardOrder
from seqkeras.data.sentence_pairs import DocumentSentences
from seqkeras.tokenizers import byte_pairs, word_piece
from tests.seqkeras.data.test_sentence_pairs import shards

FRAME = Frame(prefix=[2], suffix=[3], start_id=5, end_id=7)
MASK, SENTINELS = 11, np.arange(13, 63)  # ids of texts are 1,000 at least
NOISES = {
    "spans": functools.partial(span_corruption, sentinel_ids=SENTINELS),
    "infilling": functools.partial(text_infilling, mask_id=MASK),
}


def batches_of(noise, max_length=23, batch_size=5, seed=0, **options):
    documents, folders = shards()
    rows = DocumentSentences(folders, FRAME.room(max_length))
    order = ShardOrder(rows.counts, batch_size, seed)
    return documents, DenoisingBatches(rows, NOISES[noise], FRAME, order, max_length, **options)


@pytest.mark.parametrize("room", [1, 7, 29, 300])
def test_rows_are_sentences_of_one_document_and_every_token_stands_once(room):
    documents, folders = shards()
    rows = DocumentSentences(folders, room)
    document_of = {
        token: number
        for number, document in enumerate(sum(documents, []))
        for token in sum(document, [])
    }
    read = []
    for shard, count in enumerate(rows.counts):
        for chunk in range(count):
            row = np.concatenate(rows(shard, chunk)).tolist()
            assert 1 <= len(row) <= room and len({document_of[token] for token in row}) == 1
            read += row
    assert read == sorted(document_of)


def test_there_is_room_for_a_token_at_least():
    with pytest.raises(ValueError, match="room must be at least 1; received 0"):
        DocumentSentences(shards()[1], 0)


@pytest.mark.parametrize("few_shapes", [False, True])
@pytest.mark.parametrize("noise", NOISES)
def test_a_batch_is_what_the_model_reads_and_what_it_writes(noise, few_shapes):
    _, batches = batches_of(noise, few_shapes=few_shapes)
    for _, (inputs, wanted) in zip(range(9), batches.from_step(0)):
        assert [*inputs] == ["token_ids", "lengths", "target_ids"]
        assert max(inputs["token_ids"].shape[1], wanted.shape[1]) <= 23
        assert not few_shapes or inputs["token_ids"].shape == wanted.shape == (5, 23)
        for token_ids, length, given, target in zip(*inputs.values(), wanted, strict=True):
            assert token_ids[0] == 2 and token_ids[length - 1] == 3
            assert not token_ids[length:].any()
            end = int(np.flatnonzero(target == 7)[0])
            assert (target[end + 1 :] == IGNORED).all() and not given[end + 1 :].any()
            assert given[0] == 5 and given[1 : end + 1].tolist() == target[:end].tolist()
            source = token_ids[1 : length - 1]
            text = [*source[source >= 1000], *target[:end][target[:end] >= 1000]]
            known = {"spans": len(text), "infilling": end}[noise]
            assert len(set(text)) == known  # spans stand once; an infilled text stands whole


def test_shuffled_sentences_are_restored_in_their_order():
    documents, batches = batches_of("infilling", max_length=60, shuffled=True)
    sentence_of = {
        token: number
        for number, sentence in enumerate(sum(sum(documents, []), []))
        for token in sentence
    }
    mixed = 0
    for _, (inputs, wanted) in zip(range(9), batches.from_step(0)):
        for source, target in zip(inputs["token_ids"], wanted, strict=True):
            target = target[target >= 1000].tolist()
            assert target == [*range(target[0], target[-1] + 1)]
            order = [sentence_of[token] for token in source[source >= 1000].tolist()]
            runs = [number for number, before in zip(order, [None, *order]) if number != before]
            assert len(runs) == len(set(runs))  # sentences stay whole
            mixed += runs != sorted(runs)
    assert mixed > 10


def test_batches_are_a_function_of_seed_and_step_with_fresh_damage_at_each_pass():
    _, batches = batches_of("spans")
    _, same = batches_of("spans")
    count = batches.order.batches_per_pass
    stepped = [batch for _, batch in zip(range(2 * count), batches.from_step(0))]
    later = next(same.from_step(count + 1))
    np.testing.assert_array_equal(later[0]["token_ids"], stepped[count + 1][0]["token_ids"])
    damaged = [
        {tuple(row) for part in stepped[at : at + count] for row in part[1].tolist()}
        for at in (0, count)
    ]
    assert len(damaged[0] & damaged[1]) < len(damaged[0]) / 4
    batches.on_epoch_begin()
    np.testing.assert_array_equal(batches[1][1], stepped[1][1])


def test_the_frame_is_what_a_tokenizer_sets_around_a_text():
    pieces = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    assert Frame.of(pieces, 2, 3) == ([2], [3], 2, 3)
    letters = {chr(code): code for code in range(33, 127)} | {"<|endoftext|>": 0}
    assert Frame.of(byte_pairs(letters, []), 0, 0) == ([], [], 0, 0)
