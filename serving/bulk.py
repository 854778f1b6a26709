"""Answer a column of a table, in batches: for Ray Data's map_batches and Spark's mapInPandas.

    answers = BulkAnswers("bundles/dates", column="text", options={"num_beams": 4})

    ray.data.read_csv("dates.csv").map_batches(answers, batch_format="pandas", batch_size=256)
    spark.read.csv("dates.csv", header=True).mapInPandas(
        answers.of_partition, "text string, answer string, error string"
    )

The bundle must lie where each worker can read it; a worker needs `serving/` and its requirements,
and no TensorFlow. This module needs no package beside them: the tables are pandas' own.
"""

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import load
from .answering import answers_or_refusals
from .lines import from_json
from .parsing import as_json
from .pipelines.pipeline import Pipeline
from .printing import as_content

__all__ = ["BulkAnswers"]


class BulkAnswers:
    """Answers to the inputs in a column of a table.

    A call adds two columns to a table: `answer`, as JSON content in a string, and `error`, the
    reason why an input has no answer. One of the two is None.

    Args:
        path, precision, threads, providers: see `seqkeras.serving.load`.
        column: name of the column of inputs: texts, or JSON content that the pipeline takes.
        options: options of the pipeline, for all inputs.

    Call arguments:
        batch: a DataFrame of pandas.

    Returns:
        The DataFrame with the columns `answer` and `error`.

    Raises:
        BundleError: in the first call, if the bundle is missing or damaged.
        ValueError: in the first call, if an option is refused.

    Example:
        >>> import json, pandas
        >>> from seqkeras.serving.bulk import BulkAnswers
        >>> table = pandas.DataFrame({"text": ["A model may be small.", "word " * 99]})
        >>> answered = BulkAnswers("bundles/reviews")(table)
        >>> sorted(json.loads(answered.answer[0]))
        ['labels', 'score', 'scores']
        >>> answered.error[1][:40]
        'Classify: text has 200 tokens; the limit'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        column: str = "text",
        precision: str | None = None,
        threads: int | None = 1,
        providers: Sequence | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        self.column, self._opening = column, (os.fspath(path), precision, threads, providers)
        self._options = dict(options or {})

    def __reduce__(self):  # an open bundle does not go to another process
        path, *opening = self._opening
        return type(self), (path, self.column, *opening, self._options)

    def __call__(self, batch: Any) -> Any:
        """Return a DataFrame of pandas with the two columns added."""
        values = [from_json(value) for value in batch[self.column].tolist()]
        results = answers_or_refusals(self._pipeline, values, self._options) if values else []
        refused = [isinstance(answer, ValueError) for answer in results]
        answers = [
            None if is_error else as_json(as_content(answer))
            for answer, is_error in zip(results, refused)
        ]
        errors = [str(answer) if is_error else None for answer, is_error in zip(results, refused)]
        return batch.assign(answer=answers, error=errors)

    def of_partition(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the DataFrames of a partition, as Spark's mapInPandas passes them."""
        return map(self, batches)

    @functools.cached_property
    def _pipeline(self) -> Pipeline:
        pipeline = load(*self._opening)
        pipeline([], **self._options)  # refuses wrong options before anything is answered
        return pipeline
