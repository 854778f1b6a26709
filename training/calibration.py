"""Scores as probabilities: a temperature, fitted after training on the validation examples.

A label does not change by it, and the weights of the last layer take it up: whoever runs the model
gets the calibrated scores. What is told of them is cross-fitted: each example is scored with the
temperature of the others.

Reference: Guo et al. 2017, https://arxiv.org/abs/1706.04599
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras.metrics import area_under_risk_coverage, expected_calibration_error
from seqkeras.metrics.calibration import fitted_temperature, log_softmax, reliability

if TYPE_CHECKING:
    import keras

FOLDS = 5
SMALLEST = 1e-300  # of a score whose logarithm is taken
FEWEST = 20  # examples of which a temperature is fitted


class Chances(NamedTuple):
    """What a model holds for possible.

    Attributes:
        logits: (K,) logits, or log-probabilities, of classes.
        target: place of the right class.
        example: number of the example that it belongs to; examples are in one fold each.
    """

    logits: np.ndarray
    target: int
    example: int


def calibrated(chances: Sequence[Chances], seed: int) -> dict[str, Any] | None:
    """Return what a temperature brings, content of scores.json; None where it brings nothing.

    Args:
        chances: `Chances` of the validation examples.
        seed: seed of the folds.

    Returns:
        "temperature", of all examples; "before" and "after" it, cross-fitted in `FOLDS` folds, the
        calibration error, the loss and the area under risk and coverage; "reliability" and "risk",
        the rows of their diagrams. None for too few examples, and where the cross-fitted loss is
        not lower than without a temperature.
    """
    examples = np.array([each.example for each in chances], int)
    if len(np.unique(examples)) < FEWEST:
        return None
    places = np.array([each.target for each in chances])
    logits = _joined([each.logits for each in chances])
    fold = np.random.default_rng(seed).permutation(examples.max() + 1)[examples] % FOLDS
    temperatures = [
        fitted_temperature(logits[fold != number], places[fold != number])
        for number in range(FOLDS)
    ]
    before = log_softmax(logits)
    after = log_softmax(logits / np.array(temperatures)[fold][:, None])
    told = {"before": _told(before, places), "after": _told(after, places)}
    if told["after"]["negative_log_likelihood"] >= told["before"]["negative_log_likelihood"]:
        return None
    right = after.argmax(axis=1) == places
    scores = np.exp(after.max(axis=1))
    return {
        "temperature": fitted_temperature(logits, places),
        "answers": len(places),
        **told,
        "reliability": {
            name: reliability(np.exp(rows.max(axis=1)), right).tolist()
            for name, rows in (("before", before), ("after", after))
        },
        "risk": _risks(scores, right),
    }


def _told(log_probs, targets):
    right = log_probs.argmax(axis=1) == targets
    scores = np.exp(log_probs.max(axis=1))
    return {
        "expected_calibration_error": expected_calibration_error(scores, right),
        "negative_log_likelihood": float(-np.mean(log_probs[np.arange(len(targets)), targets])),
        "area_under_risk_coverage": area_under_risk_coverage(scores, right),
    }


def _risks(scores, right):
    """Return the share of wrong answers among the surest 5 %, 10 % ... 100 %."""
    wrong = np.cumsum(~right[np.argsort(-scores, kind="stable")])
    counts = [max(1, round(len(wrong) * share / 20)) for share in range(1, 21)]
    return [float(wrong[count - 1] / count) for count in counts]


def _joined(rows):
    """Return (n, K) logits of n rows, -inf where a row is shorter than K."""
    logits = np.full((len(rows), max(map(len, rows))), -np.inf)
    for joined, row in zip(logits, rows, strict=True):
        joined[: len(row)] = row
    return logits


def logits_of(scores: Sequence[float]) -> np.ndarray:
    """Return log-probabilities of scores."""
    return np.log(np.maximum(scores, SMALLEST))


def divide_logits(model: keras.Model, name: str, temperature: float) -> None:
    """Divide the logits of a model by a temperature: the weights of a linear head, or layer, of
    that name."""
    heads = getattr(model, "heads", None)
    layer = model.get_layer(name) if heads is None else heads[name].output_layer
    for weight in layer.weights:
        weight.assign(weight / temperature)


def in_words(calibration: Mapping[str, Any]) -> str:
    """Return what a temperature brings, for a line of the terminal."""
    error, loss = (
        tuple(calibration[time][name] for time in ("before", "after"))
        for name in ("expected_calibration_error", "negative_log_likelihood")
    )
    return (
        f"scores divided by a temperature of {calibration['temperature']:.2f}: calibration error "
        f"{error[0]:.2%} before, {error[1]:.2%} after; loss {loss[0]:.4f} before, {loss[1]:.4f} "
        f"after, cross-fitted on {calibration['answers']:,} answers"
    )


def draw_calibration(calibration: dict[str, Any], path: Path | str) -> None:
    """Draw the reliability diagram, before and after, and the curve of risk and coverage, into a
    PNG."""
    from seqkeras.analysis.figure_style import write_png

    write_png(lambda: _figure(calibration), path)


def _figure(calibration):
    from seqkeras.analysis.figure_style import QUIET, STYLES, frame, new_figure

    figure = new_figure(8.4, 3.8)
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8)
    for (name, rows), style in zip(calibration["reliability"].items(), STYLES):
        counts, scores, shares = np.array(rows).T
        there = counts > 0
        left.plot(scores[there], shares[there], label=name, markersize=4, **style)
    frame(left, "reliability", "score", "share of right answers")
    risks: Sequence[float] = calibration["risk"]
    coverage = np.arange(1, len(risks) + 1) / len(risks)
    right.plot(coverage, risks, label="after", markersize=4, **STYLES[0])
    frame(right, "risk and coverage", "share of answers given, the surest first", "wrong answers")
    right.get_legend().remove()
    return figure
