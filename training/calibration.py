"""Scores as probabilities: a temperature, fitted after training on the validation examples.

An answer does not change by it, and the weights of the last layers take it up: whoever runs the
model gets the calibrated scores. What is told of them is cross-fitted: each example is scored with
the temperature of the others.

Reference: Guo et al. 2017, https://arxiv.org/abs/1706.04599
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from seqkeras.metrics import area_under_risk_coverage, expected_calibration_error
from seqkeras.metrics.calibration import BINS, fitted_temperature, log_softmax, reliability
from seqkeras.serving.pipelines.chains import marginals, most_probable
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    import keras

FOLDS = 5
SMALLEST = 1e-300  # of a score whose logarithm is taken
FEWEST = 20  # examples of which a temperature is fitted
TRIED = 2.0 ** (np.arange(-3, 6) / 2)  # temperatures of chains, a parabola between them


class Chances(NamedTuple):
    """What a model holds for possible.

    Attributes:
        logits: (K,) logits, or log-probabilities, of classes.
        target: place of the right class.
        example: number of the example that it belongs to; examples are in one fold each.
        counts: (K,) numbers of classes that have a logit; None: one each.
        answer: place of the answer; None: that of the largest logit.
    """

    logits: np.ndarray
    target: int
    example: int
    counts: np.ndarray | None = None
    answer: int | None = None


class Evidence(Protocol):
    """What a temperature is fitted on, n answers to examples.

    Attributes:
        targets, answers: (n,) places of the right classes, and of those that are answered.
        examples: (n,) numbers of the examples; an example is in one fold with all of its answers.
    """

    targets: np.ndarray
    answers: np.ndarray
    examples: np.ndarray

    def fitted(self, chosen: np.ndarray) -> float:
        """Return the temperature of the answers that (n,) booleans choose."""
        ...

    def log_probs(self, temperatures: np.ndarray) -> np.ndarray:
        """Return (n, K) log-probabilities at (n,) temperatures, equal ones in an example."""
        ...


class Softmaxes:
    """The `Evidence` of `Chances`."""

    def __init__(self, chances: Sequence[Chances]):
        self.targets = np.array([row.target for row in chances], int)
        self.examples = np.array([row.example for row in chances], int)
        self.logits = _joined([row.logits for row in chances], -np.inf)
        ones = (np.ones(len(row.logits)) if row.counts is None else row.counts for row in chances)
        self.counts = _joined([*ones], 1.0)
        given = (row.logits.argmax() if row.answer is None else row.answer for row in chances)
        self.answers = np.array([*given], int)

    def fitted(self, chosen: np.ndarray) -> float:
        return fitted_temperature(self.logits[chosen], self.targets[chosen], self.counts[chosen])

    def log_probs(self, temperatures: np.ndarray) -> np.ndarray:
        return log_softmax(self.logits / temperatures[:, None], counts=self.counts)


class Chains:
    """The `Evidence` of words whose tags depend on the tag before: marginals of a random field.

    The potentials of a sentence are divided by the temperature, so that its most probable tags stay
    as they are. The temperature makes the words' right tags most likely, each by its marginal, with
    the targets of `fitted_temperature`.

    Args:
        sentences: (potentials (T, K + 1, K), (T,) places of the right tags) each; -1 for a tag that
            the model does not know.
    """

    def __init__(self, sentences: Sequence[tuple[np.ndarray, np.ndarray]]):
        self.potentials = [potentials for potentials, _ in sentences]
        self.known = [targets >= 0 for _, targets in sentences]
        counts = [int(known.sum()) for known in self.known]
        self.examples = np.repeat(np.arange(len(sentences)), counts)
        self.targets = self._words([targets for _, targets in sentences])
        self.answers = self._words([*map(most_probable, self.potentials)])

    def _words(self, rows):
        return np.concatenate([row[known] for row, known in zip(rows, self.known)] or [np.empty(0)])

    @functools.cached_property
    def tried(self) -> tuple[np.ndarray, np.ndarray]:
        """(G, n) log-probabilities of the right tags at the temperatures `TRIED`, and the means of
        the other tags'."""
        right, others = [], []
        for temperature in TRIED:
            log_probs = self.log_probs(np.full(len(self.targets), temperature))
            right.append(log_probs[np.arange(len(log_probs)), self.targets])
            others.append((log_probs.sum(axis=1) - right[-1]) / max(log_probs.shape[1] - 1, 1))
        return np.array(right), np.array(others)

    def fitted(self, chosen: np.ndarray) -> float:
        right, others = (rows[:, chosen].mean(axis=1) for rows in self.tried)
        q = (chosen.sum() + 1) / (chosen.sum() + 2)
        losses = -q * right - (1 - q) * others
        best = int(np.clip(losses.argmin(), 1, len(TRIED) - 2))
        a, b, _ = np.polyfit([-1, 0, 1], losses[best - 1 : best + 2], 2)
        step = np.clip(-b / (2 * a), -1, 1) if a > 0 else losses.argmin() - best
        return float(TRIED[best] * (TRIED[1] / TRIED[0]) ** step)

    def log_probs(self, temperatures: np.ndarray) -> np.ndarray:
        of_sentence = np.ones(len(self.potentials))
        of_sentence[self.examples] = temperatures
        rows: list[Any] = [None] * len(self.potentials)
        lengths = np.array([*map(len, self.potentials)], int)
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            potentials = np.stack([self.potentials[index] for index in places])
            of_length = marginals(potentials / of_sentence[places, None, None, None])
            for index, row in zip(places, of_length, strict=True):
                rows[index] = row
        return logits_of(self._words(rows))


