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

chrF is the F-score of the n-grams of characters that an answer shares with its target, and tells
of answers too none of which is exact. A relative error is the sum of what the answers are off,
beside the sum of the targets' sizes. An `Embed` has no score. Answers are those that a user gets:
beams where the run asks for them.

Reference: chrF: Popovic 2015, https://aclanthology.org/W15-3049, as sacrebleu computes it
"""

import dataclasses
import functools
import math
import re
import string
from collections.abc import Callable

import numpy as np
from sacrebleu.metrics import CHRF

from export.verifying.parity import EXAMPLES
from serving.checks import shown
from serving.opening import Runtime
from serving.pipelines import PIPELINES
from serving.pipelines.entities import entities

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


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


def _share(is_right):
    """The share of answers that are right."""
    return lambda answers, targets: np.mean(list(map(is_right, answers, targets)))


def _chrf(answers, targets):
    return CHRF().corpus_score([answer.text for answer in answers], [targets]).score / 100


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
        {"accuracy": _share(lambda answer, target: answer.labels == (target,))},
        f"one of the labels {', '.join(labels)}",
        lambda target, _: target in labels,
    )


def _several(labels):
    return _Kind(
        {"exact match": _share(lambda answer, target: set(answer.labels) == set(target))},
        f"a list of the labels {', '.join(labels)}",
        lambda target, _: isinstance(target, list) and all(each in labels for each in target),
    )


def _tags(labels, scheme):
    def may_be(target, row):
        known = isinstance(target, list) and all(each in labels for each in target)
        return known and len(target) == len(getattr(row, "places", row))

    return _Kind(
        {"F1 of entities": _entities_f1} if scheme else {"accuracy": _share_of_tags},
        f"a list of a tag for each word, of {', '.join(labels)}",
        may_be,
    )


def _entities_f1(answers, targets):
    """2 common / (found + true), of entities with their places and labels."""
    pairs = [
        (set(entities(tags)), set(entities(target)))
        for tags, target in zip(map(_tags_of, answers), targets)
    ]
    common = sum(len(found & true) for found, true in pairs)
    total = sum(len(found) + len(true) for found, true in pairs)
    return 2 * common / total if total else 1.0


def _share_of_tags(answers, targets):
    tags = zip(map(_tags_of, answers), targets)
    return np.mean([one == other for each in tags for one, other in zip(*each, strict=True)])


def _tags_of(answer):
    return [word.tag for word in answer.words]


def _is_answer(answer, target):
    """Equal but for case, punctuation, articles and white space.

    Reference: Rajpurkar et al. 2016, section 6.1, https://arxiv.org/abs/1606.05250
    """
    return _plain(answer.text) in map(_plain, [target] if isinstance(target, str) else target)


def _plain(text):
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def _share_of_masks(answers, targets):
    return np.mean(
        [
            fillers[0].token == token
            for answer, target in zip(answers, targets)
            for fillers, token in zip(answer.masks, target, strict=True)
        ]
    )


def _nearness(value):
    """(answers, targets) -> 1 - relative error, of the numbers `value` of an answer."""

    def measure(answers, targets):
        off = size = 0.0
        for answer, target in zip(answers, targets):
            found = np.asarray(value(answer), "float64")
            true = np.asarray(target, "float64")
            if true.ndim < found.ndim and found.shape[-1] == 1:
                true = true[..., np.newaxis]
            if found.shape != true.shape:
                raise TargetError(
                    f"validation.json: target must have shape {found.shape}, (horizon, targets); "
                    f"received {true.shape}."
                )
            off += np.abs(found - true).sum()
            size += np.abs(true).sum()
        return 1 - off / (size or 1.0)

    return measure


TEXT = _Kind(
    {"chrF": _chrf, "exact match": _share(lambda answer, target: answer.text == target)},
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
        {"exact match": _share(_is_answer)},
        'a text or a list of texts, "" for no answer',
        lambda target, _: _is_text(target) or (_are_texts(target) and bool(target)),
    ),
    "Choose": _Kind(
        {"accuracy": _share(lambda answer, target: answer.index == target)},
        "the place of a choice, from 0",
        lambda target, row: type(target) is int and 0 <= target < len(row.choices),
    ),
    "FillMask": _Kind(
        {"accuracy": _share_of_masks},
        "a list of a token for each mask",
        lambda target, row: _are_texts(target) and len(target) == len(row.masks),
    ),
    "Forecast": _Kind(
        {"1 - relative error": _nearness(lambda answer: answer.values)},
        "a list of (horizon, targets) numbers",
        _are_numbers,
    ),
}
