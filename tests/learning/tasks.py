"""Small tasks that need what a family promises: inputs and labels of any number of examples.

Each takes a number of examples, a length if that is free, and a NumPy random generator.
"""

import numpy as np


def recall(examples, length, random, symbols=2):
    """Which symbol came first: a mark says which is the first, the `length` others are noise.

    Returns:
        (N, length + 1, symbols + 1) inputs, one-hot symbols beside the mark, and the (N,) symbol.
    """
    tokens = random.integers(symbols, size=(examples, length + 1))
    marks = np.zeros((examples, length + 1, 1), "float32")
    marks[:, 0] = 1
    one_hot = np.eye(symbols, dtype="float32")[tokens]
    return np.concatenate([one_hot, marks], axis=-1), tokens[:, 0]


def enclosed(examples, random, kinds=6, noise=2):
    """Sentences whose first word says the last one and how long they are, and the other way round.

    Word 1 + k opens and word 1 + kinds + k closes; between them stand 2 + k % 3 words of noise.

    Returns:
        (N, 6) word ids, padded with 0, the (N,) lengths, and what a word costs in nats, on the
        average of all words but the first (or but the last, read backwards), if all is known that
        can be.
    """
    kind = random.integers(kinds, size=examples)
    lengths = 4 + kind % 3
    word_ids = 1 + 2 * kinds + random.integers(noise, size=(examples, 6))
    word_ids[:, 0] = 1 + kind
    word_ids[np.arange(examples), lengths - 1] = 1 + kinds + kind
    word_ids[np.arange(6) >= lengths[:, None]] = 0
    return word_ids, lengths, np.log(noise) * np.sum(lengths - 2) / np.sum(lengths - 1)
