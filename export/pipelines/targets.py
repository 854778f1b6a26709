"""Valid targets of a run's examples, and the scores of answers against them."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from seqkeras.metrics import chrf, exact_match, relative_error


class TargetError(ValueError):
    """A target of a run differs in shape from its pipeline's answers."""


@dataclasses.dataclass(frozen=True)
class Targets:
    """The targets of a pipeline."""

    scores: dict[str, Callable]  # name of a score -> (answers, targets) -> number; higher is better
    expected: str  # what a target must be, in words
    # (target, the pipeline's encoding of the input) -> whether the target is valid
    is_valid: Callable


def of_answers(metric: Callable[..., float], value: Callable[[Any], Any]) -> Callable[..., float]:
    """Return a function: (answers, targets) -> a metric of the value of each answer."""
    return lambda answers, targets: metric(map(value, answers), targets)


def text_of(answer: Any) -> str:
    return answer.text


def is_text(target: Any, _: Any = None) -> bool:
    return isinstance(target, str)


def are_texts(target: Any, _: Any = None) -> bool:
    return isinstance(target, list) and all(map(is_text, target))


def is_number(target: Any, _: Any = None) -> bool:
    return type(target) in (int, float) and math.isfinite(target)


def are_numbers(target: Any, _: Any = None) -> bool:
    try:
        return isinstance(target, list) and bool(np.isfinite(np.array(target, "float64")).all())
    except (TypeError, ValueError):
        return False


def nearness(value: Callable[[Any], Any]) -> Callable[..., float]:
    """Return (answers, targets) -> 1 - relative error; `value` takes the numbers of an answer."""

    def score(answers, targets):
        pairs = [_of_one_shape(value(answer), target) for answer, target in zip(answers, targets)]
        return 1 - relative_error(*zip(*pairs))

    return score


def _of_one_shape(value, target):
    """Return the numbers of an answer and its target, which may lack a last axis of size 1."""
    value, target = np.asarray(value, "float64"), np.asarray(target, "float64")
    if target.ndim < value.ndim and value.shape[-1] == 1:
        target = target[..., np.newaxis]
    if value.shape != target.shape:
        raise TargetError(
            f"validation.json: target must have shape {value.shape}, (horizon, targets); received "
            f"{target.shape}."
        )
    return value, target


TEXTS = Targets(
    {"chrF": of_answers(chrf, text_of), "exact match": of_answers(exact_match, text_of)},
    "a text",
    is_text,
)
