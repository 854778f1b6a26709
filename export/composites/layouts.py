"""The ONNX weight layouts of the networks of `seqkeras.recurrent`.

seqkeras has weights (D, G U), (U, G U) and a bias. A layout makes (D, G' U), (U, G' U) and
(2 G' U,), the biases of inputs and of state, with the gates in the operator's order. One node
holds both directions.

A network without a layout is exported op by op, as a Loop over its steps; SimpleRNN is in `scans`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class Layout:
    """A recurrent network as a fused ONNX operator."""

    operator: str  # "LSTM", "GRU" or "RNN"
    weights: Callable  # (kernel, recurrent kernel, bias) of Keras -> weights of the operator
    # of the node; a list holds what belongs to one direction
    attributes: Mapping = dataclasses.field(default_factory=dict)


def in_order(gates: Sequence[int]) -> Callable[..., np.ndarray]:
    """Return a function that reorders the gates of weights: Keras's index of each gate of ONNX."""

    def ordered(weight):
        parts = np.split(weight, 1 + max(gates), axis=-1)
        return np.concatenate([parts[gate] for gate in gates], axis=-1)

    def weights(kernel, recurrent_kernel, bias):
        return ordered(kernel), ordered(recurrent_kernel), with_recurrent_bias(ordered(bias))

    return weights


def with_recurrent_bias(bias: np.ndarray) -> np.ndarray:
    """Return (2 G U,): the bias of inputs and that of the state, zero where there is one alone."""
    both = bias if bias.ndim == 2 else np.stack([bias, np.zeros_like(bias)])
    return both.reshape(-1)


LAYOUTS = {
    "lstm": Layout("LSTM", in_order([0, 3, 1, 2])),  # i, o, f, c of i, f, c, o
    "gru": Layout("GRU", in_order([0, 1, 2]), attributes={"linear_before_reset": 1}),
}
