import numpy as np
import pytest

from seqkeras.serving.text import read_vocabulary, tidy, word_piece
from tests.references.tokenizers import word_pieces

# The examples of google-research/bert, tokenization_test.py
PIECES = "[UNK] [CLS] [SEP] want ##want ##ed wa un runn ##ing ,".split()


def tokens(text, vocabulary=PIECES, **options):
    return word_piece(vocabulary, **options).analyze(text).tokens[1:-1]


def words(text, **options):
    return word_piece(PIECES, **options).words(text)


def test_words_are_split_as_in_googles_example():
    assert tokens("UNwant\u00e9d,running") == ["un", "##want", "##ed", ",", "runn", "##ing"]
    assert word_piece(PIECES).encode("UNwant\u00e9d,running") == [7, 4, 5, 10, 8, 9]
    assert tokens("unwantedX running") == ["[UNK]", "runn", "##ing"]
    assert tokens("") == []


def test_text_is_cut_into_words_as_in_googles_examples():
    assert words(" \tHeLLo!how  \n Are yoU?  ") == ["hello", "!", "how", "are", "you", "?"]
    cased = words(" \tHeLLo!how  \n Are yoU?  ", lowercase=False)
    assert cased == ["HeLLo", "!", "how", "Are", "yoU", "?"]
    assert words("ah\u535a\u63a8zz") == ["ah", "\u535a", "\u63a8", "zz"]


def test_accents_go_with_capital_letters_unless_told():
    assert words("\u00c9t\u00e9") == ["ete"]
    assert words("\u00c9t\u00e9", lowercase=False) == ["\u00c9t\u00e9"]
    assert words("\u00c9t\u00e9", strip_accents=False) == ["\u00e9t\u00e9"]
    assert words("\u00c9t\u00e9", lowercase=False, strip_accents=True) == ["Ete"]


def test_a_word_is_the_longest_tokens_it_is_made_of():
    random = np.random.default_rng(0)
    vocabulary = [*PIECES[:3], *"a b aa ab aba ##a ##b ##ba ##aab ##bb".split()]
    for length in range(1, 40):
        word = "".join(random.choice(list("aabbc") if length % 7 == 0 else list("ab"), length))
        assert tokens(word, vocabulary) == word_pieces(word, vocabulary), word


def test_a_word_that_is_too_long_is_unknown():
    assert tokens("a" * 100, [*PIECES, "a", "##a"]) == ["a", *["##a"] * 99]
    assert tokens("a" * 101, [*PIECES, "a", "##a"]) == ["[UNK]"]
    assert len(tokens("a" * 200, [*PIECES, "a", "##a"], max_word_length=200)) == 200


def test_a_special_token_in_a_text_is_that_token():
    assert tokens("un[SEP]un") == ["un", "[SEP]", "un"]


def test_decoded_words_stand_apart_but_for_marks():
    tokenizer = word_piece(PIECES)
    assert tokenizer.decode(tokenizer.encode("unwanted , running")) == "unwanted, running"
    assert tokenizer.decode([1, 7, 4, 2]) == "unwant"
    assert tokenizer.decode([1, 7, 4, 2], special_tokens=True) == "[CLS] unwant [SEP]"
    assert tidy("it ' s , we 've . do n't !") == "it's, we've. don't!"


def test_a_vocabulary_is_a_token_in_each_line(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_bytes("[UNK]\r\n\u2028\nz\n".encode())
    assert read_vocabulary(file) == ["[UNK]", "\u2028", "z"]
    file.write_bytes(b"[UNK]\n\xff")
    with pytest.raises(ValueError, match="vocab.txt: a vocabulary must be UTF-8: "):
        read_vocabulary(file)
    file.write_bytes(b"[UNK]\nz\n[UNK]\n")
    with pytest.raises(ValueError, match="vocab.txt, line 3: .*; '\\[UNK\\]' stands in line 1 too"):
        read_vocabulary(file)


@pytest.mark.parametrize(
    "vocabulary, message",
    [
        (["a", "[CLS]"], r"the vocabulary must hold \[UNK\], \[SEP\]; received 2 tokens without\."),
        ([*PIECES, "un"], "tokens must be distinct; received 'un' twice"),
    ],
)
def test_a_wrong_vocabulary_is_refused(vocabulary, message):
    with pytest.raises(ValueError, match=f"^word_piece: {message}"):
        word_piece(vocabulary)
