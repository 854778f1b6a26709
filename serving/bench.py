"""The speed of a pipeline: latency percentiles and throughput, text in to text out."""

import itertools
import os
import platform
import time

import numpy as np
import onnxruntime

WARM_UP = 3  # calls that are not timed


def measure(pipeline, texts, batch_size, seconds, repeats=None, **options):
    """Time calls of `pipeline` with lists of `batch_size` texts, taken in turn from `texts`.

    Args:
        pipeline: the result of `serving.load`.
        texts: what to answer, at least one.
        batch_size: texts per call.
        seconds: call until the calls took this long, at least once.
        repeats: make this many calls instead.
        options: options of the pipeline.

    Returns:
        A dict: batch_size, calls, p50_ms, p90_ms and p99_ms of a call, texts_per_second.
    """
    stream = itertools.cycle(texts)
    for _ in range(WARM_UP):
        pipeline(list(itertools.islice(stream, batch_size)), **options)
    times = []
    while not times or (len(times) < repeats if repeats else sum(times) < seconds):
        batch = list(itertools.islice(stream, batch_size))
        begin = time.perf_counter()
        pipeline(batch, **options)
        times.append(time.perf_counter() - begin)
    percentiles = np.percentile(times, (50, 90, 99)) * 1000
    return {
        "batch_size": batch_size,
        "calls": len(times),
        **{f"p{p}_ms": round(t, 3) for p, t in zip((50, 90, 99), percentiles.tolist())},
        "texts_per_second": round(batch_size * len(times) / sum(times), 1),
    }


def machine():
    """Return in words what the figures were measured on."""
    return (
        f"onnxruntime {onnxruntime.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
