"""From the encoder's states to the context c, and from there to the decoder's first states."""

import keras
from keras import ops

from seqkeras.attention.masks import masked_softmax


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


class Bridge(keras.layers.Layer):
    """The decoder's first states from the encoder's, where their sizes differ or need not.

        s(0) = tanh(W_n ... tanh(W_1 c + b_1) ... + b_n)    for each state, with its own W and b

    Args:
        units: size of the decoder's state, U.
        num_layers: n; with 0 the states pass as they are.

    Call arguments:
        states: list of (B, E), what each of the decoder's states begins from.

    Returns:
        List of (B, U).

    Reference: Bahdanau et al. 2015, appendix A.2.2, https://arxiv.org/abs/1409.0473
    """

    def __init__(self, units, num_layers, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.num_layers = num_layers

    def build(self, states_shape):
        self.maps = []  # for each state its layers, (W, b) each
        for place, shape in enumerate(states_shape):
            widths = [shape[-1], *[self.units] * self.num_layers]
            layers = zip(widths[:-1], widths[1:])
            self.maps.append([self._add_layer(place, n, *each) for n, each in enumerate(layers)])

    def _add_layer(self, place, n, width, units):
        kernel = self.add_weight(name=f"kernel_{place}_{n}", shape=(width, units))
        bias = self.add_weight(name=f"bias_{place}_{n}", shape=(units,), initializer="zeros")
        return kernel, bias

    def call(self, states):
        return [self._map(*each) for each in zip(states, self.maps, strict=True)]

    def _map(self, state, layers):
        for kernel, bias in layers:
            state = ops.tanh(ops.matmul(state, kernel) + bias)
        return state
