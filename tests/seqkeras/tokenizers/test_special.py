import pytest

from seqkeras.tokenizers import (
    CharacterTable,
    SentencePieces,
    SpecialIds,
    WordTable,
    byte_pairs,
    learn_byte_pairs,
    learn_sentence_pieces,
    learn_word_piece,
    special_ids,
)
from tests.seqkeras.tokenizers.test_learn import TEXTS


def marian():
    learned = learn_sentence_pieces(TEXTS, 60)
    tokens = ["</s>", "<unk>", "\u2581the", "<pad>"]
    return SentencePieces(learned.model, {token: place for place, token in enumerate(tokens)})


def roberta():
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "<mask>": 5}
    return byte_pairs(vocabulary, [], "roberta")


@pytest.mark.parametrize(
    "make, expected, never_generated",
    [
        (lambda: CharacterTable.learn(["ab"]), (0, 1, 2, 3), (0, 1, 2)),
        (lambda: WordTable(["<pad>", "<unk>", "a"]), (0, 1, None, None), (0, 1)),
        (lambda: learn_sentence_pieces(TEXTS, 60), (0, 1, 2, 3), (0, 1, 2)),
        (
            lambda: learn_sentence_pieces(TEXTS, 60, unk_id=0, bos_id=1, eos_id=2),
            (None, 0, 1, 2),
            (0, 1),
        ),
        (marian, (3, 1, None, 0), (1, 3)),
        (roberta, (1, 3, 0, 2), (0, 1, 3)),
    ],
)
def test_the_special_ids_are_those_of_the_tokenizers_tokens(make, expected, never_generated):
    found = special_ids(make())
    assert found == SpecialIds(*expected)
    assert found.never_generated == never_generated


def test_what_both_begins_and_ends_a_text_may_be_generated():
    tokenizer = learn_byte_pairs(iter(TEXTS), 300)
    end = tokenizer.id_of("<|endoftext|>")
    assert special_ids(tokenizer) == SpecialIds(None, None, end, end)
    assert special_ids(tokenizer).never_generated == ()


def test_word_pieces_have_berts_tokens():
    tokenizer = learn_word_piece(TEXTS, 80)
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    assert special_ids(tokenizer) == SpecialIds(*map(tokenizer.id_of, names))
