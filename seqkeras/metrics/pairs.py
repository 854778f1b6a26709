"""Answers and their targets, in pairs, and how many are equal."""

from collections.abc import Iterable
from typing import Any


def pairs_of(metric: str, answers: Iterable[Any], targets: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return the list of (answer, target), of any iterables.

    Raises:
        ValueError: if there is none, or not one target for each answer; it names the metric.
    """
    answers, targets = list(answers), list(targets)
    if not answers or len(answers) != len(targets):
        raise ValueError(
            f"{metric}: needs at least one answer and one target for each answer; received "
            f"{len(answers)} answers and {len(targets)} targets."
        )
    return list(zip(answers, targets))


def exact_match(answers: Iterable[Any], targets: Iterable[Any]) -> float:
    """Return the share of answers that equal their targets: texts, labels, sets of labels, numbers.

        exact match = 1/n sum_i [answer_i = target_i]

    Args:
        answers, targets: n values each, compared with `==`.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no answer, or not one target for each.

    Example:
        >>> from seqkeras.metrics import exact_match
        >>> exact_match(["2014-05-03", "2014-05-04"], ["2014-05-03", "2014-05-05"])
        0.5
        >>> exact_match([{"a", "b"}], [{"b", "a"}])
        1.0
    """
    pairs = pairs_of("exact_match", answers, targets)
    return sum(answer == target for answer, target in pairs) / len(pairs)
