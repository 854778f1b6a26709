"""Run a seqkeras bundle with NumPy and onnxruntime: no TensorFlow, the same answers.

    import serving

    translate = serving.load("bundles/dates")
    translate("de|Samstag, 3. Mai 2014").text  # "2014-05-03"

Importing this package loads neither NumPy nor onnxruntime; `load` does. onnxruntime's telemetry,
which tells its makers of each process and graph, stays off unless ORT_DISABLE_TELEMETRY is set.
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
__version__ = "0.1.0"


def load(
    path: str | os.PathLike[str],
    precision: str | None = None,
    threads: int | None = None,
    providers: str | Sequence[str | tuple[str, dict[str, Any]]] | None = None,
) -> "Pipeline":
    """Open a bundle and return the pipeline that its manifest names.

    Every file that the pipeline reads is first held against the manifest's sha256.

    Args:
        path: the bundle's folder.
        precision: None for float32, or one of the manifest's precisions, such as "int8".
        threads: how many threads one operation may use; None: as many as there are cores.
        providers: where onnxruntime may run operations, the preferred place first: "CUDA",
            "CoreML", "OpenVINO", "XNNPACK" or any other that it has, by its full name too. The CPU
            takes what they leave. A name with options is a tuple: ("OpenVINO", {"device_type":
            "GPU"}).

    Returns:
        A pipeline, such as `serving.pipelines.Translate`. Several threads may call it at once.

    Raises:
        BundleError: if the bundle is missing, damaged, or made for a newer version.
        ValueError: if the bundle has no such precision, or onnxruntime no such provider, or
            `threads` is not a whole number of at least 1, or `path` no path.
    """
    from .pipelines import (
        open_bundle,
    )  # brings NumPy and onnxruntime, which `import serving` spares

    return open_bundle(path, precision, threads, providers)
