"""The server's metrics, for Prometheus.

Several processes share files in the folder that PROMETHEUS_MULTIPROC_DIR names, which must be set
before prometheus_client is imported; /metrics of any process then shows the sum.
"""

import functools
import os
from collections.abc import Sequence

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from .http_refusal import as_http

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = CONTENT_TYPE_LATEST
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """The counts of a server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._counter = functools.cache(lambda api, status: self._requests.labels(api, str(status)))
        self._timer = functools.cache(lambda api: self._seconds.labels(api))
        self._requests = Counter(
            "seqkeras_requests", "Requests", ["api", "status"], registry=registry
        )
        self._seconds = Histogram(
            "seqkeras_request_seconds",
            "Time from a request to its answer",
            ["api"],
            buckets=SECONDS,
            registry=registry,
        )
        self.inputs = Counter(
            "seqkeras_inputs",
            "Inputs: answered, refused, failed or, as nobody waited any more, abandoned",
            ["bundle", "outcome"],
            registry=registry,
        )
        self.batch_size = Histogram(
            "seqkeras_batch_size",
            "Inputs that were answered together",
            ["bundle"],
            buckets=SIZES,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "seqkeras_batch_seconds",
            "Time of the pipeline for a batch",
            ["bundle"],
            buckets=SECONDS,
            registry=registry,
        )
        self.loads = Counter(
            "seqkeras_loads",
            "Bundles loaded or, where it failed, kept as they were",
            ["bundle", "outcome"],
            registry=registry,
        )
        self.unknown = Counter(
            "seqkeras_unknown_categories",
            "Rows of answered inputs whose category in a column the model does not know",
            ["bundle", "column"],
            registry=registry,
        )
        self.waiting = Gauge(
            "seqkeras_waiting",
            "Inputs that wait, and streams that run",
            ["bundle", "kind"],
            multiprocess_mode="livesum",
            registry=registry,
        )

    def request(self, api: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._counter(api, status).inc()
        self._timer(api).observe(seconds)

    def text(self) -> bytes:
        """Return everything as Prometheus reads it."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)


class BundleMetrics:
    """The counts of one bundle.

    Args:
        metrics: the server's `Metrics`.
        name: name of the bundle.
    """

    def __init__(self, metrics: Metrics, name: str):
        outcomes = ("answered", "refused", "failed", "abandoned")
        self._inputs = {outcome: metrics.inputs.labels(name, outcome) for outcome in outcomes}
        self._size, self._seconds = (
            metrics.batch_size.labels(name),
            metrics.batch_seconds.labels(name),
        )
        self.loads = {
            outcome: metrics.loads.labels(name, outcome) for outcome in ("answered", "failed")
        }
        self.waiting = metrics.waiting.labels(name, "inputs")
        self.streams = metrics.waiting.labels(name, "streams")
        self._unknown = functools.partial(metrics.unknown.labels, name)

    def refused(self, count: int) -> None:
        """Count inputs that found no room."""
        self._inputs["refused"].inc(count)

    def abandoned(self, count: int) -> None:
        """Count inputs that nobody waited for any more while they were answered."""
        self._inputs["abandoned"].inc(count)

    def answered(self, answers: Sequence, seconds: float, size: int | None = None) -> None:
        """Count a batch: an answer or an error for each input; `size`: how many were answered
        together, None for these."""
        errors = [as_http(answer).status for answer in answers if isinstance(answer, Exception)]
        failed = sum(status >= 500 for status in errors)
        for outcome, count in (
            ("answered", len(answers) - len(errors)),
            ("refused", len(errors) - failed),
            ("failed", failed),
        ):
            if count:
                self._inputs[outcome].inc(count)
        for answer in answers:
            for column, categories in getattr(answer, "unknown", {}).items():
                self._unknown(column).inc(sum(categories.values()))
        self._size.observe(len(answers) if size is None else size)
        self._seconds.observe(seconds)
