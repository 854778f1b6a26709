"""Highway layers."""

import keras


@keras.saving.register_keras_serializable("seqkeras")
class Highway(keras.layers.Layer):
    """Highway layer: a gate chooses between a transformed input and the input itself.

        t = sigmoid(W_T x + b_T)        y = t * g(W_H x + b_H) + (1 - t) * x

    Args:
        activation: g, the name of a Keras activation.
        gate_bias: where b_T starts; a negative number carries the input at first.

    Call arguments:
        inputs: (..., D).

    Returns:
        (..., D).

    Reference: Srivastava et al. 2015, section 2, https://arxiv.org/abs/1505.00387

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.embeddings import Highway
        >>> layer = Highway(gate_bias=-100.0)  # the gate is shut: the input passes
        >>> ops.convert_to_numpy(layer(np.array([[1.0, -2.0, 3.0]]))).tolist()
        [[1.0, -2.0, 3.0]]
    """

    def __init__(self, activation: str = "relu", gate_bias: float = -2.0, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation
        self.gate_bias = gate_bias
        self.supports_masking = True

    def build(self, inputs_shape):
        self.transform = keras.layers.Dense(
            inputs_shape[-1], self.activation, dtype=self.dtype_policy, name="transform"
        )
        self.gate = keras.layers.Dense(
            inputs_shape[-1],
            "sigmoid",
            bias_initializer=keras.initializers.Constant(self.gate_bias),
            dtype=self.dtype_policy,
            name="gate",
        )
        self.transform.build(inputs_shape)
        self.gate.build(inputs_shape)

    def call(self, inputs):
        t = self.gate(inputs)
        return t * self.transform(inputs) + (1 - t) * inputs
