import json

import numpy as np
import pytest

from seqkeras.serving.text import byte_pairs, read_byte_pairs
from tests.references.tokenizers import byte_pairs as paper
from tests.references.tokenizers import bytes_to_characters

ALPHABET = bytes_to_characters()
SPACE = ALPHABET[ord(" ")]
# The merges of minbpe's example, and one that begins with a space.
MERGES = [("a", "a"), ("a", "b"), ("aa", "ab"), (SPACE, "aa")]
TOKENS = [*ALPHABET.values(), *map("".join, MERGES)]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", *TOKENS, "<mask>"]


def made(form="gpt2"):
    tokens = [*TOKENS, "<|endoftext|>"] if form == "gpt2" else ROBERTA
    return byte_pairs({token: place for place, token in enumerate(tokens)}, MERGES, form)


def tokens(text, form="gpt2"):
    return made(form).analyze(text).tokens


def test_the_example_of_minbpe_is_merged_as_it_says():
    assert tokens("aaabdaaabac") == ["aaab", "d", "aaab", "a", "c"]


def test_words_are_merged_as_the_paper_says():
    random = np.random.default_rng(0)
    for length in range(1, 60):
        word = "".join(random.choice(list("aaab"), length))
        assert tokens(word) == paper(word, MERGES), word


def test_a_space_belongs_to_the_word_behind_it():
    assert tokens("aa aa  b") == ["aa", SPACE + "aa", SPACE, SPACE, "b"]


@pytest.mark.parametrize(
    "text", ["", " ", "a\0b\r\n", "été 日本 😶‍🌫️", "\u2028\x85\ufeff\U0010ffff"]
)
def test_any_text_is_given_back(text):
    tokenizer = made()
    assert tokenizer.decode(tokenizer.encode(text)) == text
    in_bytes = [ALPHABET[each] for each in text.encode()]
    assert "".join(tokens(text)) == "".join(in_bytes)


def test_tokens_lie_where_their_characters_lie():
    text = "aa é日 aa"
    offsets = made().analyze(text).offsets
    found = [text[start:end] for start, end in offsets]
    assert found == ["aa", " ", *["é"] * 2, *["日"] * 3, " aa"]


def test_the_end_of_a_text_is_one_token():
    tokenizer = made()
    assert tokenizer.encode("a<|endoftext|>b")[1] == tokenizer.id_of("<|endoftext|>") == 260
    assert tokenizer.decode(tokenizer.encode("a<|endoftext|>b")) == "ab"


def test_roberta_sets_its_tokens_around_a_text_and_a_pair():
    assert tokens("aa", "roberta") == ["<s>", "aa", "</s>"]
    pair = made("roberta").analyze("aa", "b")
    assert pair.tokens == ["<s>", "aa", "</s>", "</s>", "b", "</s>"]
    assert pair.segment_ids == [0] * 6
    assert pair.token_ids[:1] + pair.token_ids[2:4] == [0, 2, 2]
    masked = made("roberta").encode("b <mask>")  # which takes the space before it
    assert masked == [made("roberta").id_of(token) for token in ("b", "<mask>")]


def write(folder, vocabulary, merges):
    (folder / "encoder.json").write_text(vocabulary)
    (folder / "vocab.bpe").write_text(merges, encoding="utf-8")
    return read_byte_pairs(folder / "encoder.json", folder / "vocab.bpe")


@pytest.mark.parametrize("first", ["", "#version: 0.2\n"])
def test_files_are_read(tmp_path, first):
    ids = {token: place for place, token in enumerate(TOKENS)}
    lines = "".join(f"{one} {other}\n" for one, other in MERGES)
    assert write(tmp_path, json.dumps(ids), first + lines) == (ids, MERGES)


@pytest.mark.parametrize(
    "vocabulary, merges, message",
    [
        ("{", "a b\n", "encoder.json: must be JSON: "),
        ('["a"]', "a b\n", "encoder.json: must hold the id of each token"),
        ('{"a": "b"}', "a b\n", "encoder.json: must hold the id of each token"),
        ('{"a": 0}', "a b c\n", "vocab.bpe: a line must hold two tokens; received 'a b c'"),
    ],
)
def test_wrong_files_are_refused(tmp_path, vocabulary, merges, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path, vocabulary, merges)


def test_what_contradicts_is_refused():
    ids = {token: place for place, token in enumerate([*TOKENS, "<|endoftext|>"])}
    with pytest.raises(ValueError, match="^byte_pairs: form must be one of gpt2, roberta; rec.*'b"):
        byte_pairs(ids, MERGES, "bart")
    with pytest.raises(ValueError, match="^byte_pairs: the vocabulary must hold .* lacks 'bb'"):
        byte_pairs(ids, [*MERGES, ("b", "b")])
    with pytest.raises(ValueError, match="^byte_pairs: .* it lacks '<s>', '<pad>', "):
        byte_pairs(ids, MERGES, "roberta")
