"""Export: a trained run becomes a bundle of ONNX graphs and SavedModels.

What tf2onnx makes of an operation by itself stays, if onnxruntime has it as fast as it can be had.
Else, the first of these five that fits; each file says what it does so:

1. One fused operator computes it, from tensors and weights: a composite of `seqkeras.composites`,
   traced as one node, with its lowering in `export.composites` (a recurrent network: a `Layout`).
2. A layer of Keras's computes what a composite does: `export.keras_layers` has it call that one.
3. tf2onnx does not know a TensorFlow operator, or makes of it something slow or wrong:
   a handler of that operator, `export.composites.op_handlers`.
4. Several TensorFlow operators mean one thing that is lost behind their conversion: a rewriter of
   tf2onnx's graph, before it converts (`export.onnx_graphs`, `export.dilations`).
5. Converted nodes have a better form, whoever made them, and sizes and constants tell:
   `export.rewrites` and `export.recurrent_rewrites`, on the ONNX graph.
"""

import serving  # noqa: F401 (turns onnxruntime's telemetry off)
