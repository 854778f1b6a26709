"""A model beside plain methods: scores by the same metric, and how sure the difference is."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.table import Table

from seqkeras.spreading import evenly_spread
from seqkeras.terminal import one_line
from seqkeras.training.console import console
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.training.task import Scoring

MODEL = "model"
DRAWS = 1000  # of the bootstrap
INTERVAL = (2.5, 97.5)  # percentiles
LEAST_DRAWN = 10  # rows: the interval of fewer is narrower than chance
SHARE, NUMBER, ERROR = "share", "number", "error"  # kinds of a measure: an error is relative


class Method(NamedTuple):
    """A plain method.

    Attributes:
        name: its name in tables.
        answer: validation examples -> their answers, as the pipeline gives them; it learns first.
        learned_on: the sample of the training part that it learns on, in words; "" for all.
    """

    name: str
    answer: Callable[[list[Any]], Sequence[Any]]
    learned_on: str = ""


@dataclasses.dataclass(frozen=True)
class Measure:
    """A score that is a function of sums over rows, by which a model and a method are compared.

    Attributes:
        name: the score's name in `Scoring.scores_beside`.
        value: (..., k) sums -> (...) scores.
        kind: "share", "number" or "error".
    """

    name: str
    value: Callable[[np.ndarray], np.ndarray]
    kind: str = SHARE

    def gain(self, model: Any, method: Any) -> Any:
        """Return by how much the model is ahead; of two errors, which share of the larger one the
        smaller one saves, under 0 where the model's is the larger."""
        if self.kind != ERROR:
            return model - method
        larger = np.maximum(model, method)
        return (method - model) / np.where(larger == 0, 1, larger)

    def in_words(
        self, scores: Mapping[str, float], gain: float, interval: Sequence[float] | None
    ) -> str:
        """Return a line on the model and the best method.

        Args:
            scores: their names -> their scores, the model first.
            gain: from `gain`.
            interval: its low and its high end; None where the rows are too few for one.
        """
        form, factor, unit = {
            SHARE: ("{:.1%}", 100, " points"),
            NUMBER: ("{:.3f}", 1, ""),
            ERROR: ("{:.4g}", 100, " %"),
        }[self.kind]
        shown = ", ".join(f"{name} {form.format(score)}" for name, score in scores.items())
        what = "" if self.kind == SHARE else f"{self.name}: "
        side, sign = ("behind", -1) if gain < 0 else ("ahead", 1)
        digits = 3 if self.kind == NUMBER else 1
        size = f"{abs(factor * gain):.{digits}f}"
        by = f"{side} by {size}{unit}" if float(size) else "equal"
        line = f"{what}{shown.replace('%', ' %')}: {by}"
        if interval is None:
            return f"{line} (too few for an interval)"
        if not any(interval):
            return line
        low, high = sorted(sign * factor * end for end in interval)
        return f"{line} ({low:z.{digits}f} to {high:z.{digits}f})"


