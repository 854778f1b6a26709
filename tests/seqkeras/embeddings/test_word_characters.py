"""Vectors of words from their characters, in a model of WordPieces."""

import numpy as np
import pytest

from seqkeras.embeddings import CharacterCNN, WordCharacters
from seqkeras.tokenizers import CharacterTable, learn_word_piece, spelled_pieces, word_places
from tests.arrays import close, numbers, randomize

TEXTS = ["Ada left Oslo.", "Unbelievably late: naïve, 2x (in 1843)"]


@pytest.fixture(scope="module")
def made():
    """The layer, its tokenizer and its table of characters."""
    tokenizer = learn_word_piece(TEXTS, 60, lowercase=False)
    table = CharacterTable.learn(TEXTS)
    layer = WordCharacters(len(table), 5, [2, 3], [7, 3], *spelled_pieces(tokenizer, table), 11)
    layer.build((None, None))
    return randomize(layer), tokenizer, table


@pytest.mark.parametrize("text", TEXTS)
def test_a_piece_has_the_vector_of_its_word(made, text):
    layer, tokenizer, table = made
    encoding = tokenizer.analyze(text)
    actual = numbers(layer(np.array([encoding.token_ids])))[0]
    expected = np.zeros((len(encoding), 10))
    of_words = CharacterCNN(len(table), 5, [2, 3], [7, 3])
    of_words.build((None, None, 11))
    of_words.set_weights(layer.of_words.get_weights())
    for token, offset in enumerate(encoding.offsets):
        for start, end in word_places(text):
            if offset is not None and start <= offset[0] < end:
                word = table.encode(text[start:end])[:11]
                expected[token] = numbers(of_words(np.array([[word]])))[0, 0]
    close(actual, expected, atol=1e-6)
    assert np.all(actual[[0, -1]] == 0)  # [CLS] and [SEP]
