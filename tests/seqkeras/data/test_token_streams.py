"""Texts as streams of tokens, beside the tokens of the whole."""

import random

import numpy as np
import pytest

from seqkeras.data import texts, token_streams
from seqkeras.data.token_streams import token_stream
from seqkeras.tokenizers import CharacterTable, special_ids
from seqkeras.tokenizers.of_stream import STREAM_TOKENIZERS
from tests.conftest import public_data

TEXTS = ["It's one, two -\n\n  three  words.\nAnd é more\n", "the second text\n"]


@pytest.mark.parametrize("kind", ["characters", "byte-pairs"])
def test_a_stream_that_keeps_white_space_decodes_to_its_texts(kind, monkeypatch):
    tokenizer = STREAM_TOKENIZERS[kind](TEXTS, 300)
    end_id = special_ids(tokenizer).end_id
    whole = [*tokenizer.encode(TEXTS[0]), end_id, *tokenizer.encode(TEXTS[1])]
    for chunk in (1, 7, 2**20):
        monkeypatch.setattr(token_streams, "CHUNK", chunk)
        np.testing.assert_array_equal(token_stream(TEXTS, tokenizer, end_id), whole)
    assert [tokenizer.decode(part) for part in (whole[: whole.index(end_id)],)] == TEXTS[:1]


@pytest.mark.parametrize("kind", ["characters", "byte-pairs", "words", "bpe"])
def test_the_stream_of_a_file_is_that_of_its_text(kind, monkeypatch, write):
    draw = random.Random(0)
    parts = ["a", "an ", "  ", " bee", "\n", "\n\n", ". ", "é"]
    whole = ["".join(draw.choices(parts, k=400)) for _ in range(2)]
    tokenizer = STREAM_TOKENIZERS[kind](whole, 300)
    expected = token_stream(whole, tokenizer, 3)
    for at_once, chunk in ((3, 5), (50, 20), (20, 50)):
        monkeypatch.setattr(texts, "BYTES_AT_ONCE", at_once)
        monkeypatch.setattr(token_streams, "CHUNK", chunk)
        files = [texts.TextFile(write(f"{place}.txt", text)) for place, text in enumerate(whole)]
        np.testing.assert_array_equal(token_stream(files, tokenizer, 3), expected)


def test_a_text_without_spaces_is_read_in_parts_that_end_with_lines(monkeypatch, write):
    monkeypatch.setattr(texts, "BYTES_AT_ONCE", 8)
    monkeypatch.setattr(token_streams, "MOST", 20)
    text = "東京\n" * 20
    parts = [*token_streams.chunks(texts.TextFile(write("text.txt", text)))]
    assert "".join(parts) == text and len(parts) > 1
    assert all(part.endswith("\n") and len(part) <= 20 + 6 for part in parts)


@pytest.mark.parametrize("kind", ["words", "unigram", "bpe"])
def test_a_stream_without_white_space_ends_each_line(kind):
    lines = [line for text in TEXTS for line in text.removesuffix("\n").split("\n")]
    tokenizer = STREAM_TOKENIZERS[kind](TEXTS, 40)
    end_id = special_ids(tokenizer).end_id
    expected = [token for line in lines for token in (*tokenizer.encode(line), end_id)]
    np.testing.assert_array_equal(token_stream(TEXTS, tokenizer, end_id), expected)


def test_words_are_the_most_frequent_and_unknown_ones_are_unk():
    table = STREAM_TOKENIZERS["words"](["b a b\nc <unk> <eos> b a"], 6)
    assert table.words == ("<pad>", "<unk>", "<bos>", "<eos>", "b", "a")
    assert token_stream(["a c <unk>\n\nb"], table, 3).tolist() == [5, 1, 1, 3, 3, 4, 3]


def test_wikitext_has_as_many_words_as_its_authors_count():
    text = public_data("wikitext2/wiki.valid.tokens").read_text(encoding="utf-8")
    table = STREAM_TOKENIZERS["words"]([text], 10**6)
    stream = token_stream([text], table, table.id_of("<eos>"))
    assert len(stream) == 217_646  # Merity et al. 2016, table 1
    assert (stream == table.id_of("<unk>")).sum() == 11_718
    assert (stream == table.id_of("<eos>")).sum() == 3_760


def test_characters_are_those_of_shakespeare():
    text = public_data("tinyshakespeare/input.txt").read_text(encoding="utf-8")
    table = CharacterTable.learn([text])
    assert len(table) == 4 + 65
    assert table.decode(token_stream([text[:100_000]], table, 3)) == text[:100_000]
