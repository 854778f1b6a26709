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


def adding(examples, length, random):
    """The sum of the two numbers that are marked, one in each half.

    Returns:
        (N, length, 2) inputs, numbers in [0, 1] beside marks, and the (N,) sums. Always to answer 1
        errs by 1/6 (mean square).

    Reference: Hochreiter and Schmidhuber 1997, section 5.4
    """
    numbers = random.uniform(size=(examples, length))
    marks = np.zeros((examples, length))
    rows, half = np.arange(examples), length // 2
    marks[rows, random.integers(half, size=examples)] = 1
    marks[rows, random.integers(half, length, size=examples)] = 1
    inputs = np.stack([numbers, marks], axis=-1).astype("float32")
    return inputs, np.sum(numbers * marks, axis=1).astype("float32")


def brackets(examples, length, random):
    """Whether the brackets are balanced: every second example is.

    All have as many of ( as of ), so that to count them is not enough: the order matters.

    Returns:
        (N, length) token ids, 0 for ( and 1 for ), and the (N,) answers.
    """
    rows = []
    while len(rows) < examples:
        tokens = random.permutation(np.repeat([0, 1], length // 2))
        balanced = np.cumsum(1 - 2 * tokens).min() >= 0
        if balanced == (len(rows) % 2 == 0):
            rows.append(tokens)
    return np.stack(rows), (np.arange(examples) + 1) % 2


def near(examples, length, distance, random, vocab_size=19):
    """Whether token 0 stands within so many positions of each position.

    Returns:
        (N, length) token ids, and the (N, length) answers.
    """
    token_ids = random.integers(vocab_size, size=(examples, length))
    padded = np.pad(token_ids == 0, [(0, 0), (distance, distance)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * distance + 1, axis=1)
    return token_ids, windows.any(axis=-1).astype(int)


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
