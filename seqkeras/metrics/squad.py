"""Answers to questions, as the Stanford Question Answering Dataset compares them."""

import re
import string

from seqkeras.metrics.pairs import pairs_of

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_exact_match(texts, targets):
    """The share of texts that equal one of their targets but for case, punctuation, articles and
    white space.

    Args:
        texts: n strings; "" for no answer.
        targets: for each a string, or a list of strings that are right.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no text, or not one target for each.

    Reference: Rajpurkar et al. 2016, section 6.1, https://arxiv.org/abs/1606.05250
    """
    pairs = pairs_of("squad_exact_match", texts, targets)
    return sum(_is_one_of(text, target) for text, target in pairs) / len(pairs)


def _is_one_of(text, target):
    return _normal(text) in map(_normal, [target] if isinstance(target, str) else target)


def _normal(text):
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())
