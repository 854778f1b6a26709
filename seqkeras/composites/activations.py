"""Activations that a runtime has as one operator."""

import keras
from keras import ops

from seqkeras.composites.nodes import composite
from seqkeras.tensors import Tensor


@composite
def gelu(inputs: Tensor, *, approximate: bool = False) -> Tensor:
    """Return the Gaussian error linear unit, computed in float32 at least.

        y = x Phi(x) = x (1 + erf(x / sqrt(2))) / 2
        approximate: y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2

    Keras's own goes through erfc on TensorFlow, which has no ONNX operator and is slower.

    Args:
        inputs: (...).
        approximate: the second form, which GPT has.

    Returns:
        (...), of the dtype of the inputs.

    Reference: Hendrycks and Gimpel 2016, section 2, https://arxiv.org/abs/1606.08415

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.composites import gelu
        >>> print(ops.convert_to_numpy(gelu(ops.array([-1.0, 0.0, 1.0]))).round(4))
        [-0.1587  0.      0.8413]
    """
    x = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))  # x^3 overflows early
    if approximate or keras.backend.backend() == "torch":  # which has a fused kernel
        outputs = ops.gelu(x, approximate=approximate)
    else:
        outputs = x * (0.5 * (1 + ops.erf(x * 0.5**0.5)))
    return ops.cast(outputs, inputs.dtype)
