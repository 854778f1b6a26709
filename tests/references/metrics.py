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


def bleu(answers, targets, most=4):
    """The brevity penalty by the geometric mean of the precisions of n-grams of words, n to 4."""
    answers, targets = ([text.split() for text in texts] for texts in (answers, targets))
    logarithms = []
    for n in range(1, most + 1):
        found = common = 0
        for answer, target in zip(answers, targets):
            a, b = ([*map(tuple, grams(words, n))] for words in (answer, target))
            found += len(a)
            common += sum(min(a.count(gram), b.count(gram)) for gram in set(a))
        logarithms.append(np.log(common / found))
    c, r = (sum(map(len, texts)) for texts in (answers, targets))
    return min(1, np.exp(1 - r / c)) * np.exp(np.mean(logarithms))
