"""The gain and the cost of another precision compared with float32, on real examples.

Both precisions answer the same inputs through `serving`. For a model that answers in a single pass,
the outputs of its graph are compared; for an encoder-decoder, the log-probabilities along the real
targets and the texts of greedy generation; for a language model, the log-probabilities along its
texts.
"""

from __future__ import annotations

import dataclasses
import operator
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.export.feeds import ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS
from seqkeras.export.onnx_files import FLOAT32
from seqkeras.export.pipelines import record_of
from seqkeras.export.tolerances import shortfalls
from seqkeras.export.verifying import teacher_forcing
from seqkeras.serving.decoding.choosing import log_softmax
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.pipelines.model import ROLE
from seqkeras.serving.session import EncoderDecoder, LanguageModel
from seqkeras.tokenizers import pad
from seqkeras.values import BANNED_LOGIT

if TYPE_CHECKING:
    from seqkeras.export.tolerances import Tolerances
    from seqkeras.serving.manifest import Manifest

BATCH = 16
ROUNDS = 5


class PrecisionError(ValueError):
    """A precision's answers differ too much; the message says by how much, and names a way out."""


def measure(
    folder: Path,
    manifest: Manifest,
    inputs: Sequence[Any],
    examples: Sequence[Any],
    precision: str,
    tolerances: Tolerances,
    scores: Any = None,
) -> dict[str, Any]:
    """Compare a precision with float32, and refuse it if its answers are too much worse.

    Args:
        examples: for models that generate, {name: array} for each input: `target_ids` (T,) with the
            end token for an encoder-decoder, `token_ids` (T,) for a language model.

    Returns:
        The figures for the manifest. A speed is relative to float32: the median over alternating
        runs. Figures that begin with "batching" compare batches of 16 with single inputs, both in
        the precision.

    Raises:
        PrecisionError: if it exceeds the tolerances, or a number is not finite.
    """
    record = record_of(manifest.pipeline)
    float32, other = (
        RUNNERS[record.model_kind](folder, manifest, inputs, examples, name)
        for name in (FLOAT32, precision)
    )
    beside_float32, by_batching = _Differences(record.vectors), _Differences(record.vectors)
    for begin in range(0, len(inputs), BATCH):
        places = range(len(inputs))[begin : begin + BATCH]
        alone = [answer for index in places for answer in other.answers([index])]
        for expected, actual in zip(float32.answers(places), other.answers(places), strict=True):
            twin = max(alone, key=lambda answer: _likeness(actual.row, answer.row))
            beside_float32.add(expected.cut(twin), actual.cut(twin))
            by_batching.add(twin.cut(actual), actual.cut(twin))
    figures = {
        "examples": len(inputs),
        "tolerances": dataclasses.asdict(tolerances),
        "speed_batch_1": _speed(float32, other, range(1)),
        f"speed_batch_{BATCH}": _speed(float32, other, range(len(inputs))[:BATCH]),
        **beside_float32.figures(),
        **{f"batching_{name}": value for name, value in by_batching.figures().items()},
    }
    if scores:
        figures |= {
            "scored_examples": scores.examples,
            "float32_scores": scores.by_precision(FLOAT32),
            "scores": scores.by_precision(precision),
        }
    if reasons := shortfalls(figures, tolerances):
        raise PrecisionError(f"{precision}: {'; '.join(reasons)}. Leave it out, or allow more.")
    return figures


@dataclasses.dataclass(frozen=True)
class _Answer:
    """A model's outputs for one row."""

    row: dict  # name -> array, the model's inputs, which may be padded on the right
    log_probs: list
    numbers: list
    choices: list | None = None  # the chosen classes or tokens; None for the most probable ones

    def cut(self, other):
        """Return the answer without the padding that another answer to the same row lacks."""
        pairs = ((self.log_probs, other.log_probs), (self.numbers, other.numbers))
        cut = (
            [array[tuple(map(slice, limit.shape))] for array, limit in zip(*pair, strict=True)]
            for pair in pairs
        )
        return _Answer(self.row, *cut, self.choices)

    def chosen(self):
        if self.choices is not None:
            return self.choices
        return [
            int(best)
            for distributions in self.log_probs
            for best in distributions.argmax(-1).ravel()
        ]


def _likeness(one, other):
    """Return 2 if rows differ in padding with zeros alone, 1 if in other padding, else 0."""
    alike = 2
    for name, array in one.items():
        ours = array[tuple(map(slice, other[name].shape))]
        theirs = other[name][tuple(map(slice, array.shape))]
        if not np.array_equal(ours, theirs):
            return 0
        counts = {np.count_nonzero(part) for part in (array, ours, theirs, other[name])}
        alike = min(alike, 2 if len(counts) == 1 else 1)
    return alike


class _Differences:
    """Sums over pairs of answers, whose numbers other than log-probabilities may be vectors."""

    def __init__(self, vectors: bool):
        self.vectors = vectors
        self.largest, self.total, self.count = 0.0, 0.0, 0  # for log-probabilities
        self.square, self.expected_square, self.cosines = 0.0, 0.0, []  # for other numbers
        self.equal, self.choices = 0, 0

    def add(self, expected, actual):
        for a, b in zip(expected.log_probs, actual.log_probs, strict=True):
            differences = np.abs(a - b, dtype=np.float64)[a > BANNED_LOGIT / 2]
            self.largest = max(self.largest, differences.max(initial=0))
            self.total += differences.sum()
            self.count += differences.size
        for a, b in zip(expected.numbers, actual.numbers, strict=True):
            a, b = (np.asarray(array, np.float64) for array in (a, b))
            self.square += np.square(a - b).sum()
            self.expected_square += np.square(a).sum()
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            self.cosines.append(float(np.vdot(a, b) / lengths) if lengths else 1.0)
        pairs = list(zip(expected.chosen(), actual.chosen(), strict=True))
        self.choices += len(pairs)
        self.equal += sum(operator.eq(*pair) for pair in pairs)

    def figures(self):
        figures = {}
        if self.choices:
            figures |= {
                "agreement": self.equal / self.choices,
                "largest_log_prob_difference": float(self.largest),
                "mean_log_prob_difference": float(self.total / self.count),
            }
        if self.cosines and self.vectors:
            figures["mean_cosine"] = float(np.mean(self.cosines))
        elif self.cosines:
            size = self.expected_square or 1
            figures["relative_difference"] = float(np.sqrt(self.square / size))
        return figures


