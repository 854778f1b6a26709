"""ELMo's features of WordPieces: of which words, and how their layers are mixed."""

import keras
import numpy as np
import pytest

from seqkeras import tokenizers
from seqkeras.models import BiLM, BiLMFeatures
from tests.arrays import close, numbers, randomize

TEXTS = ["Ada left Oslo.", "She didn't see the U.S. (in 1843)!", "Unbelievably late: naïve, 2x"]


@pytest.fixture(scope="module")
def made():
    """Features, their tokenizer and their table of characters."""
    tokenizer = tokenizers.learn_word_piece(TEXTS, 60, lowercase=False)
    table = tokenizers.CharacterTable.learn(TEXTS)
    bilm = BiLM(17, len(table), 5, [1, 3], [7, 11], 13, 7, num_layers=2, boundary_ids=[2, 3])
    features = BiLMFeatures(bilm, *tokenizers.spelled_pieces(tokenizer, table), word_length=11)
    features.build((None, None))
    return randomize(features), tokenizer, table


def test_the_words_of_pieces_are_those_that_a_bilm_reads(made):
    features, tokenizer, table = made
    for text in TEXTS:
        encoding = tokenizer.analyze(text)
        token_ids = np.array([encoding.token_ids], "int32")
        found, lengths, places, is_word = map(numbers, features.spell(token_ids))
        expected = [text[start:end][:11] for start, end in tokenizers.word_places(text)]
        assert lengths.tolist() == [len(expected)]
        found = [[*filter(None, row)] for row in found[0].tolist()]
        assert found == [table.encode(word) for word in expected] + [[]] * (
            len(encoding) - len(expected)
        )
        assert is_word[0].tolist() == [offset is not None for offset in encoding.offsets]
        for offset, place in zip(encoding.offsets, places[0], strict=True):
            if offset is not None:
                start, end = tokenizers.word_places(text)[place]
                assert start <= offset[0] < offset[1] <= end
    assert len(tokenizer.analyze("Unbelievably")) > 4  # a word of several pieces


def test_features_are_the_mix_of_the_layers_of_each_words_sentence(made):
    features, tokenizer, table = made
    encoding = tokenizer.analyze(*TEXTS[:2])
    given = [np.array([row]) for row in (encoding.token_ids, encoding.segment_ids)]
    actual = numbers(features(*given))[0]
    w, gamma = (each.numpy().astype("float64") for each in features.mix.weights)
    s = np.exp(w) / np.exp(w).sum()
    expected = np.zeros((len(encoding), 14))
    for segment, text in enumerate(TEXTS[:2]):
        words = [table.encode(text[start:end]) for start, end in tokenizers.word_places(text)]
        character_ids = np.array([word + [0] * (11 - len(word)) for word in words])[None]
        layers = numbers(features.bilm.represent({"character_ids": character_ids}))[0]
        for token, (offset, own) in enumerate(zip(encoding.offsets, encoding.segment_ids)):
            for place, (start, end) in enumerate(tokenizers.word_places(text)):
                if own == segment and offset is not None and start <= offset[0] < end:
                    for j in range(3):
                        expected[token] += gamma * s[j] * layers[j, place]
    close(actual, expected, atol=1e-5)
    assert np.all(actual[0] == 0) and np.all(actual[-1] == 0)  # [CLS] and [SEP]


def test_what_no_piece_spells_is_an_unknown_character(made):
    features, tokenizer, table = made
    token_ids = np.array([tokenizer.analyze("Ada § Oslo").token_ids], "int32")
    characters = numbers(features.spell(token_ids)[0])[0]
    assert characters[1].tolist() == [table.id_of("<unk>")] + [0] * 10


def test_the_mix_alone_learns_unless_all_is_asked_for(made, tmp_path):
    features, *_ = made
    assert [weight.path.split("/")[-1] for weight in features.trainable_weights] == [
        "scores",
        "gamma",
    ]
    config = features.get_config() | {"train": True}
    whole = BiLMFeatures.from_config(config)
    whole.build((None, None))
    assert len(whole.trainable_weights) == len(whole.weights) - 2  # but what tells words
    token_ids = keras.Input((None,), dtype="int64")
    keras.Model(token_ids, features(token_ids)).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.trainable_weights) == 2


def test_a_vocabulary_that_is_no_word_piece_is_refused(made):
    *_, table = made
    with pytest.raises(ValueError, match="^spelled_pieces: needs a WordPiece vocabulary; received"):
        tokenizers.spelled_pieces(tokenizers.learn_byte_pairs(TEXTS, 280), table)
