"""Sentences, or pairs of sentences, and a number for each, from a user's file."""

import math
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from seqkeras.data.series import ways_to_read
from seqkeras.data.stored import joined, taken
from seqkeras.losses import ForecastLoss
from seqkeras.metrics import (
    mean_absolute_error,
    pearson_correlation,
    root_mean_squared_error,
    spearman_correlation,
)
from seqkeras.models import RegressionHead
from seqkeras.runs import RunError, RunFiles
from seqkeras.serving.categories import is_missing
from seqkeras.serving.text import Tokenizer
from seqkeras.serving.written_numbers import number_of
from seqkeras.training.baselines import NUMBER, Measure, Method
from seqkeras.training.console import console
from seqkeras.training.parts.baselines.texts import numbers_of_texts
from seqkeras.training.parts.features import require_features
from seqkeras.training.parts.labelled_texts import LabelledTextModelling, LabelledTexts
from seqkeras.training.parts.scaling import deviation_of, require_float32
from seqkeras.training.parts.splitting import folds_apart, split
from seqkeras.training.task import Scoring

EQUAL = 1e-12  # share of a sum of squares under which numbers are equal but for rounding


class Example(NamedTuple):
    """A text, or a tuple of two, and its number."""

    text: str | tuple[str, str]
    target: float


class RegressionReading(LabelledTexts):
    """Sentences or pairs, and a number for each.

    The model learns (number - mean) / deviation of the training examples, and answers numbers.
    """

    target_option = "number_column"

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        require_features(options, None)
        self.read_pretrained()
        rows = self._rows(options.file)
        train = rows.mapped(operator.itemgetter(0))
        if options.folds is not None:
            train, validation = folds_apart(train, [group for _, group in rows], options)
        elif options.validation is None:
            train, validation = split(train, options)
        else:
            validation = self._rows(options.validation).mapped(operator.itemgetter(0))
        numbers = np.fromiter((example.target for example in train), "float64")
        if numbers.min() == numbers.max():
            raise RunError(
                f"{options.file}: {options.number_column!r} must hold two numbers at least in the "
                f"rows of training; all {len(numbers):,} have {numbers[0]:g}."
            )
        self.mean, self.deviation = float(np.mean(numbers)), deviation_of(numbers)
        require_float32(
            f"{options.file}: the numbers of {options.number_column!r}", self.mean, self.deviation
        )
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation examples, "
            f"numbers from {numbers.min():g} to {numbers.max():g}"
        )
        return train, validation

    def _rows(self, path):
        """Return each example of a file, and its group for --folds."""
        rows = self.rows(path)
        name = self.options.number_column
        decimal = self.options.decimals.signs().get(name)
        for line, _, written, _ in rows:
            number = number_of(written, decimal)
            if number is None or not math.isfinite(number):
                texts, where = zip(*((text, f"line {at}") for at, _, text, _ in rows))
                of_column = name, texts, where, decimal
                raise RunError(
                    f"{path}, line {line}: {name!r} must be a number; found {written!r:.40}"
                    f"{'' if is_missing(written) else ways_to_read(*of_column)}."
                )
        return rows.mapped(lambda row: (Example(row[1], number_of(row[2], decimal)), row[3]))

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        return joined(self._rows(path).mapped(operator.itemgetter(0)) for path in paths)

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        return {
            "pipeline": "Classify",
            "limits": self.limits(),
            "settings": self.settings(),
        }


class RegressionModelling(LabelledTextModelling):
    """Texts to a model that gives a number."""

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        targets = np.fromiter((example.target for example in examples), "float32")[:, np.newaxis]
        return self.text_inputs(examples, targets, run)

    def model(self, run: RunFiles) -> keras.Model:
        if self.reading.pretrained:
            options = self.options
            return self.reading.pretrained.with_heads(
                self.heads(run), options.frozen, options.pooling
            )
        inputs, summary = self.encoded(run)
        number = keras.layers.Dense(1)(summary)
        scaling = keras.layers.Rescaling(self.reading.deviation, self.reading.mean, name="number")
        return keras.Model(inputs, scaling(number))

    def heads(self, run: RunFiles) -> dict[str, keras.Layer]:
        """Return a dictionary: name -> head, of a pre-trained encoder."""
        return {
            "number": RegressionHead(
                1, self.options.dropout, self.reading.mean, self.reading.deviation
            )
        }

    def loss(self) -> Any:
        return ForecastLoss("mse", [self.reading.deviation])


class RegressionScoring(Scoring):
    """Correlations and errors of numbers."""

    score_formats = {
        "Pearson's correlation": ".4f",
        "Spearman's correlation": ".4f",
        "MAE": ".4g",
        "RMSE": ".4g",
    }

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        scores = self._scores(examples, answers)
        return {
            "Pearson's correlation": scores["pearson_correlation"],
            "Spearman's correlation": scores["spearman_correlation"],
        }

    def scores_beside(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        return dict(zip(self.score_formats, self._scores(examples, answers).values(), strict=True))

    def _scores(self, examples, answers):
        predictions = [answer.score for answer in answers]
        targets = [example.target for example in examples]
        return {
            "pearson_correlation": pearson_correlation(predictions, targets),
            "spearman_correlation": spearman_correlation(predictions, targets),
            "mean_absolute_error": float(mean_absolute_error(predictions, targets)),
            "root_mean_squared_error": float(root_mean_squared_error(predictions, targets)),
        }

    def methods(self, train: Sequence[Any], run: RunFiles) -> list[Method]:
        has_number = np.fromiter((not math.isnan(example.target) for example in train), bool)
        return numbers_of_texts(taken(train, np.flatnonzero(has_number)), self.options.seed)

    def compared_by(self) -> Measure:
        return Measure("Pearson's correlation", _correlation, NUMBER)

    def sums(self, examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray:
        return _moments(examples, answers)

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        return super().sample(example, answer) | {"answer": f"{answer.score:.4g}"}

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        return {"examples": len(examples)} | self._scores(examples, answers)

    def summary(self, scores: Mapping[str, Any]) -> str:
        return (
            f"Pearson's correlation {scores['pearson_correlation']:.4f}, Spearman's "
            f"{scores['spearman_correlation']:.4f}, the mean absolute error is "
            f"{scores['mean_absolute_error']:.4g}"
        )


def _moments(examples, answers):
    """Return (examples, 6): 1, x, y, x^2, y^2 and x y of answers x and targets y, in the units of
    the targets' spread about their mean."""
    y = np.array([example.target for example in examples])
    mean, spread = y.mean(), y.std() or 1.0
    x = (np.array([answer.score for answer in answers]) - mean) / spread
    y = (y - mean) / spread
    return np.stack([np.ones(len(y)), x, y, x**2, y**2, x * y], axis=1)


def _correlation(sums):
    """Return the correlation of (..., 6) sums of `_moments`; 0 where all x, or all y, are equal.

    r = (n sum xy - sum x sum y) / sqrt((n sum xx - (sum x)^2) (n sum yy - (sum y)^2))
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    of_x, of_y = n * xx - x**2, n * yy - y**2
    is_spread = (of_x > EQUAL * n * xx) & (of_y > EQUAL * n * yy)
    return np.where(is_spread, (n * xy - x * y) / np.sqrt(np.where(is_spread, of_x * of_y, 1)), 0)