def calibrated(evidence: Evidence, seed: int) -> dict[str, Any] | None:
    """Return what a temperature brings, content of scores.json; None where it brings nothing.

    Args:
        evidence: `Evidence` of the validation examples.
        seed: seed of the folds.

    Returns:
        "temperature", of all examples; "before" and "after" it, cross-fitted in `FOLDS` folds, the
        calibration error, the loss and the area under risk and coverage; "reliability" and "risk",
        the rows of their diagrams. None for too few examples, and where the cross-fitted loss is
        not lower than without a temperature.
    """
    examples, n = evidence.examples, len(evidence.targets)
    if len(np.unique(examples)) < FEWEST:
        return None
    fold = np.random.default_rng(seed).permutation(examples.max() + 1)[examples] % FOLDS
    temperatures = np.array([evidence.fitted(fold != number) for number in range(FOLDS)])
    before, after = map(evidence.log_probs, (np.ones(n), temperatures[fold]))
    told = {"before": _told(before, evidence), "after": _told(after, evidence)}
    if told["after"]["negative_log_likelihood"] >= told["before"]["negative_log_likelihood"]:
        return None
    right = evidence.answers == evidence.targets
    return {
        "temperature": evidence.fitted(np.ones(n, bool)),
        "answers": n,
        **told,
        "reliability": {
            name: reliability(_scores(rows, evidence.answers), right).tolist()
            for name, rows in (("before", before), ("after", after))
        },
        "risk": _risks(_scores(after, evidence.answers), right),
    }


def left_in_words(evidence: Evidence) -> str:
    """Return why `calibrated` leaves scores as they are, for a line of the terminal."""
    n = len(np.unique(evidence.examples))
    why = "a temperature does not lower their loss"
    if n < FEWEST:
        why = f"{counted(n, 'examples', 'example')}; {FEWEST} are needed"
    return f"scores stay as they are: {why}"


def _scores(log_probs, places):
    """Return the probabilities of classes at (n,) places."""
    return np.minimum(np.exp(log_probs[np.arange(len(places)), places]), 1.0)


def _told(log_probs, evidence):
    targets, right = evidence.targets, evidence.answers == evidence.targets
    scores = _scores(log_probs, evidence.answers)
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


def _joined(rows, filler):
    """Return (n, K) numbers of n rows, with a filler where a row is shorter than K."""
    joined = np.full((len(rows), max(map(len, rows), default=0)), filler)
    for padded, row in zip(joined, rows, strict=True):
        padded[: len(row)] = row
    return joined


def logits_of(scores: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return log-probabilities of scores."""
    return np.log(np.maximum(scores, SMALLEST))


def divide_logits(layers: Iterable[keras.Layer], temperature: float) -> None:
    """Divide the logits, or potentials, of a model by a temperature: the weights of linear
    layers."""
    for layer in layers:
        for weight in layer.weights:
            weight.assign(weight / temperature)


def in_words(calibration: Mapping[str, Any]) -> str:
    """Return what a temperature brings, for a line of the terminal."""
    error, loss = (
        tuple(calibration[time][name] for time in ("before", "after"))
        for name in ("expected_calibration_error", "negative_log_likelihood")
    )
    decides = "; the loss decides, as it counts how sure a wrong answer is"
    return (
        f"scores divided by a temperature of {calibration['temperature']:.2f}: calibration error "
        f"{error[0]:.2%} before, {error[1]:.2%} after; loss {loss[0]:.4f} before, {loss[1]:.4f} "
        f"after, cross-fitted on {calibration['answers']:,} answers"
        f"{decides if error[1] > error[0] else ''}"
    )


def certainty_of(pairs: Iterable[tuple[float, bool]]) -> dict[str, Any] | None:
    """Return what scores say of their answers, content of scores.json; None for no finite score.

    Args:
        pairs: yields the score of an answer, and whether the answer is right.

    Returns:
        The number of "answers", their calibration error and area under risk and coverage, the rows
        of both diagrams.
    """
    finite = [pair for pair in pairs if np.isfinite(pair[0])]
    if not finite:
        return None
    scores, right = (np.array(column) for column in zip(*finite, strict=True))
    scores = np.clip(scores, 0.0, 1.0)
    return {
        "answers": len(scores),
        "expected_calibration_error": expected_calibration_error(scores, right),
        "area_under_risk_coverage": area_under_risk_coverage(scores, right),
        "reliability": reliability(scores, right).tolist(),
        "risk": _risks(scores, right),
    }


def certainty_in_words(certainty: Mapping[str, Any]) -> str:
    """Return what scores say of their answers, for a line of the terminal."""
    return (
        f"calibration error of {certainty['answers']:,} scores "
        f"{certainty['expected_calibration_error']:.2%} ({BINS} bins), area under risk and "
        f"coverage {certainty['area_under_risk_coverage']:.4f}"
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
