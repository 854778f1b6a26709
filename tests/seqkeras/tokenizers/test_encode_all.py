import importlib
import random

import pytest

from seqkeras.tokenizers import TOKENIZERS, SentencePieces, encode_all, learn_tokenizer
from seqkeras.tokenizers.encode_all import Encoder
from tests.seqkeras.tokenizers.texts import random_texts

TEXTS = random_texts(60)
encode_all_module = importlib.import_module("seqkeras.tokenizers.encode_all")
# Marks apart, joiners, both sigmas, a word of many letters, other spaces, special tokens.
ODD = [
    " \u0301a \u0301",
    "a\u200d b",
    "\u03a3 \u03c2\u03a3",
    "x" * 101,
    "a\u2028b\u00a0c",
    "[MASK] [SEP]",
]
MORE = ["", "caf\u00e9 na\u00efve", "the \U0001f600 cat", " a  b\t", "\u65e5\u672c\u8a9e"]


def test_a_vocabulary_beside_the_pieces_tells_the_ids():
    learned = learn_tokenizer("unigram", TEXTS, 2000)
    pieces = [learned.token_of(place) for place in range(len(learned))]
    vocabulary = {piece: place for place, piece in enumerate(reversed(pieces))}
    tokenizer = SentencePieces(learned.model, vocabulary, suffix=["</s>"])
    texts = [*TEXTS[:20], *MORE]
    assert encode_all(tokenizer, texts) == [tokenizer.encode(text) for text in texts]
    whole = [tokenizer.analyze(text).token_ids for text in texts]
    assert encode_all(tokenizer, texts, special_tokens=True) == whole


@pytest.mark.parametrize("most_parts", [1, 30, encode_all_module.MOST_PARTS])
@pytest.mark.parametrize("kind", sorted(TOKENIZERS))
def test_many_texts_have_the_ids_of_each(kind, most_parts, monkeypatch):
    monkeypatch.setattr(encode_all_module, "MOST_PARTS", most_parts)
    tokenizer, draw = learn_tokenizer(kind, TEXTS, 2000), random.Random(kind)
    special_tokens = kind != "characters"
    encode = Encoder(tokenizer, special_tokens)
    texts = [*TEXTS, *MORE, *ODD]
    for number in range(21):
        some = [" ".join(draw.choices(texts, k=draw.randint(1, 4))) for _ in range(10)]
        some = some if number else [*TEXTS, *MORE]
        plain = [tokenizer.encode(text) for text in some]
        whole = [tokenizer.analyze(text).token_ids for text in some] if special_tokens else plain
        assert encode(some) == encode_all(tokenizer, some, special_tokens) == whole
        assert Encoder(tokenizer)(some) == encode_all(tokenizer, some) == plain
    assert encode([]) == encode_all(tokenizer, []) == []


@pytest.mark.parametrize("encode", [encode_all, lambda kind, texts: Encoder(kind)(texts)])
@pytest.mark.parametrize("kind", ["bpe", "word-piece"])
@pytest.mark.parametrize("text", [3, "\ud800"])
def test_what_is_no_text_is_refused(kind, text, encode):
    with pytest.raises(ValueError, match="string|surrogate"):
        encode(learn_tokenizer(kind, TEXTS, 2000), ["a", text])
