"""Layer normalisation."""

from keras import ops

from seqkeras.composites.nodes import composite
from seqkeras.tensors import Tensor


@composite
def layer_norm(inputs: Tensor, gamma: Tensor, beta: Tensor, *, epsilon: float) -> Tensor:
    """Normalize over the last axis, computed in float32 at least.

        y = gamma (x - mean(x)) / sqrt(var(x) + epsilon) + beta

    Args:
        inputs: (..., D).
        gamma, beta: (D,), the paper's gain g and bias b.
        epsilon: under the root.

    Returns:
        (..., D), of the dtype of the inputs.

    Reference: Ba et al. 2016, section 3.1, https://arxiv.org/abs/1607.06450

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import layer_norm
        >>> gamma, beta = ops.ones((2,)), ops.array([10.0, 20.0])
        >>> outputs = layer_norm(ops.array([[1.0, 3.0]]), gamma, beta, epsilon=0.0)
        >>> ops.convert_to_numpy(outputs).tolist()
        [[9.0, 21.0]]
    """
    outputs = ops.layer_normalization(inputs, gamma, beta, axis=-1, epsilon=epsilon)
    return ops.cast(outputs, inputs.dtype)
