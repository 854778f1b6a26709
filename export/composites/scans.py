"""Recurrent composites as an ONNX Scan, a loop whose body holds little more than one product.

    simple_rnn           a(t) = x(t) W + b  for all t at once;  h(t) = tanh(h(t-1) U + a(t))
    linear_recurrence    h(t) = a(t) h(t-1) + b(t)

ONNX Runtime's RNN node calls the C library's tanh for one number after another. With 256 units and
128 steps the Scan takes 0.8 of that node's time for one row, and 0.4 for eight (one core, AVX-512).
A turn of the Scan costs 0.4 microseconds more, which shows in single rows of at most 64 units only.

Notation: W and U are the kernel and the recurrent kernel; in shapes U is the units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from seqkeras.export.composites.recurrent import Padding

if TYPE_CHECKING:
    from seqkeras.export.composites.builder import Builder


def _lower_simple_rnn(builder, inputs, outputs, reverse):
    _lower_directions(builder, inputs, outputs, {"": reverse})


def _lower_bidirectional_simple_rnn(builder, inputs, outputs):
    _lower_directions(builder, inputs, outputs, {"forward_": False, "backward_": True})


def _lower_directions(builder, inputs, outputs, sides):
    """Lower simple recurrent networks over one sequence.

    Args:
        sides: the prefix of the names of a network's inputs -> whether it begins at the last step.
    """
    sequence, mask = inputs["sequence"], inputs.get("mask")
    if mask is not None:
        loop = _Padded(builder, mask)
    elif builder.shape(sequence)[1] == 1:
        loop = _OneStep(builder)
    else:
        loop = _Whole(builder)
    x = loop.read(sequence)
    hidden, finals = [], []
    for side, reverse in sides.items():
        initial, kernel, recurrent_kernel, bias = (
            inputs[f"{side}{name}"] for name in ("states_0", "weights_0", "weights_1", "weights_2")
        )
        a = builder.add("Add", [builder.add("MatMul", [x, kernel]), bias])

        def step(builder, before, a, kernel=recurrent_kernel):
            return builder.add("Tanh", [builder.add("Gemm", [before, kernel, a])])

        h, final = loop.run(step, initial, a, reverse)
        hidden.append(h)
        finals.append(final)
    if 0 in outputs:
        h = hidden[0] if len(hidden) == 1 else builder.add("Concat", hidden, axis=-1)
        builder.add("Identity", [loop.write(h)], outputs=[outputs[0]])
    for index, final in enumerate(finals, start=1):
        if index in outputs:
            builder.add("Identity", [final()], outputs=[outputs[index]])


class _OneStep:
    """A sequence of one step, which needs no loop."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.axis = builder.integers(1)

    def read(self, sequence):
        """Return a sequence (B, 1, D) as (B, D)."""
        return self.builder.add("Squeeze", [sequence, self.axis])

    def run(self, step, initial, a, _reverse):
        """Return the states, and a function that gives the final state."""
        h = step(self.builder, initial, a)
        return h, lambda: h

    def write(self, h):
        """Return states (B, U) as (B, 1, U)."""
        return self.builder.add("Unsqueeze", [h, self.axis])


class _Whole:
    """Rows without padding."""

    def __init__(self, builder: Builder):
        self.builder = builder

    def read(self, sequence):
        """Return a sequence (B, T, D) as (T, B, D)."""
        return self.builder.transpose(sequence, [1, 0, 2])

    def run(self, step, initial, a, reverse):
        """Return the (T, B, U) states, and a function that gives the final state."""
        final, h = self.builder.add_scan(initial, [a], step, reverse)
        return h, lambda: final

    def write(self, h):
        """Return states (T, B, U) as (B, T, U)."""
        return self.builder.transpose(h, [1, 0, 2])


class _Padded:
    """Rows with masked steps.

    The real steps of a row come first, so that the loop is the same as without a mask: what it
    computes behind them is never read. A network that begins at the last step is a loop over the
    real steps in reverse order.
    """

    def __init__(self, builder: Builder, mask: str):
        self.builder = builder
        self.padding = Padding(builder, mask)
        self.lengths = builder.add("Cast", [self.padding.lengths], to=TensorProto.INT64)

    def read(self, sequence):
        """Return a sequence (B, T, D) as (T, B, D)."""
        return self.padding.compact(sequence, [1, 0, 2])

    def run(self, step, initial, a, reverse):
        """Return the (T, B, U) states, and a function that gives the final state."""
        _, h = self.builder.add_scan(initial, [self._turned(a) if reverse else a], step)
        if reverse:
            h = self._turned(h)
        return h, lambda: self._final(initial, h if reverse else self._turned(h))

    def write(self, h):
        """Return states (T, B, U) as (B, T, U), zero at masked steps."""
        builder = self.builder
        _, steps = self.padding.steps(builder)
        steps = builder.add("Unsqueeze", [steps, builder.integers(1, 2)])
        ends = builder.add("Unsqueeze", [self.lengths, builder.integers(0, 2)])
        real = builder.add("Less", [steps, ends])  # (T, B, 1)
        h = builder.add("Where", [real, h, builder.constant(np.float32(0))])
        return self.padding.spread(h, [1, 0, 2])

    def _turned(self, x):
        """Return a tensor (T, B, U) with the real steps of each row in reverse order."""
        return self.builder.add("ReverseSequence", [x, self.lengths], time_axis=0, batch_axis=1)

    def _final(self, initial, turned):
        """Return the last real states; a row without steps keeps its initial state."""
        builder, zero = self.builder, self.builder.constant(np.array(0, np.int64))
        last = builder.add("Gather", [turned, zero], axis=0)
        empty = builder.add("Equal", [self.lengths, zero])
        empty = builder.add("Unsqueeze", [empty, builder.integers(1)])
        return builder.add("Where", [empty, initial, last])


def _lower_linear_recurrence(builder, inputs, outputs, reverse):
    """Lower the elementwise linear recurrence to a Scan, a product and a sum a step.

    Measured on two cores with 256 units, it is as fast as the chunks of `seqkeras.composites` at
    batch 1, and 1.9 times faster at batch 8 and 32 with 512 steps.
    """
    a, b, mask = inputs["a"], inputs["b"], inputs.get("mask")
    if mask is not None:  # a masked step keeps the state
        real = builder.add("Unsqueeze", [mask, builder.integers(2)])  # (B, T, 1)
        a = builder.add("Where", [real, a, builder.constant(np.float32(1))])
        b = builder.add("Where", [real, b, builder.constant(np.float32(0))])
    steps = [builder.add("Transpose", [x], perm=[1, 0, 2]) for x in (a, b)]  # (T, B, U)
    final, states = builder.add_scan(inputs["initial_state"], steps, _elementwise, reverse)
    if 0 in outputs:
        h = builder.add("Transpose", [states], perm=[1, 0, 2])
        if mask is not None:
            h = builder.add("Where", [real, h, builder.constant(np.float32(0))])
        builder.add("Identity", [h], outputs=[outputs[0]])
    if 1 in outputs:
        builder.add("Identity", [final], outputs=[outputs[1]])


def _elementwise(builder, before, a, b):
    """h(t) = a(t) h(t-1) + b(t)"""
    return builder.add("Add", [builder.add("Mul", [a, before]), b])


LOWERINGS = {
    "simple_rnn": _lower_simple_rnn,
    "bidirectional_simple_rnn": _lower_bidirectional_simple_rnn,
    "linear_recurrence": _lower_linear_recurrence,
}
