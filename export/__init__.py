"""Export: a trained run becomes a bundle of ONNX graphs and SavedModels.

`save_run` writes the run of any model, however it was trained; with JAX it needs no TensorFlow.

tf2onnx's own conversion of an operation stays if it is fast in onnxruntime. Otherwise use the first
of these five ways that fits; each file names the operations it lowers:

1. One fused operator computes it, from tensors and weights: a composite of `seqkeras.composites`,
   traced as one node, with its lowering in `seqkeras.export.composites` (a recurrent network: a
   `Layout`).
2. A Keras layer computes the same as a composite: `seqkeras.export.keras_layers` makes it call that
   one.
3. tf2onnx does not know a TensorFlow operator, or converts it to something slow or wrong:
   a handler of that operator, `seqkeras.export.composites.op_handlers`.
4. Keras makes several TensorFlow operators of what ONNX has one for: another function in its
   place while it is traced, `seqkeras.export.keras_layers.as_composites`.
5. Converted nodes have a better form, which sizes and constants reveal:
   `seqkeras.export.rewrites` and `seqkeras.export.recurrent_rewrites`, on the ONNX graph.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from seqkeras import serving  # noqa: F401 (turns onnxruntime's telemetry off)

if TYPE_CHECKING:
    from seqkeras.export.saving import save_run

__all__ = ["save_run"]


def __getattr__(name: str) -> Any:
    """`save_run`, with its module, where it is used first."""
    if name == "save_run":
        return importlib.import_module("seqkeras.export.saving").save_run
    raise AttributeError(f"module 'seqkeras.export' has no attribute {name!r}")


if __name__ == "export":  # python -m export, in a checkout
    sys.modules[__name__] = importlib.import_module("seqkeras.export")
