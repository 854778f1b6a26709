"""The initial state of a recurrent decoder: from the encoder's states, or its own."""

import keras
from keras import ops

from seqkeras.shapes import require_counts, require_positive


class FirstStates(keras.layers.Layer):
    """Base of what gives the decoder's first states.

    Args:
        units: U, size of the decoder's state.
        cell_states: whether it gives the states after the first of each cell too, as the cell
            state of an LSTM; else they start as zeros.

    Call arguments:
        states: list of (B, E), for each of the decoder's states the encoder's at the same height.

    Returns:
        List of (B, U).

    Raises:
        ValueError: if units is not positive.
    """

    def __init__(self, units, cell_states=False, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, units=units)
        self.units = units
        self.cell_states = cell_states

    def require_width(self, width):
        """Raise a ValueError if states of that width can not become the decoder's."""


@keras.saving.register_keras_serializable("seqkeras")
class Bridge(FirstStates):
    """The decoder's first states from the encoder's, where their sizes differ or need not.

        s(0) = tanh(W_n ... tanh(W_1 c + b_1) ... + b_n)    for each state, with its own W and b

    Args:
        units: U, size of the decoder's state.
        num_layers: n; with 0 the states pass as they are.
        cell_states: whether the states after the first of each cell come from the encoder too, as
            the cell state of an LSTM; else they start as zeros.

    Call arguments:
        states: list of (B, E), what each of the decoder's states begins from.

    Returns:
        List of (B, U).

    Raises:
        ValueError: if units is not positive, num_layers negative, or without layers the states are
            not as wide as units.

    Reference: Bahdanau et al. 2015, appendix A.2.2, https://arxiv.org/abs/1409.0473; without
    layers: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bridge
        >>> [state] = Bridge(units=4)([np.ones((2, 6))])  # from the encoder's 6 to the decoder's 4
        >>> tuple(state.shape)
        (2, 4)
    """

    def __init__(self, units: int, num_layers: int = 1, cell_states: bool = False, **kwargs):
        super().__init__(units, cell_states, **kwargs)
        require_counts(self, num_layers=num_layers)
        self.num_layers = num_layers

    def require_width(self, width):
        if self.num_layers == 0 and width != self.units:
            raise ValueError(
                "Bridge: without layers the encoder's states must be as wide as the decoder's; "
                f"received {width} and {self.units}."
            )

    def build(self, states_shape):
        self.maps = []  # for each state its layers, (W, b) each
        for index, shape in enumerate(states_shape):
            self.require_width(shape[-1])
            widths = [shape[-1], *[self.units] * self.num_layers]
            layers = zip(widths[:-1], widths[1:])
            self.maps.append([self._add_layer(index, n, *sizes) for n, sizes in enumerate(layers)])

    def _add_layer(self, index, n, width, units):
        kernel = self.add_weight(name=f"kernel_{index}_{n}", shape=(width, units))
        bias = self.add_weight(name=f"bias_{index}_{n}", shape=(units,), initializer="zeros")
        return kernel, bias

    def call(self, states):
        return [self._map(*pair) for pair in zip(states, self.maps, strict=True)]

    def _map(self, state, layers):
        for kernel, bias in layers:
            state = ops.tanh(ops.matmul(state, kernel) + bias)
        return state


@keras.saving.register_keras_serializable("seqkeras")
class OwnState(FirstStates):
    """First states of the decoder's own, the same for every source.

        s(0) = 0, or a learned vector for each state

    Args:
        units: U, size of the decoder's state.
        learned: whether they are weights; else zeros.
        cell_states: whether the states after the first of each cell are learned too, as the cell
            state of an LSTM; else they are zeros.

    Call arguments:
        states: list of (B, E), of which only the number and B matter.

    Returns:
        List of (B, U).

    Raises:
        ValueError: if units is not positive.

    Reference: Goodfellow et al. 2016, section 10.2.4, https://www.deeplearningbook.org

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import OwnState
        >>> ops.convert_to_numpy(OwnState(units=2)([np.ones((1, 6))])[0]).tolist()
        [[0.0, 0.0]]
    """

    def __init__(self, units: int, learned: bool = False, cell_states: bool = False, **kwargs):
        super().__init__(units, cell_states, **kwargs)
        self.learned = learned

    def build(self, states_shape):
        self.vectors = [
            self.add_weight(name=f"state_{index}", shape=(1, self.units), initializer="zeros")
            for index in range(len(states_shape) * self.learned)
        ]

    def call(self, states):
        zeros = [ops.zeros_like(state[:, :1]) for state in states]  # (B, 1)
        if not self.learned:
            return [ops.repeat(zero, self.units, axis=1) for zero in zeros]
        return [zero + vector for zero, vector in zip(zeros, self.vectors, strict=True)]
