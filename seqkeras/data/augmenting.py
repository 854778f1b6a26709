"""Altered copies of texts, on which a teacher may be asked."""

from collections import Counter
from collections.abc import Sequence

import numpy as np


def altered(
    texts: Sequence[str],
    seed: int | Sequence[int],
    dropped: float = 0.1,
    replaced: float = 0.1,
    shortened: float = 0.25,
    longest: int = 5,
) -> list[str]:
    """Return a copy of every text with other words.

    Each word is left out with the probability `dropped`; with `replaced` a word of all texts,
    drawn by its frequency, stands in its place. With `shortened`, only n words in a row are kept,
    n from 1 to `longest`.

    Where the paper writes [MASK], which not every model reads, the word is left out; and it draws
    words of the same part of speech.

    Args:
        texts: list of texts, words with spaces between them.
        seed: seed of all draws, an integer or a list of them.

    Returns:
        A list of as many texts; a text of which nothing is left is "".

    Reference: Tang et al. 2019, section 4.3, https://arxiv.org/abs/1903.12136
    """
    draw = np.random.default_rng(seed)
    rows = [text.split() for text in texts]
    counts = Counter(word for row in rows for word in row)
    words, total = [*counts], sum(counts.values())
    others = draw.choice(len(words), sum(map(len, rows)), p=[n / total for n in counts.values()])
    chances = draw.random(len(others))
    copies, offset = [], 0
    for row in rows:
        copy = []
        for word, chance, other in zip(row, chances[offset:], others[offset:]):
            if chance >= dropped:
                copy.append(words[other] if chance < dropped + replaced else word)
        offset += len(row)
        if draw.random() < shortened and copy:
            size = int(draw.integers(1, longest + 1))
            start = draw.integers(0, max(1, len(copy) - size + 1))
            copy = copy[start : start + size]
        copies.append(" ".join(copy))
    return copies
