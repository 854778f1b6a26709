"""What holds for all tokenizers: their ids, their files, and what they refuse."""

import sys

import pytest

from seqkeras.serving.text import (
    CharacterTable,
    SentencePieces,
    Subwords,
    VectorizedWords,
    WordTable,
    read_tokenizer,
)
from tests.serving.pipelines.toys import TOKENIZER, of_bytes, sentence_pieces

MARIAN = {"</s>": 0, "<unk>": 1, "\u2581the": 2, "\u2581cat": 3, "<pad>": 4}
# A tokenizer of each kind, and another of that kind.
TOKENIZERS = {
    "characters": (CharacterTable.learn(['a\u00e9\u65e5\u2028"']), CharacterTable.learn(["a"])),
    "words": (WordTable.learn(["the", "Cat"], lowercase=True), WordTable.learn(["the", "cat"])),
    "vectorized words": (
        VectorizedWords([*VectorizedWords.special_tokens, "the"]),
        VectorizedWords([*VectorizedWords.special_tokens, "cat"]),
    ),
    "subwords": (TOKENIZER, of_bytes()),
    "sentence pieces": (sentence_pieces(), sentence_pieces(ends=False)),
    "marian": (SentencePieces(sentence_pieces().model, MARIAN), sentence_pieces(ends=False)),
}


@pytest.fixture(params=TOKENIZERS)
def made(request):
    return TOKENIZERS[request.param]


def test_a_tokenizer_survives_its_file(made, tmp_path):
    tokenizer, other = made
    tokenizer.to_file(tmp_path / "source.json")
    again = read_tokenizer(tmp_path / "source.json")
    assert again == tokenizer != other and hash(again) == hash(tokenizer)
    assert again.encode("the cat") == tokenizer.encode("the cat")


def test_an_id_has_a_token_and_a_token_an_id(made):
    tokenizer, _ = made
    for index in range(len(tokenizer)):
        assert tokenizer.id_of(tokenizer.token_of(index)) == index
    with pytest.raises(ValueError, match=r"^\w+: the (table|vocabulary) must hold '<cat>'; it"):
        tokenizer.id_of("<cat>")
    for index in (-1, len(tokenizer), 2**32, 2**70):
        message = rf"^\w+: ids must be under {len(tokenizer)}; received {index}\.$"
        with pytest.raises(ValueError, match=message):
            tokenizer.decode([len(tokenizer) - 1, index])
        with pytest.raises(ValueError, match=message):
            tokenizer.token_of(index)


@pytest.mark.parametrize("name", ["encode", "analyze", "words"])
def test_text_that_is_none_is_refused(made, name):
    method = getattr(made[0], name, None)
    if isinstance(made[0], CharacterTable) or not callable(method):
        return  # a character that is unknown is <unk>, also a lone surrogate
    with pytest.raises(ValueError, match=r"^\w+: .* lone surrogate; rec.* '\\ud800' at 3\.$"):
        method("the\ud800cat")
    with pytest.raises(ValueError, match=r"^\w+: text must be a string; received 5\.$"):
        method(5)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"{", "a tokenizer's file must be JSON: "),
        (b"[]", "must hold a table of characters or words, a tokenizer.json or a SentencePiece "),
        (b'{"type": "letters"}', "must hold a table of characters or words, "),
        (b'{"type": "words"}', 'must hold a list of "words"'),
        (b'{"type": "characters"}', 'must hold a list of "characters"'),
        (b'{"model": {"type": "Words"}}', "Subwords: content must be the text of a tokenizer"),
        (b'{"type": "sentencepiece"}', "not a SentencePiece model: 'model'"),
        (b'{"type": "sentencepiece", "model": "!"}', "not a SentencePiece model: "),
        (b'{"type": "sentencepiece", "model": "", "vocabulary": {"a": -1}}', "not a SentencePiece"),
    ],
)
def test_a_file_that_holds_no_tokenizer_is_refused(tmp_path, content, message):
    (tmp_path / "source.json").write_bytes(content)
    with pytest.raises(ValueError, match=f"source.json:? {message}"):
        read_tokenizer(tmp_path / "source.json")


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    model = TOKENIZERS["marian"][0].model
    for name in ("tokenizers", "sentencepiece"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="need the library tokenizers: pip install tokenizers"):
        Subwords('{"model": {"type": "WordPiece"}}')
    with pytest.raises(ImportError, match="the library sentencepiece: pip install sentencepiece"):
        SentencePieces(model)
