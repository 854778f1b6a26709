"""Agreement of answers of one class each with their targets."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from seqkeras.metrics.pairs import pairs_of


def class_f1(answers: Iterable[Any], targets: Iterable[Any]) -> dict[Any, float]:
    """Return the F1 of each class that occurs among targets and answers.

        F1(c) = 2 |both c| / (|target c| + |answer c|)

    The mean over classes is the macro F1.

    Args:
        answers, targets: n classes each.

    Returns:
        A dictionary, class -> number from 0 to 1, in the order of the classes.

    Raises:
        ValueError: if there is no answer, or not one target for each.

    Reference: van Rijsbergen 1979, chapter 7, http://www.dcs.gla.ac.uk/Keith/Chapter.7/Ch.7.html

    Example:
        >>> from seqkeras.metrics import class_f1
        >>> class_f1(["spam", "spam", "ham", "ham"], ["spam", "ham", "ham", "ham"])
        {'ham': 0.8, 'spam': 0.6666666666666666}
    """
    scores = _scores("class_f1", answers, targets)
    return {name: of_class["f1"] for name, of_class in scores.items()}


def class_scores(answers: Iterable[Any], targets: Iterable[Any]) -> dict[Any, dict[str, float]]:
    """Return precision, recall and F1 of each class that occurs among targets and answers.

        precision(c) = |both c| / |answer c|,  recall(c) = |both c| / |target c|

    A class without answers has a precision of 0; a class without targets has a recall of 0.

    Args:
        answers, targets: n classes each.

    Returns:
        A dictionary, class -> {"precision", "recall", "f1"} from 0 to 1, in the order of classes.

    Raises:
        ValueError: if there is no answer, or not one target for each.

    Reference: see `class_f1`.

    Example:
        >>> from seqkeras.metrics import class_scores
        >>> class_scores(["spam", "spam", "ham", "ham"], ["spam", "ham", "ham", "ham"])["spam"]
        {'precision': 0.5, 'recall': 1.0, 'f1': 0.6666666666666666}
    """
    return _scores("class_scores", answers, targets)


def _scores(metric, answers, targets):
    classes, counts = _counts(metric, answers, targets)
    both, of_targets, of_answers = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    rows = zip(
        (both / np.maximum(of_answers, 1)).tolist(),
        (both / np.maximum(of_targets, 1)).tolist(),
        (2 * both / (of_targets + of_answers)).tolist(),
        strict=True,
    )
    return {
        name: {"precision": precision, "recall": recall, "f1": f1}
        for name, (precision, recall, f1) in zip(classes, rows, strict=True)
    }


def matthews_correlation(answers: Iterable[Any], targets: Iterable[Any]) -> float:
    """Return the correlation of answers and targets, of any number of classes.

        R = (c s - sum_k t_k p_k) / sqrt((s^2 - sum_k t_k^2) (s^2 - sum_k p_k^2))

    Notation: s examples, c of them right; t_k targets and p_k answers of class k. 1 for all right,
    around 0 for answers that know nothing; 0 where all targets, or all answers, are one class.

    Args:
        answers, targets: n classes each.

    Returns:
        A number from -1 to 1.

    Raises:
        ValueError: if there is no answer, or not one target for each.

    Reference: Gorodkin 2004, equation 8, https://doi.org/10.1016/j.compbiolchem.2004.09.006

    Example:
        >>> from seqkeras.metrics import matthews_correlation
        >>> matthews_correlation([1, 1, 0, 0], [1, 1, 0, 0])
        1.0
        >>> matthews_correlation([1, 1, 1, 1], [1, 1, 1, 0])  # one class for all knows nothing
        0.0
    """
    _, counts = _counts("matthews_correlation", answers, targets)
    s, t, p = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    spread = float(s**2 - t @ t) * float(s**2 - p @ p)
    return float(np.trace(counts) * s - t @ p) / spread**0.5 if spread else 0.0


def _counts(metric, answers, targets):
    """Return the classes, None after the others, and how often (targets, answers) of each two
    stand together."""
    pairs = pairs_of(metric, answers, targets)
    classes = sorted(
        {name for pair in pairs for name in pair}, key=lambda name: (name is None, name)
    )
    index_of = {name: index for index, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), "int64")
    for answer, target in pairs:
        counts[index_of[target], index_of[answer]] += 1
    return classes, counts