def _speed(float32, other, places):
    """Return how many times as fast the other one is, by the fastest of alternating runs after a
    warm-up: what else the machine does slows some of them."""
    seconds: dict[Any, list[float]] = {float32: [], other: []}
    for _ in range(ROUNDS + 1):
        for runner, times in seconds.items():
            begin = time.perf_counter()
            runner.run(places)
            times.append(time.perf_counter() - begin)
    return min(seconds[float32][1:]) / min(seconds[other][1:])


class _Runner:
    """A bundle in one precision, which answers inputs by their indices; see `measure`."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        inputs: Sequence[Any],
        examples: Sequence[Any],
        precision: str,
    ):
        self._manifest, self._inputs, self._examples = manifest, inputs, examples
        self._folder, self._precision = folder, precision

    def _open_pipeline(self, observe=None):
        runtime = Runtime(self._precision, observe=observe)
        return PIPELINES[self._manifest.pipeline](self._folder, self._manifest, runtime)

    def _open_graphs(self, kind):
        return kind(self._folder, self._manifest, Runtime(self._precision))

    def _inputs_at(self, places):
        return [self._inputs[index] for index in places]

    def _require_finite(self, arrays):
        if not all(np.isfinite(array).all() for array in arrays):
            raise PrecisionError(
                f"{self._precision}: it gives numbers that are not finite. Leave it out."
            )


class _SinglePass(_Runner):
    """The graph's outputs for each row that the pipeline feeds it."""

    def __init__(self, folder: Path, manifest: Manifest, *arguments: Any):
        super().__init__(folder, manifest, *arguments)
        self._calls, self._pipeline = [], self._open_pipeline(self._observe)
        outputs = {spec.name: spec for spec in manifest.graphs[ROLE].outputs}
        record = record_of(manifest.pipeline)
        self._logits = record.logits_among(manifest.settings, [*outputs])
        self._of_two = [name for name in self._logits if outputs[name].shape[-1] == 1]

    def _observe(self, role, inputs, outputs):
        self._require_finite(outputs.values())
        self._calls.append((inputs, outputs))

    def run(self, places):
        self._calls.clear()
        self._pipeline(self._inputs_at(places))

    def answers(self, places):
        self.run(places)
        return [
            self._answer(*({name: array[row] for name, array in arrays.items()} for arrays in call))
            for call in self._calls
            for row in range(len(next(iter(call[0].values()))))
        ]

    def _answer(self, row, outputs):
        log_probs = [
            log_softmax(self._of_all(name, outputs[name]))
            for name in outputs
            if name in self._logits
        ]
        return _Answer(row, log_probs, [outputs[n] for n in outputs if n not in self._logits])

    def _of_all(self, name, logits):
        """Return the logits; a binary model's single logit is the second, and the first is 0."""
        if name not in self._of_two:
            return logits
        return np.concatenate([np.zeros_like(logits), logits], axis=-1)


class _AlongTokens(_Runner):
    """Distributions after each token of a real text or target."""

    def answers(self, places):
        log_probs = self.run(places)
        self._require_finite(log_probs)
        chosen = self._chosen(places)
        return [
            _Answer({"place": np.array(index)}, [array], [], choices)
            for index, array, choices in zip(places, log_probs, chosen, strict=True)
        ]

    def _chosen(self, places):
        return [None] * len(places)

    def _padded(self, places, name):
        return pad([self._examples[index][name] for index in places])


class _LanguageModel(_AlongTokens):
    """Distributions after each token of a text."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._graphs = self._open_graphs(LanguageModel)

    def run(self, places):
        token_ids, lengths = self._padded(places, "token_ids")
        state = self._graphs.begin(len(token_ids))
        log_probs = teacher_forcing.along(self._graphs, state, token_ids)
        return [row[:length] for row, length in zip(log_probs, lengths, strict=True)]


class _EncoderDecoder(_AlongTokens):
    """Distributions after each token of the real target, and the pipeline's text."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._graphs, self._pipeline = self._open_graphs(EncoderDecoder), self._open_pipeline()

    def run(self, places):
        rows = [self._pipeline.encode(value) for value in self._inputs_at(places)]
        name, _, arrays = teacher_forcing.sources_of(rows)
        targets, lengths = self._padded(places, "target_ids")
        begin = np.full((len(targets), 1), self._manifest.decoding.start_id)
        before = np.concatenate([begin, targets[:, :-1]], axis=1)
        state = self._graphs.encode(arrays[name], arrays["lengths"])
        log_probs = teacher_forcing.along(self._graphs, state, before)
        return [row[:length] for row, length in zip(log_probs, lengths, strict=True)]

    def _chosen(self, places):
        return [[answer.text] for answer in self._pipeline(self._inputs_at(places), num_beams=1)]


RUNNERS = {
    SINGLE_PASS: _SinglePass,
    LANGUAGE_MODEL: _LanguageModel,
    ENCODER_DECODER: _EncoderDecoder,
}
