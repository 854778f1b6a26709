"""PyTorch's own layers and models, compiled by `torch.compile`, as rivals of ours on JAX.

They run on the GPU where there is one. They take weights as Keras keeps them, and their gradients
come in that form too.
"""

import contextlib
import importlib.util

import numpy as np

GATES = {"LSTM": (0, 1, 2, 3), "GRU": (1, 0, 2), "RNN": (0,)}  # where Keras has each of PyTorch's


def is_there():
    """Return whether PyTorch is installed and Keras runs on JAX."""
    import keras

    return keras.backend.backend() == "jax" and importlib.util.find_spec("torch") is not None


@contextlib.contextmanager
def precise():
    """Let PyTorch's products of float32 be such within; afterwards a GPU may take TF32."""
    if not is_there():
        yield
        return
    _let_products_be("highest")
    try:
        yield
    finally:
        _let_products_be("high")


def _let_products_be(precision):
    import torch

    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = precision == "high"


class Recurrent:
    """`torch.nn.LSTM`, `GRU` or `RNN`, on a GPU cuDNN's, in place of a layer of Keras.

    Args:
        name: its name in `torch.nn`.
        units: size of the states, U.
        bidirectional: whether it reads both ways. Its rows are then packed, since backwards it
            begins at the last real step; forwards the padding changes nothing that counts.
    """

    def __init__(self, name, units, bidirectional=False):
        self._name, self._units, self._bidirectional = name, units, bidirectional

    def build(self, shape):
        """Make the weights, for sequences of the shape (B, T, D)."""
        import torch

        make = getattr(torch.nn, self._name)
        self.module = make(
            shape[-1], self._units, batch_first=True, bidirectional=self._bidirectional
        )

    def set_weights(self, weights):
        """Take kernel, recurrent kernel and bias, those of the backward direction after them."""
        import torch

        directions = [weights[:3], weights[3:]] if self._bidirectional else [weights]
        arrays = [array for direction in directions for array in self._to_torch(*direction)]
        with torch.no_grad():
            for parameter, array in zip(self.module.parameters(), arrays, strict=True):
                parameter.copy_(torch.from_numpy(array))

    def outputs(self, sequences, mask):
        """Return (B, T, U) or (B, T, 2U) outputs."""
        from torch.nn.utils import rnn

        if not self._bidirectional:
            return self.module(sequences)[0]
        packed = rnn.pack_padded_sequence(
            sequences, mask.sum(axis=1).cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, _ = rnn.pad_packed_sequence(
            self.module(packed)[0], batch_first=True, total_length=sequences.shape[1]
        )
        return outputs

    def in_order(self, gradients):
        """Return the gradients by PyTorch's parameters as those by Keras's weights."""
        directions = [gradients[begin : begin + 4] for begin in range(0, len(gradients), 4)]
        return [array for direction in directions for array in self._to_keras(*direction)]

    def _to_torch(self, kernel, recurrent_kernel, bias):
        biases = bias if bias.ndim == 2 else np.stack([bias, 0 * bias])
        arrays = (kernel.T, recurrent_kernel.T, *biases)
        return [self._gates(array, GATES[self._name]) for array in arrays]

    def _to_keras(self, kernel, recurrent_kernel, *biases):
        order = np.argsort(GATES[self._name])
        kernel, recurrent_kernel, *biases = (
            self._gates(array, order) for array in (kernel, recurrent_kernel, *biases)
        )
        return [
            kernel.T,
            recurrent_kernel.T,
            np.stack(biases) if self._name == "GRU" else biases[0],
        ]

    def _gates(self, array, order):
        """Return an array (G U, ...) with its gates in this order."""
        gates = np.split(np.asarray(array, np.float32), len(order))
        return np.concatenate([gates[index] for index in order])
