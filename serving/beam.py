"""Answer a whole corpus by Apache Beam: a model handler for its RunInference.

    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference

    with beam.Pipeline() as pipeline:
        texts = pipeline | beam.io.ReadFromText("dates.txt")
        answers = texts | RunInference(BundleHandler("bundles/dates", options={"num_beams": 4}))
        answers | beam.Map(lambda result: result.inference.text) | beam.io.WriteToText("iso.txt")

The bundle must lie where each worker of the runner can read it. Nothing else of `serving` imports
this module; it needs apache-beam.

Reference: https://beam.apache.org/documentation/ml/about-ml/
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from . import load
from .answering import answers_or_refusals
from .pipelines.pipeline import Pipeline

__all__ = ["BundleHandler"]

BATCH_SIZE = 256  # inputs; a pipeline sorts them by length, and splits them by their tokens


class BundleHandler(ModelHandler[Any, PredictionResult, Pipeline]):
    """Answers of a bundle to examples, for `RunInference`.

    The inference of an example is the pipeline's answer. If the pipeline refuses the example, the
    inference is the ValueError that says why: one bad text among millions ends no run. Other errors
    end it.

    Args:
        path, precision, threads, providers: see `seqkeras.serving.load`.
        options: options of the pipeline, for all examples.
        batch_size: the most examples that are answered together.

    Raises:
        BundleError: in a worker, if the bundle is missing or damaged.
        ValueError: in a worker, if an option is refused.

    Example:
        >>> from seqkeras.serving.beam import BundleHandler
        >>> handler = BundleHandler("bundles/reviews", threads=1)  # for RunInference(handler)
        >>> texts = ["A model may be small.", "word " * 99]
        >>> results = handler.run_inference(texts, handler.load_model())
        >>> [type(result.inference).__name__ for result in results]
        ['Classification', 'OverLimit']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        precision: str | None = None,
        threads: int | None = None,
        providers: Sequence | None = None,
        options: Mapping[str, Any] | None = None,
        batch_size: int = BATCH_SIZE,
    ):
        super().__init__(max_batch_size=batch_size)
        self._opening = os.fspath(path), precision, threads, providers
        self._options = dict(options or {})

    def load_model(self) -> Pipeline:
        """Open the bundle, once for each worker."""
        pipeline = load(*self._opening)
        pipeline([], **self._options)  # refuses wrong options before anything is read
        return pipeline

    def run_inference(
        self, batch: Sequence, model: Pipeline, inference_args: dict[str, Any] | None = None
    ) -> Iterable[PredictionResult]:
        """Yield each example with its answer.

        Args:
            batch: the examples, as the pipeline takes them.
            model: the result of `load_model`.
            inference_args: options of the pipeline beside the handler's.
        """
        options = self._options | (inference_args or {})
        for example, answer in zip(batch, answers_or_refusals(model, batch, options), strict=True):
            yield PredictionResult(example, answer, self._opening[0])

    def get_metrics_namespace(self) -> str:
        """Return the name of these counts among the runner's."""
        return "seqkeras"
