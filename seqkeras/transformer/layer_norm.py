"""Layer normalisation as a layer."""

import keras

from seqkeras import composites


@keras.saving.register_keras_serializable("seqkeras")
class LayerNorm(keras.layers.Layer):
    """Layer normalisation over the last axis, by the composite `layer_norm`.

        y = gamma (x - mean(x)) / sqrt(var(x) + epsilon) + beta

    Notation: gamma and beta are the paper's g and b; the names, and the weights, are Keras's.

    Args:
        epsilon: under the root.

    Call arguments:
        inputs: (..., D).

    Returns:
        (..., D).

    Raises:
        ValueError: if epsilon is negative.

    Reference: Ba et al. 2016, section 3.1, https://arxiv.org/abs/1607.06450

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.transformer import LayerNorm
        >>> ops.convert_to_numpy(LayerNorm(epsilon=0.0)(np.array([[1.0, 3.0]]))).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, epsilon: float = 1e-5, **kwargs):
        super().__init__(**kwargs)
        if epsilon < 0:
            raise ValueError(f"LayerNorm: epsilon must not be negative; received {epsilon}.")
        self.epsilon = epsilon
        self.supports_masking = True

    def build(self, inputs_shape):
        dim = inputs_shape[-1]
        # Both stay float32: the composite computes in it.
        self.gamma = self.add_weight(name="gamma", shape=(dim,), initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=(dim,), initializer="zeros", autocast=False)

    def call(self, inputs):
        return composites.layer_norm(inputs, self.gamma, self.beta, epsilon=self.epsilon)
