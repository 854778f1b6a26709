"""The context c of a source: a learned function of the encoder's states."""

import keras
from keras import ops

from seqkeras.masks import masked_softmax


class Context(keras.layers.Layer):
    """Base of the learned contexts, one vector for a whole source.

    Call arguments:
        states: (B, S, E), h(1) ... h(N).
        last: (B, E), h(N).
        mask: (B, S) booleans, True for real steps.

    Returns:
        c, (B, E).
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_mask(self, states, last, mask=None):
        return None  # no steps are left


class LearnedMap(Context):
    """The context as a learned map of the encoder's last state.

        c = tanh(V h(N) + b)

    Reference: Cho et al. 2014, appendix A.1.1, https://arxiv.org/abs/1406.1078
    """

    def build(self, states_shape, last_shape):
        width = last_shape[-1]
        self.kernel = self.add_weight(name="kernel", shape=(width, width))
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")

    def call(self, states, last, mask):
        return ops.tanh(ops.matmul(last, self.kernel) + self.bias)


class LearnedCombination(Context):
    """The context as a learned combination of all the encoder's states.

        weights = softmax(v^T tanh(W h + b))        c = sum over s of weights(s) h(s)

    Notation: W, b are the paper's W_w, b_w; v is its u_w. Without a real step c is zero.

    Reference: Yang et al. 2016, section 2.2, https://aclanthology.org/N16-1174
    """

    def build(self, states_shape, last_shape):
        width = states_shape[-1]
        self.kernel = self.add_weight(name="kernel", shape=(width, width))
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")
        self.scale = self.add_weight(name="scale", shape=(width, 1))

    def call(self, states, last, mask):
        hidden = ops.tanh(ops.matmul(states, self.kernel) + self.bias)  # (B, S, E)
        scores = ops.matmul(hidden, self.scale)[..., 0]  # (B, S)
        weights = masked_softmax(scores, mask)
        return ops.matmul(weights[:, None], states)[:, 0]


CONTEXTS = {"last": None, "map": LearnedMap, "combination": LearnedCombination}
