"""The speed of a pipeline: latency and throughput, text in to text out; of a stream, each frame."""

import itertools
import os
import platform
import time

import numpy as np
import onnxruntime

from .times import FIXED

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


def measure_frames(pipeline, values, seconds, repeats=None):
    """Time the frames of streams, one frame at a time.

    Args:
        pipeline: the result of `serving.load`, of a bundle with a stream.
        values: inputs, at least one; the frames of each are a stream.
        seconds, repeats: see `measure`.

    Returns:
        A dict: frames, median_ms and p95_ms of a frame; and real_time_factor, the median over the
        step between two rows, where rows have times a fixed step apart.
    """
    times = []
    frames = (
        (stream, frame)
        for value in itertools.cycle(values)
        for stream in (pipeline.open(),)
        for frame in value
    )
    for stream, frame in itertools.islice(frames, WARM_UP):
        stream.push([frame])
    for stream, frame in frames:
        begin = time.perf_counter()
        stream.push([frame])
        times.append(time.perf_counter() - begin)
        if len(times) >= repeats if repeats else sum(times) >= seconds:
            break
    median, p95 = np.percentile(times, (50, 95)).tolist()
    measured = {
        "frames": len(times),
        "median_ms": round(median * 1000, 3),
        "p95_ms": round(p95 * 1000, 3),
    }
    step = getattr(getattr(pipeline, "rows", None), "time", None)
    if step is not None and step.unit in FIXED:
        measured["real_time_factor"] = float(f"{median / (step.step * FIXED[step.unit] / 1e6):.2g}")
    return measured


def machine():
    """Return in words what the figures were measured on."""
    return (
        f"onnxruntime {onnxruntime.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
