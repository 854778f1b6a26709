"""A stream gives what the whole model gives, however its frames are cut into chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.export.exported import ON_ARRAYS
from seqkeras.export.verifying.parity import tensors
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.pipelines.forecast import WINDOW
from seqkeras.serving.session import FRAMES
from seqkeras.serving.streams import ROLE

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.families import ExportPlan
    from seqkeras.export.verifying.parity import Comparison

TOLERANCE = 1e-5  # the largest difference between chunks, relative to the largest number
MOST = 16  # recordings that are compared
ENDS = 3  # lengths at which a summary of the frames so far is compared, beside the whole


def compare_streams(
    comparison: Comparison,
    plan: ExportPlan,
    exported: Exported,
    rows: Sequence[Any],
    function: Callable[..., Any],
) -> None:
    """Compare the stream of a bundle with its Keras model, and its chunks with each other.

    An answer to each frame is compared with the model's for that frame; a summary of the frames so
    far with the model's for a recording that ends there. Rows are inputs without the batch's axis.
    """
    if plan.streaming is None:
        return
    manifest = exported.manifest
    stream = PIPELINES[manifest.pipeline](exported.folder, manifest, Runtime()).streaming.graph
    saved_model = exported.signatures(ON_ARRAYS).get(ROLE)
    random = np.random.default_rng(0)
    largest = 0.0
    compared: dict[str, list[tuple]] = {"stream": [], "saved_model_stream": []}
    for row in rows[:MOST]:
        recording = _Recording(stream, manifest.graphs["model"], row)
        numbers = recording.answers([recording.length])
        scale = max(1.0, float(np.abs(numbers).max()))
        for cuts in ([1] * recording.length, _random_cuts(random, recording.length)):
            difference = np.abs(recording.answers(cuts) - numbers).max() / scale
            largest = max(largest, float(difference))
        ends = {recording.length, *random.integers(1, recording.length + 1, ENDS)}
        delay = plan.streaming.delays[stream.output]
        for end in (end for end in ends if end > plan.streaming.warm_ups[stream.output]):
            expected = np.asarray(function(**recording.first(end))[stream.output])[0]
            if delay is None:
                compared["stream"].append((numbers[end - 1 : end], expected[np.newaxis]))
            elif end == recording.length:
                expected = expected[: recording.length - delay]
                compared["stream"].append((numbers[delay:], expected))
        if saved_model is not None:
            answers = saved_model(**tensors(recording.arrays | recording.zeros))[stream.output]
            compared["saved_model_stream"].append((np.asarray(answers)[0], numbers))
    for name, pairs in compared.items():
        if pairs:
            comparison.compare_numbers(name, *map(np.concatenate, zip(*pairs, strict=True)))
    comparison.figures["stream_chunks_difference"] = largest
    if not largest <= TOLERANCE:
        comparison.problems["stream_chunks_difference"] = (
            f"the stream's answers depend on the chunks: they differ by {largest:.2g}, more than "
            f"{TOLERANCE:g}"
        )


class _Recording:
    """A recording, name -> array, as a stream, and as the model reads its first frames."""

    def __init__(self, stream: Any, graph: Any, row: Any):
        self.stream = stream
        name = next(name for name in (FRAMES, WINDOW) if name in row)
        self.length = int(row.get("lengths", len(row[name])))
        self.frames = {name: row[name][: self.length]}
        self.beside = {
            spec.name: row[spec.name]
            for spec in graph.inputs
            if spec.name not in (name, "lengths", "padding_mask")
        }
        self.marks = {spec.name for spec in graph.inputs} - {*self.frames, *self.beside}
        repeated = {name: np.stack([value] * self.length) for name, value in self.beside.items()}
        arrays = self.frames | repeated
        self.arrays = {name: value[np.newaxis] for name, value in arrays.items()}
        self.zeros = {name: value[np.newaxis] for name, value in stream.zeros.items()}

    def answers(self, cuts):
        """Return the stream's answers to all frames, in chunks of so many."""
        state, parts, start = self.zeros, [], 0
        for size in cuts:
            chunk = slice(start, start + size)
            arrays = {name: value[:, chunk] for name, value in self.arrays.items()}
            numbers, state = self.stream.run(arrays, state)
            parts.append(numbers[0])
            start += size
        return np.concatenate(parts)

    def first(self, end):
        """Return the model's inputs of a recording that ends after so many frames."""
        frames = {name: value[np.newaxis, :end] for name, value in self.frames.items()}
        beside = {name: value[np.newaxis] for name, value in self.beside.items()}
        marks = {
            "lengths": np.array([end], "int64"),
            "padding_mask": np.ones((1, end), "bool"),
        }
        return frames | beside | {name: marks[name] for name in self.marks}


def _random_cuts(random, length):
    """Return sizes of chunks."""
    cuts = []
    while (rest := length - sum(cuts)) > 0:
        cuts.append(int(random.integers(1, min(rest, 7) + 1)))
    return cuts
