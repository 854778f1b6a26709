"""How good a pipeline's answers are on a run's examples, where these hold targets.

    pipeline             target                                        score
    Translate, Generate  text                                          chrF, exact match
    Classify             label                                         accuracy
                         list of labels, of several at once            exact match
                         number, of a regression                       1 - relative error
    Tag                  list of tags, one for each word               F1 of entities, or accuracy
    Answer               text, or a list of them; "" for no answer     exact match
    Choose               place of the choice, from 0                   accuracy
    FillMask             list of tokens, one for each mask             accuracy
    Forecast             list of (horizon, targets) numbers            1 - relative error

The metrics are `seqkeras.metrics`'; here stands which one a pipeline has, and what of its answer
they compare. An `Embed` has no score. Answers are those that a user gets: beams where the run asks
for them.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from export.verifying.parity import EXAMPLES
from seqkeras.metrics import (
    chrf,
    entity_f1,
    exact_match,
    relative_error,
    squad_exact_match,
    tag_accuracy,
)
from serving.checks import shown
from serving.opening import Runtime
from serving.pipelines import PIPELINES


class TargetError(ValueError):
    """A target of a run has another shape than its pipeline's answers."""


@dataclasses.dataclass(frozen=True)
class Scores:
    """The scores of a bundle.

    Attributes:
        examples: how many they are measured on.
        of: a function of a precision's name that gives name -> number; higher is better.
    """

    examples: int
    of: Callable


def scores_of(contents, folder, manifest):
    """The `Scores` of a bundle, or None where its run has no targets.

    Args:
        contents: the run's `Contents`.
        folder: the bundle.
        manifest: its `Manifest`, with all precisions.
    """
    kind = _kind(manifest.pipeline, manifest.settings)
    pairs = [
        (given, example["target"])
        for given, example in zip(contents.inputs, contents.examples)
        if "target" in example
    ][:EXAMPLES]
    if kind is None or not pairs:
        return None
    inputs, targets = map(list, zip(*pairs))

    @functools.cache
    def of(precision):
        pipeline = PIPELINES[manifest.pipeline](folder, manifest, Runtime(precision))
        answers = pipeline(inputs)
        return {name: float(measure(answers, targets)) for name, measure in kind.scores.items()}

    return Scores(len(pairs), of)


def wrong_target(pipeline, settings, example, row):
    """Yield what is wrong with the target of an example, if it has one.

    Args:
        pipeline, settings: as in the manifest.
        example: dictionary of "target".
        row: what the pipeline's `encode` makes of its input.
    """
    kind = _kind(pipeline, settings)
    if kind is not None and "target" in example and not kind.may_be(example["target"], row):
        yield f"target must be {kind.expected}; received {shown(example['target'])}"


@dataclasses.dataclass(frozen=True)
class _Kind:
    """Of each score its name and (answers, targets) -> number; what a target must be."""

    scores: dict[str, Callable]
    expected: str
    may_be: Callable  # (target, what the pipeline reads of its input) -> bool


def _kind(pipeline, settings):
    """The `_Kind` of a pipeline with its settings, or None."""
    if pipeline == "Classify":
        labels = settings.get("labels") or ()
        if not labels:
            return REGRESSION
        return _several(labels) if settings.get("multi_label") else _label(labels)
    if pipeline == "Tag":
        return _tags(settings.get("labels") or (), settings.get("scheme", "IOB2"))
    return KINDS.get(pipeline)


def _of_answers(metric, value):
    """(answers, targets) -> a metric of the value of each answer."""
    return lambda answers, targets: metric(map(value, answers), targets)


def _text(answer):
    return answer.text


def _is_text(target, _=None):
    return isinstance(target, str)


def _are_texts(target, _=None):
    return isinstance(target, list) and all(map(_is_text, target))


def _is_number(target, _=None):
    return type(target) in (int, float) and math.isfinite(target)


def _are_numbers(target, _=None):
    try:
        return isinstance(target, list) and bool(np.isfinite(np.array(target, "float64")).all())
    except (TypeError, ValueError):
        return False


def _label(labels):
    return _Kind(
        {"accuracy": _of_answers(exact_match, lambda answer: answer.labels[0])},
        f"one of the labels {', '.join(labels)}",
        lambda target, _: target in labels,
    )


def _several(labels):
    return _Kind(
        {
            "exact match": lambda answers, targets: exact_match(
                (set(answer.labels) for answer in answers), map(set, targets)
            )
        },
        f"a list of the labels {', '.join(labels)}",
        lambda target, _: isinstance(target, list) and all(label in labels for label in target),
    )


def _tags(labels, scheme):
    def may_be(target, row):
        known = isinstance(target, list) and all(each in labels for each in target)
        return known and len(target) == len(getattr(row, "places", row))

    metric = {"F1 of entities": entity_f1} if scheme else {"accuracy": tag_accuracy}
    return _Kind(
        {name: _of_answers(measure, _tags_of) for name, measure in metric.items()},
        f"a list of a tag for each word, of {', '.join(labels)}",
        may_be,
    )


def _tags_of(answer):
    return [word.tag for word in answer.words]


def _accuracy_of_masks(answers, targets):
    tokens = [fillers[0].token for answer in answers for fillers in answer.masks]
    return exact_match(tokens, itertools.chain(*targets))


def _nearness(value):
    """(answers, targets) -> 1 - relative error, of the numbers `value` of an answer."""

    def measure(answers, targets):
        pairs = [_of_one_shape(value(answer), target) for answer, target in zip(answers, targets)]
        return 1 - relative_error(*zip(*pairs))

    return measure


def _of_one_shape(found, target):
    """The numbers of an answer and its target, which may lack an axis of one target."""
    found, target = np.asarray(found, "float64"), np.asarray(target, "float64")
    if target.ndim < found.ndim and found.shape[-1] == 1:
        target = target[..., np.newaxis]
    if found.shape != target.shape:
        raise TargetError(
            f"validation.json: target must have shape {found.shape}, (horizon, targets); received "
            f"{target.shape}."
        )
    return found, target


TEXT = _Kind(
    {"chrF": _of_answers(chrf, _text), "exact match": _of_answers(exact_match, _text)},
    "a text",
    _is_text,
)
REGRESSION = _Kind(
    {"1 - relative error": _nearness(lambda answer: answer.score)}, "a number", _is_number
)
KINDS = {
    "Translate": TEXT,
    "Generate": TEXT,
    "Answer": _Kind(
        {"exact match": _of_answers(squad_exact_match, _text)},
        'a text or a list of texts, "" for no answer',
        lambda target, _: _is_text(target) or (_are_texts(target) and bool(target)),
    ),
    "Choose": _Kind(
        {"accuracy": _of_answers(exact_match, lambda answer: answer.index)},
        "the place of a choice, from 0",
        lambda target, row: type(target) is int and 0 <= target < len(row.choices),
    ),
    "FillMask": _Kind(
        {"accuracy": _accuracy_of_masks},
        "a list of a token for each mask",
        lambda target, row: _are_texts(target) and len(target) == len(row.masks),
    ),
    "Forecast": _Kind(
        {"1 - relative error": _nearness(lambda answer: answer.values)},
        "a list of (horizon, targets) numbers",
        _are_numbers,
    ),
}
