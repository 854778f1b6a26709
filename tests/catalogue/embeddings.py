"""Words from characters, and what stands between them and a model."""

import numpy as np

from seqkeras.embeddings import CharacterCNN, Highway, WordCharacters
from tests.arrays import floats
from tests.catalogue.case import B, Case, D, S

W = 3  # characters of the longest word
PIECES = [[], [1], [], [], [4], [5, 6], [4], [5, 6, 7], [8], [9], [9, 4]]  # of each token id
GOES_ON = [6, 7, 9]  # of them those that go on with a word
SPELLED = {"token_ids": np.array([[2, 4, 7, 6, 3, 8, 3], [2, 10, 1, 3, 5, 9, 3]])}


def characters(vocab_size, length=S, seed=0):
    """(B, length, W) character ids; words of every length, one without a character."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, W + 1, (B, length))
    lengths[0, 1] = 0
    ids = random.integers(1, vocab_size, (B, length, W))
    return ids * (np.arange(W) < lengths[..., None])


def character_case(activation):
    def make():
        return CharacterCNN(17, 7, [2, 5], [3, 11], activation=activation)

    return Case(
        f"CharacterCNN({activation})",
        make,
        lambda: {"character_ids": characters(17)},
        {"character_ids": 1},
        past=("character_ids",),
    )


CASES = [
    character_case("tanh"),
    character_case("relu"),
    Case(
        "Highway",
        lambda: Highway(activation="tanh", gate_bias=-1.0),
        lambda: {"inputs": floats(B, S, D)},
        {"inputs": 1},
        past=("inputs",),
    ),
    Case(
        "WordCharacters",
        lambda: WordCharacters(
            17, 7, [2, 5], [3, 11], PIECES, GOES_ON, word_length=7, activation="relu"
        ),
        lambda: SPELLED,
    ),
]
