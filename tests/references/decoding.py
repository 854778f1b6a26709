"""Greedy decoding, one row at a time."""

import numpy as np


def greedy(logits, row, start_id, end_id, max_length):
    """Ids, `<eos>` included, and the sum of their log-probabilities.

    `logits(row, prefix)` gives (V,) for the next token; the prefix begins with `start_id`.
    """
    ids, score = [], 0.0
    while len(ids) < max_length and end_id not in ids:
        following = np.asarray(logits(row, [start_id, *ids]), np.float64)
        following = following - np.log(np.exp(following - following.max()).sum()) - following.max()
        ids.append(int(following.argmax()))
        score += following[ids[-1]]
    return ids, score
