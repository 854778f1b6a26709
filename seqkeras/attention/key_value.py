"""Attention of a language model to its own last states, whose parts play different roles.

Elsewhere "key-value attention" means only that keys and values differ: that is `Attention` with a
key and a value of its own.
"""

import keras
from keras import ops

from seqkeras.masks import masked_softmax
from seqkeras.shapes import require_mask, require_positive, require_sequence
from seqkeras.values import without_padding


class PastAttention(keras.layers.Layer):
    """Base of the two layers; a subclass sets into how many parts a state is split.

    The parts are the key k(t) first, then the value v(t); the last one, p(t), serves to predict.

    Args:
        window: L, how many of the last states are attended to.

    Call arguments:
        sequence: (B, T, D), the states h(t) of a recurrent network; D is a multiple of the parts.
        mask: (B, T) booleans, True for real steps, or None.

    Returns:
        output (B, T, U), zero at masked steps, and weights (B, T, L), from step t - L to step
        t - 1. No weight lies on masked steps or before the first; with none left, r is zero.

    Raises:
        ValueError: if the window is no positive integer, the parts do not divide D, or the mask has
            another shape than the sequence.
    """

    num_parts: int

    def __init__(self, window: int, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, window=window)
        self.window = window
        self.supports_masking = True

    def build(self, sequence_shape):
        require_sequence(self, sequence=sequence_shape)
        self.units, rest = divmod(sequence_shape[-1], self.num_parts)
        if rest:
            raise ValueError(
                f"{type(self).__name__}: the dim of sequence must be a multiple of "
                f"{self.num_parts}; received {sequence_shape[-1]}."
            )
        shape = (self.units, self.units)
        self.key_kernel = self.add_weight(name="key_kernel", shape=shape)  # W_Y
        self.query_kernel = self.add_weight(name="query_kernel", shape=shape)  # W_h
        self.scale = self.add_weight(name="scale", shape=(self.units, 1))  # w
        self.context_kernel = self.add_weight(name="context_kernel", shape=shape)  # W_r
        self.predict_kernel = self.add_weight(name="predict_kernel", shape=shape)  # W_x

    def call(self, sequence, mask=None):
        output, weights, _ = self.read(sequence, self.initial_state(ops.shape(sequence)[0]), mask)
        return output, weights

    def read(self, sequence, state, mask=None):
        """Read a piece of a sequence, which follows the piece of the state.

        Args:
            sequence: (B, T, D).
            state: as `initial_state` or the piece before returned it.
            mask: (B, T) booleans, True for real steps, or None.

        Returns:
            output and weights as the call returns them, and the state after each row's last real
            step of a right-padded mask.
        """
        require_sequence(self, sequence=sequence.shape)
        require_mask(self, mask, sequence.shape)
        real = ops.ones(ops.shape(sequence)[:2], "bool") if mask is None else mask
        (sequence,) = without_padding(mask, ops.cast(sequence, self.compute_dtype))
        key, value, predict = self._parts(sequence)
        present = {
            "keys": ops.matmul(key, self._cast(self.key_kernel)),
            "values": value,
            "real": real,
        }
        whole = {
            name: ops.concatenate([ops.cast(state[name], tensor.dtype), tensor], axis=1)
            for name, tensor in present.items()
        }  # (B, L + T, ...)
        past = [self._before(whole[name]) for name in ("keys", "values", "real")]
        output, weights = self._attend(key, predict, *past)
        lengths = None if mask is None else ops.sum(ops.cast(mask, "int32"), axis=1)
        state = {name: self._behind(tensor, lengths) for name, tensor in whole.items()}
        real = ops.cast(real, output.dtype)[..., None]
        return output * real, weights * real, state

    def initial_state(self, batch_size):
        """Return the state before the first step: no key, no value."""
        empty = ops.zeros((batch_size, self.window, self.units), self.compute_dtype)
        return {
            "keys": empty,  # W_Y k
            "values": empty,
            "real": ops.zeros((batch_size, self.window), "bool"),
        }

    def step(self, inputs, state):
        """Advance one step, with the result of the call at that step.

        Args:
            inputs: (B, D), h(t).
            state: as `initial_state` or an earlier step returned it; its entries are (B, L, ...).

        Returns:
            (output (B, U), weights (B, L)), and the new state.
        """
        output, weights, state = self.read(inputs[:, None], state)
        return (output[:, 0], weights[:, 0]), state

    def _cast(self, weight):
        """Cast a weight to the dtype of computation, as Keras does in `call` but not in `read` and
        `step`."""
        return ops.cast(weight, self.compute_dtype)

    def _parts(self, states):
        parts = ops.split(states, self.num_parts, axis=-1)
        return parts[0], parts[1], parts[-1]

    def _before(self, whole):
        """Map (B, L + T, ...) to (B, T, L, ...): beside each of T steps the L before it."""
        return ops.stack([whole[:, i : i - self.window] for i in range(self.window)], axis=2)

    def _behind(self, whole, lengths):
        """Map (B, L + T, ...) to (B, L, ...): the last L of a number of steps (B,), None for
        T."""
        if lengths is None:
            return whole[:, -self.window :]
        places = lengths[:, None] + ops.arange(self.window, dtype=lengths.dtype)  # (B, L)
        places = ops.reshape(places, (*ops.shape(places), *[1] * (len(whole.shape) - 2)))
        return ops.take_along_axis(whole, places, axis=1)

    def _attend(self, key, predict, past_keys, past_values, past_real):
        """Map (B, T, U) present parts and (B, T, L, ·) past ones to outputs and weights."""
        query = ops.matmul(key, self._cast(self.query_kernel))[:, :, None]
        scores = ops.matmul(ops.tanh(past_keys + query), self._cast(self.scale))[
            ..., 0
        ]  # (B, T, L)
        weights = masked_softmax(scores, past_real)
        context = ops.matmul(weights[:, :, None], past_values)[:, :, 0]  # (B, T, U)
        output = ops.tanh(
            ops.matmul(context, self._cast(self.context_kernel))
            + ops.matmul(predict, self._cast(self.predict_kernel))
        )
        return output, weights

    def compute_mask(self, sequence, mask=None):
        return mask, None


