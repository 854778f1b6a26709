"""Run a seqkeras bundle with NumPy and onnxruntime, without TensorFlow, with the same answers.

    translate = serving.load("bundles/dates")
    translate("de|Samstag, 3. Mai 2014").text  # "2014-05-03"

The package is `seqkeras.serving` where seqkeras is installed, `seqkeras_serving` where the package
seqkeras-serving is, and `serving` where the folder is copied.

Importing this package loads neither NumPy nor onnxruntime; `load` does. onnxruntime's telemetry,
which reports each process and graph to Microsoft, is off, unless ORT_DISABLE_TELEMETRY is 0.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .manifest import BundleError
from .results import Translation

if TYPE_CHECKING:
    from .pipelines.pipeline import Pipeline

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read once, when onnxruntime is imported

__all__ = ["BundleError", "Translation", "load"]
__version__ = "0.2.0"


def load(
    path: str | os.PathLike[str],
    precision: str | None = None,
    threads: int | None = None,
    providers: str | Sequence[str | tuple[str, dict[str, Any]]] | None = None,
    cache_bytes: int | None = None,
) -> "Pipeline":
    """Open a bundle and return the pipeline that its manifest names.

    Every file that the pipeline reads is first verified against the manifest's sha256.

    Args:
        path: the bundle's folder.
        precision: None for float32, or one of the manifest's precisions, such as "int8".
        threads: number of threads that one operation may use; None: one for each core.
        providers: onnxruntime's execution providers, the preferred one first: "CUDA", "CoreML",
            "OpenVINO", "XNNPACK" or any other that is installed, also by its full name. The CPU
            runs what they do not support. A name with options is a tuple: ("OpenVINO",
            {"device_type": "GPU"}).
        cache_bytes: the most bytes of caches while the answers of a call are generated; inputs of a
            list wait until there is room. Calls of several threads count each by itself. None: as
            many as `token_budget` allows.

    Returns:
        A pipeline, such as `serving.pipelines.Translate`. Several threads may call it at once.

    Raises:
        BundleError: if the bundle is missing, damaged, or made for a newer version.
        ValueError: if the bundle lacks the precision, onnxruntime lacks a provider, `threads` or
            `cache_bytes` is not a whole number of at least 1, or `path` is not a path.

    Example:
        >>> from seqkeras import serving
        >>> classify = serving.load("bundles/reviews", threads=1)
        >>> answer = classify("A model may be small.")
        >>> sorted(answer.scores), round(sum(answer.scores.values()), 3)
        (['high', 'low', 'middle'], 1.0)
    """
    from .pipelines import (
        open_bundle,
    )  # brings NumPy and onnxruntime, which `import serving` spares

    return open_bundle(path, precision, threads, providers, cache_bytes)
