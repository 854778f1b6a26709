"""The linear classifier of n-grams against strings and a loop in float64."""

import keras
import numpy as np
import pytest

from seqkeras.models import LinearNgrams
from seqkeras.tokenizers import CharacterTable, learn_word_piece, pad, spelled_pieces
from tests.arrays import close, numbers

TEXTS = ["a fine film, the finest of films", "dull", "the end", "two films end as one film does"]
P, LONGEST, LENGTH = 262_139, 4, 6
TOKENIZER = learn_word_piece(TEXTS, 40, True)
TABLE = CharacterTable.learn(map(TOKENIZER.token_of, range(len(TOKENIZER))))


def made(units=3, buckets=97):
    """A layer with random weights."""
    layer = LinearNgrams(
        units, buckets, *spelled_pieces(TOKENIZER, TABLE), longest=LONGEST, word_length=LENGTH
    )
    layer.build((None, None))
    random = np.random.default_rng(0)
    layer.set_weights([random.normal(size=weight.shape) for weight in layer.weights])
    return layer


def code(character):
    return 100_003 if character in "<>" else pow(TABLE.encode(character)[0] + 1, 3, P)


def dot(codes):
    return sum(pow(1103, j + 1, 8191) * each for j, each in enumerate(codes)) % P


def hashes(words):
    """Hashes of the n-grams of a text, before there are buckets."""
    found = []
    ended = [f"<{word[:LENGTH]}>" for word in words]
    for word in ended:
        for n in range(1, LONGEST + 1):
            for start in range(len(word) - n + 1):
                found.append(dot(map(code, word[start : start + n])) + 30_011 * n)
    of_words = [dot(map(code, word)) for word in ended]
    found += [word + 30_011 * (LONGEST + 1) for word in of_words]
    found += [dot(pair) + 30_011 * (LONGEST + 2) for pair in zip(of_words, of_words[1:])]
    return [value % P for value in found]


def expected(layer, words):
    kernel, bias = map(numbers, layer.weights)
    found = hashes(words)
    rows = [kernel[value % layer.buckets] for value in found]
    return bias + np.sum(rows, axis=0) / np.sqrt(len(rows))


def token_ids(texts):
    return pad([TOKENIZER.encode(text) for text in texts])[0]


def test_it_adds_up_the_weights_of_every_ngram():
    layer = made()
    words = [text.replace(",", " ,").split() for text in TEXTS]
    close(layer(token_ids(TEXTS)), np.array([expected(layer, each) for each in words]), 1e-5)
    assert len({*hashes(words[0])}) > 60  # of 31 letters: few fall together


def test_random_words_of_known_letters():
    random = np.random.default_rng(1)
    vocabulary = {TOKENIZER.token_of(index) for index in range(len(TOKENIZER))}
    letters = [letter for letter in "adefhilmnostuwx" if {letter, f"##{letter}"} <= vocabulary]
    layer = made()
    texts = [
        [
            "".join(random.choice(letters, random.integers(1, LENGTH + 3)))
            for _ in range(random.integers(1, 8))
        ]
        for _ in range(53)
    ]
    pieces = token_ids(map(" ".join, texts))
    assert not (pieces == TOKENIZER.encode("☃")[0]).any()
    close(layer(pieces), np.array([expected(layer, words) for words in texts]), 1e-5)


def test_special_tokens_have_no_ngrams():
    layer = made()
    bias = numbers(layer.bias)
    empty = np.array([TOKENIZER.analyze("a").token_ids[:1]])  # [CLS]
    close(layer(np.pad(empty, [(0, 0), (0, 3)])), bias[None], 0)


def test_beside_a_network_that_trains_it_is_silent():
    layer = made()
    close(layer(token_ids(TEXTS), training=True), np.zeros((4, 3)), 0)
    assert not layer.trainable_variables


def test_it_is_saved_with_its_weights(tmp_path):
    layer, given = made(), keras.Input((None,), dtype="int64")
    model = keras.Model(given, layer(given))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    close(loaded(token_ids(TEXTS)), model(token_ids(TEXTS)), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 0}, "units must be a positive integer"),
        ({"buckets": 2**18}, "buckets must be at most 262,139; received 262,144"),
        ({"longest": 0}, "longest must be a positive integer"),
        ({"word_length": -1}, "word_length must be a positive integer"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearNgrams(**{"units": 2, "buckets": 8, "pieces": [[1]], "goes_on": []} | arguments)
