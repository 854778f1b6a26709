"""Soft attention, one query at a time."""

import numpy as np


def softmax(scores):
    exponentials = np.exp(scores - np.max(scores))
    return exponentials / exponentials.sum()


def additive_score(query, key, query_kernel, key_kernel, scale):
    """Bahdanau et al. 2015, appendix A.1.2: e(t, s) = v^T tanh(W q(t) + U k(s))."""
    query, key, W, U, v = (
        np.asarray(each, np.float64)
        for each in (query, key, np.transpose(query_kernel), np.transpose(key_kernel), scale)
    )
    scores = np.empty((query.shape[0], query.shape[1], key.shape[1]))
    for row, t, s in np.ndindex(scores.shape):
        scores[row, t, s] = v[:, 0] @ np.tanh(W @ query[row, t] + U @ key[row, s])
    return scores


def attention(scores, value, mask=None):
    """Bahdanau et al. 2015, section 3.1: context (B, T, D) and weights (B, T, S).

    What is masked is not there: the softmax runs over the positions that are left.
    """
    weights = np.zeros(scores.shape)
    context = np.zeros((*scores.shape[:2], value.shape[-1]))
    for row, t in np.ndindex(scores.shape[:2]):
        seen = np.arange(scores.shape[2]) if mask is None else np.flatnonzero(mask[row, t])
        if len(seen):
            weights[row, t, seen] = softmax(scores[row, t, seen])
            context[row, t] = sum(weights[row, t, s] * value[row, s] for s in seen)
    return context, weights
