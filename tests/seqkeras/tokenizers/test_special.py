import pytest

from seqkeras import tokenizers
from tests.seqkeras.tokenizers.test_learn import TEXTS


def marian():
    learned = tokenizers.learn_sentence_pieces(TEXTS, 60)
    tokens = ["</s>", "<unk>", "\u2581the", "<pad>"]
    return tokenizers.SentencePieces(
        learned.model, {token: place for place, token in enumerate(tokens)}
    )


def roberta():
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "<mask>": 5}
    return tokenizers.byte_pairs(vocabulary, [], "roberta")


@pytest.mark.parametrize(
    "make, expected, never_generated",
    [
        (lambda: tokenizers.CharacterTable.learn(["ab"]), (0, 1, 2, 3), (0, 1, 2)),
        (lambda: tokenizers.WordTable(["<pad>", "<unk>", "a"]), (0, 1, None, None), (0, 1)),
        (lambda: tokenizers.learn_word_piece(TEXTS, 80), (0, 1, 2, 3), (0, 1, 2)),
        (lambda: tokenizers.learn_sentence_pieces(TEXTS, 60), (0, 1, 2, 3), (0, 1, 2)),
        (
            lambda: tokenizers.learn_sentence_pieces(TEXTS, 60, unk_id=0, bos_id=1, eos_id=2),
            (None, 0, 1, 2),
            (0, 1),
        ),
        (marian, (3, 1, None, 0), (1, 3)),
        (roberta, (1, 3, 0, 2), (0, 1, 3)),
    ],
)
def test_the_special_ids_are_those_of_the_tokenizers_tokens(make, expected, never_generated):
    found = tokenizers.special_ids(make())
    assert found == tokenizers.SpecialIds(*expected)
    assert found.never_generated == never_generated


def test_what_both_begins_and_ends_a_text_may_be_generated():
    tokenizer = tokenizers.learn_byte_pairs(iter(TEXTS), 300)
    end = tokenizer.id_of("<|endoftext|>")
    assert tokenizers.special_ids(tokenizer) == tokenizers.SpecialIds(None, None, end, end)
    assert tokenizers.special_ids(tokenizer).never_generated == ()
