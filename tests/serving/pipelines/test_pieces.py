import numpy as np
import pytest

from seqkeras.serving.pipelines.pieces import Detokenizer, Growing, Pieces, cut
from seqkeras.serving.text import CharacterTable, SentencePieces, word_piece
from tests.serving.pipelines.test_translate import SOURCE as WITH_TEMPLATE
from tests.serving.pipelines.test_translate import TARGET as BYTES
from tests.serving.pipelines.toys import with_byte_fallback

PIECES = SentencePieces(WITH_TEMPLATE.model)
TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] it don ' s t n't do n , . ? ##s ##'t hello world".split()
WORD_PIECES = word_piece(TOKENS)
CHARACTERS = CharacterTable.learn(["abc \u00e9"])
TOKENIZERS = {
    "bytes": BYTES,
    "sentence pieces": PIECES,
    "word pieces": WORD_PIECES,
    "characters": CHARACTERS,
}


def streamed(tokenizer, prompt_ids, token_ids, stop=()):
    text = Pieces(Detokenizer(tokenizer, prompt_ids), stop)
    read = [text.read(token_ids[:length]) for length in range(1, len(token_ids) + 1)]
    return [piece for piece in [*read, text.rest(token_ids)] if piece]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("prompt_length", [0, 3])
@pytest.mark.parametrize("stop", [(), ("t", " a", "\u00e9")], ids=str)
def test_pieces_joined_are_the_text(name, prompt_length, stop):
    tokenizer, random = TOKENIZERS[name], np.random.default_rng(prompt_length)
    some = 0
    for _ in range(101):
        prompt_ids, token_ids = (
            random.integers(4, len(tokenizer), length).tolist() for length in (prompt_length, 13)
        )
        found = streamed(tokenizer, prompt_ids, token_ids, stop)
        expected, _ = cut(Detokenizer(tokenizer, prompt_ids).text(token_ids), stop)
        assert "".join(found) == expected
        assert all(found)
        some += len(found) > 1
    assert some > 10


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_text_that_grows_is_that_of_all_ids_at_every_step(name, monkeypatch):
    tokenizer, random = TOKENIZERS[name], np.random.default_rng(7)
    read = []
    decode = Detokenizer.decode
    monkeypatch.setattr(Detokenizer, "decode", lambda *each: read.append(each[1]) or decode(*each))
    for prompt_length in (0, 3, 50):
        prompt_ids, token_ids = (
            random.integers(4, len(tokenizer), length).tolist() for length in (prompt_length, 400)
        )
        detokenizer = Detokenizer(tokenizer, prompt_ids)
        growing, lengths = Growing(detokenizer), []
        for length in range(1, len(token_ids) + 1):
            read.clear()
            text = growing.read(token_ids[:length])
            lengths += map(len, read)
            whole = detokenizer.without_open_bytes(token_ids[:length])
            assert text == detokenizer.text(whole).rstrip("\ufffd")
        assert max(lengths[-100:]) < 200  # not all of them


def test_what_follows_a_prompt_keeps_its_space():
    prompt_ids, token_ids = PIECES.encode("the cat"), PIECES.encode("sat on the mat")
    assert Detokenizer(PIECES).text(token_ids) == "sat on the mat"
    assert Detokenizer(PIECES, prompt_ids).text(token_ids) == " sat on the mat"


def test_words_of_word_pieces_are_sure_when_the_next_one_begins():
    token_ids = [WORD_PIECES.id_of(token) for token in ("hello", ",", "it", "'", "s", "world")]
    assert streamed(WORD_PIECES, [], token_ids) == ["hello,", " it's", " world"]


def test_what_may_begin_a_stop_is_held_back():
    token_ids = CHARACTERS.encode("a bab ac")
    assert streamed(CHARACTERS, [], token_ids, ["ba", "b ac"]) == ["a", " "]
    assert streamed(CHARACTERS, [], token_ids, ["b ac"]) == ["a", " ", "ba"]
    assert streamed(CHARACTERS, [], token_ids, ["b acc"])[-1] == "b ac"


def test_bytes_of_a_character_are_held_back_until_none_can_follow():
    """Where one byte of a run fits no character, the decoder reads none of the run as one."""
    tokenizer = with_byte_fallback()
    euro = [tokenizer.id_of(f"<0x{byte:02X}>") for byte in "\u20ac".encode()]
    a, b = tokenizer.id_of("a"), tokenizer.id_of("b")
    assert streamed(tokenizer, [], [a, *euro, b]) == ["a", "\u20acb"]
    assert streamed(tokenizer, [], [a, *euro, euro[0], b]) == ["a", "\ufffd\ufffd\ufffd\ufffdb"]
    many = 40 * [a, *euro, *euro[:1]]
    assert "".join(streamed(tokenizer, [], many)) == Detokenizer(tokenizer).text(many)


def test_ids_behind_the_vocabulary_have_no_text():
    token_ids = PIECES.encode("the cat")
    assert Detokenizer(PIECES).text([*token_ids, len(PIECES)]) == "the cat"
