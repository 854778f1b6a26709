"""The linear classifier of n-grams against strings and a loop in float64."""

import numpy as np

from seqkeras.models import LinearNgrams
from seqkeras.tokenizers import CharacterTable, learn_word_piece, pad, spelled_pieces
from tests.arrays import close, numbers
from tests.refusals import refusals

TEXTS = ["a fine film, the finest of films", "dull", "the end", "two films end as one film does"]
P, LONGEST, LENGTH = 8_191, 4, 6
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
    return 4_099 if character in "<>" else pow(TABLE.encode(character)[0] + 1, 11, P)


def dot(codes):
    return sum(pow(1103, j + 1, P) * each for j, each in enumerate(codes))


def hashes(words, buckets):
    """Buckets of the n-grams of a text."""
    found = []
    ended = [f"<{word[:LENGTH]}>" for word in words]
    for word in ended:
        for n in range(2, LONGEST + 1):
            for start in range(len(word) - n + 1):
                found.append(dot(map(code, word[start : start + n])) + 30_011 * n)
    of_words = [(dot(map(code, word)) + 30_011 * (LONGEST + 1)) % buckets for word in ended]
    found += of_words
    found += [dot(pair) + 30_011 * (LONGEST + 2) for pair in zip(of_words, of_words[1:])]
    return [value % buckets for value in found]


def expected(layer, words):
    kernel, bias = map(numbers, layer.weights)
    rows = [kernel[place] for place in hashes(words, layer.buckets)]
    return bias + np.sum(rows, axis=0) / np.sqrt(len(rows))


def token_ids(texts):
    return pad([TOKENIZER.encode(text) for text in texts])[0]


def test_it_adds_up_the_weights_of_every_ngram():
    layer = made()
    words = [text.replace(",", " ,").split() for text in TEXTS]
    close(layer(token_ids(TEXTS)), np.array([expected(layer, each) for each in words]), 1e-5)
    texts = [f"{a}{b}{c}" for a in "adefhilmnos" for b in "eio" for c in "lmnst"]
    assert len({hashes([text], 2**16 - 1)[-1] for text in texts}) > 160  # of 165 words


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


def sized(**arguments):
    given = {"units": 2, "buckets": 8, "pieces": [[1]], "goes_on": []} | arguments
    return lambda: LinearNgrams(**given)


test_sizes_that_do_not_fit_are_refused = refusals(
    (sized(buckets=2**17), "buckets must be at most 65,536, ... received 131,072, 5 and 16"),
    (sized(word_length=29), "longest <= word_length <= 28; received 8, 5 and 29"),
    (sized(longest=1), "2 <= longest <= ... received 8, 1 and 16"),
    (sized(longest=17), "2 <= longest <= ... received 8, 17 and 16"),
)
