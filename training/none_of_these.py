"""None of these: a classifier that tells what is far from all that it learned.

A trained classifier gets a last class (`seqkeras.models.OpenClassificationHead`), which is the
answer None where the summary of no training example is as near as a threshold. A host has to know
one thing: the last logit is that of None. The threshold lies between the k-th farthest of n
held-out examples, k = floor(share (n + 1)), and the one before it, so that a new example like them
is taken for a stranger with a probability of at most the share. Where rows without a label are
given, the class is learned from them, too. What is told is cross-fitted: the threshold of each
example is chosen by the others.

Reference: Sun et al. 2022, section 3 (distance), https://arxiv.org/abs/2204.06507; Bates et al.
2023, section 2 (rank), https://arxiv.org/abs/2104.08279
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from seqkeras.data.batches import Batches
from seqkeras.data.batching import InOrder
from seqkeras.models import OpenClassificationHead, WithHeads
from seqkeras.models.heads import Head
from seqkeras.models.linear_ngrams import linear_part
from seqkeras.spreading import evenly_spread
from seqkeras.training.answering import answerer
from seqkeras.training.calibration import FOLDS, logits_of
from seqkeras.training.console import console
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.training.task import Modelling

SETTING = "none_of_these"
STRANGER = "\0none"  # a name for the last class, which no label has
EXAMPLES = 4096  # at most, to which a text is compared
DIM = 64  # numbers of a summary that are compared, at most
USUAL = 0.01
LEAST = 0.05  # difference of two distances, so that rounding shows in no score


class _Pooled(Head):
    """What other heads are given."""

    def call(self, pooled, training=False):
        return pooled


def answering_none(
    model: keras.Model,
    name: str,
    modelling: Modelling,
    run: RunFiles,
    train: Sequence[Any],
    answered: tuple[Sequence[Any], Sequence[Any]],
    learned: bool,
) -> tuple[keras.Model, RunFiles, dict[str, Any]]:
    """Return a model of one more class, its run, and what scores.json says of it.

    Args:
        model: a classifier, calibrated.
        name: name of its head, or of its last layer, that gives logits.
        modelling: what makes arrays of examples; its options have `false_alarms` and `seed`.
        run: a `seqkeras.runs.RunFiles`.
        train: training examples.
        answered: held-out examples, and the answers to them without the further class.
        learned: whether the last logit of the model is that of None already.
    """
    options, (examples, answers) = modelling.options, answered
    known, held = _compared(train), _compared(examples)
    neighbours = Neighbours.of(summaries(model, name, modelling, known, run))
    distances = neighbours.distances(summaries(model, name, modelling, held, run))
    expected = peaks(model, modelling, held, run)
    model, head = with_none(
        model, name, neighbours, distances, options.false_alarms, learned, expected
    )
    best = [next(iter(answer.scores), None) for answer in answers]
    targets = [example.target for example in examples]
    told = chosen(
        margins(model, run, [example.text for example in examples]),
        np.array([target is not None for target in targets]),
        np.array(best) == np.array(targets),
        options.false_alarms,
        options.seed,
    )
    head.threshold.assign_sub(told.pop("threshold") / float(head.slope))
    told["threshold"] = float(head.threshold)
    record = dataclasses.replace(run.record, settings=run.record.settings | {SETTING: True})
    return model, dataclasses.replace(run, record=record), told


def _compared(examples):
    """Return examples with a label, at most so many as are compared, evenly spread."""
    labelled = [example for example in examples if example.target is not None]
    return [labelled[index] for index in evenly_spread(EXAMPLES, len(labelled))]


def summaries(
    model: keras.Model, name: str, modelling: Modelling, examples: Sequence[Any], run: RunFiles
) -> np.ndarray:
    """Return (rows, D), what the head, or the last layer, of a name is given of examples: a row for
    each, or for each of its windows."""
    if isinstance(model, WithHeads):
        pooled = WithHeads(model.encoder, {name: _Pooled()}, model.frozen, model.pooling)
        pooled.build(None)
    else:
        pooled = keras.Model(model.input, {name: model.get_layer(name).input})
    return _outputs(pooled, name, modelling, examples, run)


def peaks(
    model: keras.Model, modelling: Modelling, examples: Sequence[Any], run: RunFiles
) -> np.ndarray | None:
    """Return (rows,), the largest logit of a label that the linear part of a model gives examples;
    None without such a part."""
    if isinstance(model, WithHeads) or (part := linear_part(model)) is None:
        return None
    alone = keras.Model(model.input, {part.name: part.output})
    logits = _outputs(alone, part.name, modelling, examples, run)
    return logits[:, : len(run.record.settings["labels"])].max(axis=1)


def _outputs(model, name, modelling, examples, run):
    with console.capture():  # what `arrays` prints was said before
        inputs, targets, lengths = modelling.arrays(examples, run)
    order = InOrder(lengths, modelling.options.batch_size)
    batches = Batches(inputs, targets, order).from_step(0)
    rows = (model(inputs, training=False)[name] for inputs, *_ in batches)
    return np.concatenate([keras.ops.convert_to_numpy(batch) for batch in rows])


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """Examples to which others are compared.

    Attributes:
        projection: (D, dim), the directions in which summaries are long.
        examples: (dim, n) of length 1.
    """

    projection: np.ndarray
    examples: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Neighbours:
        """Return the `Neighbours` of (n, D) summaries: at most `EXAMPLES`, evenly spread."""
        rows = rows[evenly_spread(EXAMPLES, len(rows))].astype("float64")
        _, directions = np.linalg.eigh(rows.T @ rows)  # ascending
        projection = directions[:, : -DIM - 1 : -1]
        return cls(projection, _unit(rows @ projection).T)

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """Return (n,), how far the nearest example is from each of (n, D) summaries."""
        cosines = (_unit(rows @ self.projection) @ self.examples).max(axis=1)
        return np.sqrt(np.maximum(2 - 2 * cosines, 0))


def _unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def with_none(
    model: keras.Model,
    name: str,
    neighbours: Neighbours,
    distances: np.ndarray,
    share: float,
    learned: bool = False,
    expected: np.ndarray | None = None,
) -> tuple[keras.Model, OpenClassificationHead]:
    """Return a model of one more class, and its head.

    Args:
        model: a classifier; the new one shares its layers.
        name: name of its head, or of its last layer, that gives logits.
        neighbours: the `Neighbours` of its training examples.
        distances: those of held-out examples. The threshold lies under a share of them, and half of
            them get a score of None that is `USUAL` times that of a label, or less.
        share: under 1/2.
        learned: whether the last logit of the model is that of None already.
        expected: `peaks` of the held-out examples, which count as much as distances: both are
            divided by their standard deviation.
    """
    dim, count = neighbours.examples.shape
    if isinstance(model, WithHeads):
        layer, more = model.heads[name].output_layer, {"dropout": model.heads[name].dropout}
    else:
        layer, more = model.get_layer(name), {"name": name}
    head = OpenClassificationHead(
        layer.units - learned, count, dim, learned, dtype=layer.dtype_policy.name, **more
    )
    if isinstance(model, WithHeads):
        made = WithHeads(model.encoder, {name: head}, model.frozen, model.pooling)
        made.build(None)
    else:
        linear = linear_part(model)
        made = keras.Model(model.input, head(layer.input, linear and linear.output))
    if expected is not None:
        weight = np.std(distances) / max(np.std(expected), LEAST)
        distances = distances - weight * expected
        head.share.assign(weight)
    usual, threshold = np.quantile(distances, [0.5, 1 - share])
    head.output_layer.set_weights(layer.get_weights())
    head.projection.assign(neighbours.projection)
    head.examples.assign(neighbours.examples)
    head.slope.assign(-math.log(USUAL) / max(threshold - usual, LEAST))
    head.threshold.assign(threshold)
    return made, head


def margins(model: keras.Model, run: RunFiles, texts: Sequence[Any]) -> np.ndarray:
    """Return by how much the largest logit of a label is over the logit of the last class, as
    serving computes them; NaN where they are not finite.

    Args:
        model: a model of one more class than the run has labels.
        run: its `seqkeras.runs.RunFiles`.
        texts: inputs.
    """
    labels = run.record.settings["labels"]
    settings = {**run.record.settings, "labels": [*labels, STRANGER]}
    settings.pop(SETTING, None)
    record = dataclasses.replace(run.record, settings=settings)
    answers = answerer(dataclasses.replace(run, record=record))(model, texts)
    largest = [
        [max(map(answer.scores.__getitem__, labels)), answer.scores[STRANGER]]
        if answer.scores
        else [math.nan] * 2
        for answer in answers
    ]
    of_labels, of_none = logits_of(np.array(largest)).T
    return of_labels - of_none


def rank(share: float, count: int) -> int:
    """Return which of so many held-out examples, from the farthest, 1, has the threshold; 0: they
    are too few for the share."""
    return math.floor(share * (count + 1))


def fewest(share: float) -> int:
    """Return how many held-out examples a threshold needs."""
    count = 1
    while not rank(share, count):
        count += 1
    return count


def threshold_of(margins: np.ndarray, share: float) -> float:
    """Return the threshold under which at most a share of examples like these have their margin;
    -inf, which no margin is under, for too few of them."""
    position = rank(share, len(margins))
    if not position:
        return -math.inf
    highest = np.sort(margins)[position - 1]
    lower = margins[margins < highest]
    next_lower = lower.max() if len(lower) else highest
    return float((highest + next_lower) / 2)  # so that rounding decides of no held-out example


def chosen(
    margins: np.ndarray, in_scope: np.ndarray, right: np.ndarray, share: float, seed: int
) -> dict[str, Any]:
    """Return the threshold that held-out examples choose, and what is told of it.

    Args:
        margins: (n,) of `margins`.
        in_scope: (n,) whether an example has a label.
        right: (n,) whether its most probable label is the right one.
        share: of examples with a label that may be answered None.
        seed: seed of the folds.

    Returns:
        "threshold" of the margins, of all examples; "asked", the share; and `told`, cross-fitted
        in `FOLDS` folds, or with each example left out where they are few.
    """
    order = np.random.default_rng(seed).permutation(len(margins))
    folds = FOLDS
    if not all(rank(share, np.sum(in_scope & (order % folds != n))) for n in range(folds)):
        folds = len(margins)  # each example is left out alone
    fold = order % folds
    thresholds = [
        threshold_of(margins[in_scope & (fold != number)], share) for number in range(folds)
    ]
    is_none = margins < np.array(thresholds)[fold]
    threshold = threshold_of(margins[in_scope], share)
    return {"threshold": threshold, "asked": share, **told(is_none, in_scope, right & ~is_none)}


def told(is_none: np.ndarray, in_scope: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Return what is told of answers.

    Args:
        is_none: (n,) whether an answer is None.
        in_scope: (n,) whether an example has a label.
        right: (n,) whether the answer is that label.

    Returns:
        "examples" with a label; "false_alarms", the share of them that is answered None;
        "accuracy", the share of them that is right; "out_of_scope", the examples without a label;
        and "told", the share of these that is answered None, or None without any.
    """
    strangers = is_none[~in_scope]
    return {
        "examples": int(in_scope.sum()),
        "false_alarms": float(is_none[in_scope].mean()),
        "accuracy": float(right[in_scope].mean()),
        "out_of_scope": len(strangers),
        "told": float(strangers.mean()) if len(strangers) else None,
    }


def in_words(none: Mapping[str, Any]) -> str:
    """Return what is told of None, for a line of the terminal."""
    asked = f" ({none['asked']:.1%} asked for, cross-fitted)" if "asked" in none else ""
    strangers = counted(none["out_of_scope"], "examples", "example")
    told = "" if none["told"] is None else f"; {none['told']:.1%} of {strangers} out of scope"
    return (
        f"null is the answer to {none['false_alarms']:.1%} of {none['examples']:,} examples with a "
        f"label{asked}{told}; {none['accuracy']:.2%} of those with a label are right"
    )