def right_labels(examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray:
    """Return (rows, 2): whether the label of each answer is right, and 1."""
    pairs = zip(examples, answers, strict=True)
    return np.array([(answer.labels[0] == example.target, 1.0) for example, answer in pairs])


def ratio(sums: np.ndarray) -> np.ndarray:
    """Return the first of two sums over the second; NaN of none."""
    with np.errstate(invalid="ignore"):
        return sums[..., 0] / sums[..., 1]


def beside(
    scoring: Scoring, methods: Iterable[Method], examples: Sequence[Any], answers: Sequence[Any]
) -> dict[str, Any]:
    """Return what scores.json says of a model beside plain methods; nothing where none answers.

    A method that fails is told in a line and left out.

    Args:
        scoring: the task's, with a `measure`.
        methods: the `Method`s.
        examples, answers: validation examples, and the model's answers.
    """
    by_method, learned_on = {MODEL: answers}, {}
    for method in methods:
        if (method_answers := answered(method.name, lambda m=method: m.answer(examples))) is None:
            continue
        by_method[method.name] = method_answers
        learned_on |= {method.name: method.learned_on} if method.learned_on else {}
    measure = scoring.compared_by()
    scores, sums = {}, {}
    for name, of_method in by_method.items():
        scores[name] = scoring.scores_beside(examples, of_method)
        sums[name] = scoring.sums(examples, of_method)
    formats = {name: scoring.score_formats.get(name, ".2%") for name in scores[MODEL]}
    return compared(measure, scores, sums, formats, scoring.options.seed, learned_on)


def answered(name: str, answer: Callable[[], Any]) -> Any:
    """Return what a method answers; None if it fails, which a line tells."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return answer()
    except Exception as error:  # whatever it is, a training ends well
        reason = one_line(f"{type(error).__name__}: {error}")
        console.print(f"  no baseline {name!r}: {reason:.200}")
        return None


def compared(
    measure: Measure,
    scores: Mapping[str, Mapping[str, float]],
    sums: Mapping[str, np.ndarray],
    formats: Mapping[str, str],
    seed: int,
    learned_on: Mapping[str, str],
) -> dict[str, Any]:
    """Return the scores of a model and of plain methods, the best method, and the model's gain.

    Args:
        measure: the `Measure`.
        scores: name of a method, the model's first -> name -> score.
        sums: name of a method -> (rows, k), of `Scoring.sums`.
        formats: name -> format of each score.
        seed: of the bootstrap.
        learned_on: name of a method -> the sample that it learns on, where it is one.
    """
    values = {name: float(measure.value(rows.sum(axis=0))) for name, rows in sums.items()}
    gains = {name: measure.gain(values[MODEL], values[name]) for name in values if name != MODEL}
    gains = {name: float(gain) for name, gain in gains.items() if np.isfinite(gain)}
    if not gains:
        return {}
    best = min(gains, key=gains.__getitem__)
    many = len(sums[MODEL]) >= LEAST_DRAWN
    ends = interval(measure, sums[MODEL], sums[best], seed) if many else None
    both = {name: values[name] for name in (MODEL, best)}
    return {
        "methods": {name: dict(of_method) for name, of_method in scores.items()},
        "formats": dict(formats),
        "learned_on": dict(learned_on),
        "compared_by": measure.name,
        "best": best,
        "ahead": gains[best],
        "interval": ends,
        "summary": measure.in_words(both, gains[best], ends),
    }


def interval(measure: Measure, model: np.ndarray, method: np.ndarray, seed: int) -> list[float]:
    """Return the ends of the interval in which 95 % of the gains lie when rows are drawn anew, the
    same rows of both.

    Args:
        model, method: (rows, k) sums.

    Reference: Efron and Tibshirani 1993, chapter 13 (percentile interval)
    """
    draw, count = np.random.default_rng(seed), len(model)
    both = np.concatenate([model, method], axis=1)
    drawn = np.stack(
        [np.bincount(draw.integers(0, count, count), minlength=count) @ both for _ in range(DRAWS)]
    )
    of_model, of_method = np.split(drawn, 2, axis=1)
    gains = measure.gain(measure.value(of_model), measure.value(of_method))
    return np.nanpercentile(gains, INTERVAL).tolist()


def table_of(comparison: Mapping[str, Any]) -> Table:
    """Return a row for the model and for each plain method, a column for each score."""
    table = Table(title="beside plain methods")
    table.add_column("")
    formats = comparison["formats"]
    for name in formats:
        table.add_column(name, justify="right")
    for method, scores in comparison["methods"].items():
        sample = comparison["learned_on"].get(method)
        label = method if sample is None else f"{method}, on {sample}"
        table.add_row(label, *(f"{scores[name]:{form}}" for name, form in formats.items()))
    return table


def sampled(rows: Sequence[Any], most: float, noun: str = "rows") -> tuple[list[Any], str]:
    """Return at most so many rows, evenly spread, and in words which these are; "" for all."""
    if len(rows) <= most:
        return [*rows], ""
    places = evenly_spread(max(int(most), 1), len(rows))
    return [rows[index] for index in places], f"{len(places):,} of {counted(len(rows), noun)}"
