"""Tolerances, figures and the error of all comparisons with Keras."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from seqkeras.export.exported import without_optimizer
from seqkeras.runs.reference import MOST_EXAMPLES
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.pipelines.attention import HEADS, ROLE
from seqkeras.values import BANNED_LOGIT

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.families import ExportPlan
    from seqkeras.export.proof import Difference
    from seqkeras.export.signatures import Signature
    from seqkeras.runs.reference import Reference
    from seqkeras.serving.manifest import TensorSpec

TOLERANCE = 1e-4  # the largest difference allowed between float32 log-probabilities
EXAMPLES = 256  # compared, at most
BATCH = MOST_EXAMPLES  # rows of one call: the first are all that a run has a reference for
WITH_ATTENTION = 8  # a text of 512 tokens has 38 million weights in BERT-base


class ParityError(ValueError):
    """The exported model does not answer like the Keras model."""


class Comparison:
    """Collects figures and problems of real inputs, as many as `examples`.

    A sentence, `way_out`, says after a space how to leave out the part that differed.
    """

    def __init__(self, examples: int):
        self.figures = {"examples": examples, "tolerance": TOLERANCE}
        self.problems: dict[str, str] = {}  # figure -> what is wrong with it
        self.way_out = ""

    def compare_log_probs(self, name: str, actual: np.ndarray, expected: np.ndarray) -> None:
        """Compare log-probabilities, or logits, with those of Keras."""
        if self._has_nan(expected):
            return
        within = expected > BANNED_LOGIT / 2
        difference = np.max(np.abs(actual - expected), where=within, initial=0)
        self._keep(f"{name}_log_prob_difference", difference, "log-probabilities")

    def compare_numbers(self, name: str, actual: np.ndarray, expected: np.ndarray) -> None:
        """Compare other numbers with those of Keras, relative to the largest.

        Banned logits are compared by position only.
        """
        if self._has_nan(expected):
            return
        may_be = expected > BANNED_LOGIT / 2
        scale = max(1.0, float(np.max(np.abs(expected), where=may_be, initial=0)))
        difference = np.max(np.abs(actual - expected), where=may_be, initial=0) / scale
        if not np.array_equal(~may_be, actual <= BANNED_LOGIT / 2):
            difference = np.inf
        self._keep(f"{name}_difference", difference, "numbers")

    def compare_call(self, name: str, difference: Difference, reference: Reference) -> None:
        """Keep the `export.proof.Difference` of answers from the `Reference` of a user's call."""
        examples = min(self.figures["examples"], len(reference.examples))
        self.figures |= {"call_examples": examples, f"call_{name}": difference.relative}
        if difference.problem:
            self.problems[f"call_{name}"] = f"{name}: {difference.problem}"

    def compare_texts(
        self,
        name: str,
        answers: Sequence[str],
        expected: Sequence[str],
        inputs: Sequence[Any],
        is_tie: Callable[..., bool],
    ) -> None:
        """Compare strings with those of Keras; `is_tie` tells whether a row may differ."""
        different = [row for row, text in enumerate(expected) if text != answers[row]]
        tied = [row for row in different if is_tie(row, answers[row])]
        self.figures[f"{name}_ties"] = len(tied)
        wrong = [
            f"{name} answers {answers[row]!r} to {inputs[row]!r}, Keras {expected[row]!r}"
            for row in different
            if row not in tied
        ]
        if wrong:
            self.problems[f"{name}_ties"] = "; ".join(wrong[:3])

    def finish(self) -> dict[str, Any]:
        """Return the figures, or raise a ParityError if something differed by too much."""
        if self.problems:
            problems = "; ".join(self.problems.values())
            raise ParityError(
                f"the exported model is not the trained one: {problems} "
                f"(allowed: {TOLERANCE:g} and the same strings). Nothing was written.{self.way_out}"
            )
        return self.figures

    def _has_nan(self, expected):
        has_nan = bool(np.isnan(expected).any())
        if has_nan:
            self.problems["nan"] = "Keras itself gives NaN: look at what the model computes"
        return has_nan

    def _keep(self, figure, difference, what):
        number = np.inf if np.isnan(difference) else float(difference)
        self.figures[figure] = worst = max(number, self.figures.get(figure, 0.0))
        if worst > TOLERANCE:
            name = figure.removesuffix("_difference").removesuffix("_log_prob")
            nan = ": some are NaN" if np.isnan(difference) else ""
            self.problems[figure] = f"{name} {what} differ by {worst:.2g} from Keras{nan}"


def batches(rows: int) -> list[slice]:
    """Return the batches of so many rows, which bound the memory of one call."""
    return [slice(begin, begin + BATCH) for begin in range(0, rows, BATCH)]


def rows_of(arrays: Mapping[str, np.ndarray], batch: slice) -> dict[str, np.ndarray]:
    """Return some rows of arrays by name."""
    return {name: array[batch] for name, array in arrays.items()}


def tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    """Return arrays by name as TensorFlow's tensors."""
    return {name: tf.constant(array) for name, array in arrays.items()}


def of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of TensorFlow's tensors as one of arrays."""
    return lambda **given: function(**tensors(given))


def in_keras(signature: Signature) -> Callable[..., Any]:
    """Return a signature as a function of arrays, run by Keras itself in a graph of its own."""
    names = [spec.name for spec in signature.inputs]

    def function(**given):
        with without_optimizer():
            return signature.traced(*(tf.constant(given[name]) for name in names))

    return function


def eagerly(signature: Signature) -> Callable[..., Any]:
    """Return a signature as a function of arrays, run by Keras operation by operation."""
    return of_arrays(signature.function)


def compare_attention(
    comparison: Comparison,
    plan: ExportPlan,
    exported: Exported,
    inputs: Sequence[TensorSpec],
    **options: Any,
) -> None:
    """Compare the attention of each head of each layer in serving with Keras's."""
    if ROLE not in plan.graphs:
        return
    runs = []
    runtime = Runtime(observe=lambda *run: runs.append(run))
    manifest = exported.manifest
    pipeline = PIPELINES[manifest.pipeline](exported.folder, manifest, runtime)
    pipeline(inputs[:WITH_ATTENTION], attention=HEADS, **options)
    function = in_keras(plan.graphs[ROLE])
    for feed, outputs in (run for role, *run in runs if role == ROLE):
        expected = function(**feed)
        for name, weights in outputs.items():
            comparison.compare_numbers("onnx_attention", weights, np.asarray(expected[name]))
