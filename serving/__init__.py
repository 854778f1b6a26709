"""Run a seqkeras bundle with NumPy and onnxruntime: no TensorFlow, the same answers.

    import serving

    translate = serving.load("bundles/dates")
    translate("de|Samstag, 3. Mai 2014").text  # "2014-05-03"

Importing this package loads neither NumPy nor onnxruntime; `load` does.
"""

from .manifest import BundleError
from .results import Translation

__all__ = ["BundleError", "Translation", "load"]
__version__ = "0.1.0"


def load(path, threads=None):
    """Open a bundle and return the pipeline that its manifest names.

    Every file that the pipeline reads is first held against the manifest's sha256.

    Args:
        path: the bundle's folder.
        threads: how many threads one operation may use; None: as many as there are cores.

    Returns:
        A pipeline, such as `serving.pipelines.Translate`. Several threads may call it at once.

    Raises:
        BundleError: if the bundle is missing, damaged, or made for a newer version.
        ValueError: if `threads` is not a whole number of at least 1.
    """
    from .pipelines import (
        open_bundle,
    )  # brings NumPy and onnxruntime, which `import serving` spares

    return open_bundle(path, threads)
