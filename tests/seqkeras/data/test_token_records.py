"""Records of token ids: made shard by shard, killed and gone on with, read by memory map."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from seqkeras.data.documents import Corpus
from seqkeras.data.texts import DataError
from seqkeras.data.token_records import TokenRecords, begin_records, missing_shards, write_shard
from seqkeras.tokenizers import word_piece
from tests.conftest import CHECKOUT
from tests.killing import killed_at_every_moment

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg", "##a", "##b", "."]
TEXT = "a b.\nc\n\nab d\n\u200b\n\n\u200b\n\ne f g.\n\na"


def corpus_of(folder, **options):
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    return Corpus.of_files([folder / "text.txt"], **{"shard_bytes": 12, **options})


def records_of(folder, text, tokenizer=None, **options):
    """The records of a text, all of whose shards are written."""
    (folder / "text.txt").write_text(text, encoding="utf-8")
    corpus = Corpus.of_files([folder / "text.txt"], **options)
    for number in begin_records(folder / "records", corpus, tokenizer or word_piece(VOCABULARY)):
        write_shard(folder / "records", number)
    return TokenRecords(folder / "records")


def test_the_arrays_hold_the_tokens_of_each_sentence_of_each_document(tmp_path):
    tokenizer = word_piece(VOCABULARY)
    records = records_of(tmp_path, TEXT, shard_bytes=12)
    found = [
        [
            [tokenizer.token_of(token) for token in shard.tokens[start:end]]
            for start, end in zip(sentences[:-1], sentences[1:])
        ]
        for shard in records.shards
        for sentences in (
            shard.sentences[first : last + 1]
            for first, last in zip(shard.documents[:-1], shard.documents[1:])
        )
    ]
    assert found == [
        [["a", "b", "."], ["c"]],
        [["a", "##b", "d"]],  # a line without a token is left out, and so is such a document
        [["e", "f", "g", "."]],
        [["a"]],
    ]
    assert (records.num_documents, records.num_tokens) == (4, 12)
    assert {shard.tokens.dtype for shard in records.shards} == {np.dtype("uint16")}
    assert isinstance(records.shards[0].tokens.base, np.memmap)


def test_there_may_be_more_shards_than_files_that_may_be_open(tmp_path):
    resource = pytest.importorskip("resource")
    records_of(tmp_path, "\n\n".join(["a b.", "c d", "e"] * 29), shard_bytes=1)
    code = f"""
import resource
from seqkeras.data.sentence_pairs import SentencePairs
from seqkeras.data.token_records import TokenRecords

resource.setrlimit(resource.RLIMIT_NOFILE, (128, {resource.getrlimit(resource.RLIMIT_NOFILE)[1]}))
records = TokenRecords({str(tmp_path / "records")!r})
rows = SentencePairs(records.shards, 11, 2, 3)
print(len(records.shards), records.num_documents, records.num_tokens, sum(rows.counts))
"""
    command, env = [sys.executable, "-c", code], os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("87 87 174 87\n", "")


def test_more_than_65_536_tokens_are_kept_in_32_bits(tmp_path):
    tokens = [f"t{number}" for number in range(2**16)]
    tokenizer = word_piece([*VOCABULARY, *tokens])
    [shard] = records_of(tmp_path, "t65535\n\nb", tokenizer).shards
    assert shard.tokens.dtype == "uint32"
    assert tokenizer.token_of(int(shard.tokens[0])) == "t65535"


@pytest.mark.long
def test_a_killed_preparation_goes_on_and_no_shard_is_ever_a_part_of_one(tmp_path):
    code = f"""
import sys
from pathlib import Path
from tests.seqkeras.data.test_token_records import VOCABULARY, corpus_of
from seqkeras.data.token_records import begin_records, write_shard
from seqkeras.tokenizers import word_piece

tokenizer, corpus = word_piece(VOCABULARY), corpus_of(Path({str(tmp_path)!r}))
sys.addaudithook(die)
for number in begin_records({str(tmp_path / "records")!r}, corpus, tokenizer):
    write_shard({str(tmp_path / "records")!r}, number)
"""
    done = []

    def look():
        if (tmp_path / "records").exists():
            whole = [*(tmp_path / "records").glob("shard-*")]
            assert all(len([*shard.iterdir()]) == 3 for shard in whole)
            done.append(len(whole))

    for _ in killed_at_every_moment(code, "records", look):
        pass
    assert missing_shards(tmp_path / "records") == []
    assert done == sorted(done) and len({*done}) > 2  # what was made stays
    assert TokenRecords(tmp_path / "records").num_tokens == 12


def test_records_of_other_options_and_other_folders_are_refused(tmp_path):
    tokenizer, corpus = word_piece(VOCABULARY), corpus_of(tmp_path)
    begin_records(tmp_path / "records", corpus, tokenizer)
    with pytest.raises(DataError, match="3 of 3 shards are missing"):
        TokenRecords(tmp_path / "records")
    for other, vocabulary, message in (
        (corpus_of(tmp_path, shard_bytes=1), tokenizer, "holds records with another shards;"),
        (corpus_of(tmp_path, form="prose"), tokenizer, "another form and documents and shards;"),
        (corpus, word_piece(VOCABULARY, lowercase=False), "with another tokenizer;"),
    ):
        with pytest.raises(DataError, match=message):
            begin_records(tmp_path / "records", other, vocabulary)
    with pytest.raises(DataError, match="not empty, and no folder of records"):
        begin_records(tmp_path, corpus, tokenizer)


def test_a_damaged_shard_and_a_text_without_a_token_are_refused(tmp_path):
    with pytest.raises(DataError, match="no token is left"):
        records_of(tmp_path, "\u200b\n\n\u200b")
    tokens = tmp_path / "records/shard-00000/tokens.npy"
    for damage in (b"\x93NUMPY", b"", None):
        tokens.unlink()
        if damage is not None:
            tokens.write_bytes(damage)
        with pytest.raises(DataError, match="00000: damaged .*; remove it, and prepare again"):
            TokenRecords(tmp_path / "records")


def test_a_shard_that_can_not_be_opened_is_not_called_damaged(tmp_path, monkeypatch):
    records_of(tmp_path, TEXT)

    def load(path, mmap_mode):
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(np, "load", load)
    with pytest.raises(DataError, match="shard-00000: can not be read: Too many open files.$"):
        TokenRecords(tmp_path / "records")
