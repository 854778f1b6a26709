"""Scores of a pipeline's answers on a run's examples, if these have targets.

`seqkeras.export.pipelines` names the score of each pipeline. Answers are those that a user gets:
with beams if the run's decoding has beams.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seqkeras.export.pipelines import record_of
from seqkeras.export.run import Run
from seqkeras.export.verifying.parity import EXAMPLES
from seqkeras.serving.checks import shown
from seqkeras.serving.manifest import Manifest
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.spreading import spread


@dataclasses.dataclass(frozen=True)
class Scores:
    """The scores of a bundle."""

    examples: int  # the number of scored examples
    by_precision: Callable  # name of a precision -> {name: number}; higher is better


def scores_of(run: Run, folder: Path, manifest: Manifest) -> Scores | None:
    """Return the scores of a bundle in all precisions, or None if its run has no targets."""
    kind = record_of(manifest.pipeline).targets(manifest.settings)
    pairs = [
        (content, example["target"])
        for content, example in zip(run.inputs, run.examples)
        if "target" in example
    ]
    if kind is None or not pairs:
        return None
    places = sorted(spread([target for _, target in pairs])[:EXAMPLES])
    pairs = [pairs[index] for index in places]
    inputs, targets = map(list, zip(*pairs))

    @functools.cache
    def by_precision(precision):
        pipeline = PIPELINES[manifest.pipeline](folder, manifest, Runtime(precision))
        answers = pipeline(inputs)
        return {name: float(measure(answers, targets)) for name, measure in kind.scores.items()}

    return Scores(len(pairs), by_precision)


def wrong_target(
    pipeline: str, settings: Mapping[str, Any], example: Mapping[str, Any], row: Any
) -> Iterator[str]:
    """Yield problems of an example's target, if there is one, for the pipeline's encoded input."""
    kind = record_of(pipeline).targets(settings)
    if kind is not None and "target" in example and not kind.is_valid(example["target"], row):
        yield f"target must be {kind.expected}; received {shown(example['target'])}"