@keras.saving.register_keras_serializable("seqkeras")
class KeyValueAttention(PastAttention):
    """Attention to the last states of a language model, one half key and one half value.

        [k(t); v(t)] = h(t)
        M(t) = tanh(W_Y [k(t-L) ... k(t-1)] + W_h k(t))
        weights(t) = softmax(w^T M(t))
        r(t) = sum over s of weights(t, s) v(s)
        output(t) = tanh(W_r r(t) + W_x v(t))

    Notation: the letters are the paper's; output is its h*, before the softmax over words.

    Args:
        window: L, how many of the last states are attended to.

    Call arguments:
        sequence: (B, T, 2U), the states h(t) of a recurrent network.
        mask: (B, T) booleans, True for real steps, or None.

    Returns:
        output (B, T, U), zero at masked steps, and weights (B, T, L), from step t - L to step
        t - 1. No weight lies on masked steps or before the first; with none left, r is zero.

    Raises:
        ValueError: if the window is no positive integer, the dim of the sequence is odd, or the
            mask has another shape than the sequence.

    Reference: Daniluk et al. 2017, section 2.2, https://arxiv.org/abs/1702.04521

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import KeyValueAttention
        >>> output, weights = KeyValueAttention(window=2)(np.ones((1, 3, 8)))
        >>> tuple(output.shape)
        (1, 3, 4)
        >>> ops.convert_to_numpy(weights)[0].tolist()  # of t - 2 and t - 1
        [[0.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    """

    num_parts = 2


@keras.saving.register_keras_serializable("seqkeras")
class KeyValuePredictAttention(PastAttention):
    """Attention to the last states of a language model, with a third part to predict from.

        [k(t); v(t); p(t)] = h(t)
        M(t) = tanh(W_Y [k(t-L) ... k(t-1)] + W_h k(t))
        weights(t) = softmax(w^T M(t))
        r(t) = sum over s of weights(t, s) v(s)
        output(t) = tanh(W_r r(t) + W_x p(t))

    Notation: the letters are the paper's; output is its h*, before the softmax over words.

    Args:
        window: L, how many of the last states are attended to.

    Call arguments:
        sequence: (B, T, 3U), the states h(t) of a recurrent network.
        mask: (B, T) booleans, True for real steps, or None.

    Returns:
        output (B, T, U), zero at masked steps, and weights (B, T, L), from step t - L to step
        t - 1. No weight lies on masked steps or before the first; with none left, r is zero.

    Raises:
        ValueError: if the window is no positive integer, the dim of the sequence is no multiple of
            3, or the mask has another shape than the sequence.

    Reference: Daniluk et al. 2017, section 2.3, https://arxiv.org/abs/1702.04521

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import KeyValuePredictAttention
        >>> layer = KeyValuePredictAttention(window=2)
        >>> output, weights = layer(np.ones((1, 5, 12)))  # all steps at once, or one by one
        >>> (output, weights), state = layer.step(np.ones((1, 12)), layer.initial_state(1))
        >>> tuple(output.shape), tuple(weights.shape)
        ((1, 4), (1, 2))
    """

    num_parts = 3
