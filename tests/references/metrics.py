"""Metrics of answers beside targets, by loops from their definitions."""

import numpy as np


def chrf(answers, targets, most=6, beta=2):
    """F of the mean precision and the mean recall of n-grams without white space, n up to 6."""
    precisions, recalls = [], []
    for n in range(1, most + 1):
        found, true, common = 0, 0, 0
        for answer, target in zip(answers, targets):
            a, b = (grams(text.replace(" ", ""), n) for text in (answer, target))
            found, true = found + len(a), true + len(b)
            common += sum(min(a.count(gram), b.count(gram)) for gram in set(a))
        precisions.append(common / found)
        recalls.append(common / true)
    p, r = np.mean(precisions), np.mean(recalls)
    return (1 + beta**2) * p * r / (beta**2 * p + r)


def grams(text, n):
    return [text[place : place + n] for place in range(len(text) - n + 1)]
