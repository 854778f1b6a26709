"""A cell as somebody else writes it: Keras's protocol, and nothing of ours."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("tests")
class MinimalGatedCell(keras.layers.Layer):
    """f = sigmoid(W_f [x; h]),  h = (1 - f) * h + f * tanh(W_h [x; f * h]).

    Reference: Zhou et al. 2016, section 3, https://arxiv.org/abs/1603.09420, without its biases
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.state_size = units

    def build(self, input_shape):
        shape = (input_shape[-1] + self.units, self.units)
        self.forget = self.add_weight(name="forget", shape=shape)
        self.candidate = self.add_weight(name="candidate", shape=shape)

    def call(self, inputs, states):
        h = states[0]
        f = ops.sigmoid(ops.matmul(ops.concatenate([inputs, h], axis=-1), self.forget))
        read = ops.concatenate([inputs, f * h], axis=-1)
        h = (1 - f) * h + f * ops.tanh(ops.matmul(read, self.candidate))
        return h, h

    def get_config(self):
        return {**super().get_config(), "units": self.units}
