"""Recurrent decoders by the place where the context enters, a class with one step for each."""

import keras
from keras import ops

from seqkeras.attention import Attention, HardAttention, LocalAttention, MultiHeadAttention
from seqkeras.composites.recurrent import keras_rnn
from seqkeras.decoding import StateEntry
from seqkeras.models.rnn_decoder import RNNDecoder
from seqkeras.values import build_once, config_of_part

LAYERS = (Attention, MultiHeadAttention, HardAttention, LocalAttention)


@keras.saving.register_keras_serializable("seqkeras")
class ClassicalDecoder(RNNDecoder):
    """One context c for the whole target.

        x(t) = y(t-1), or c, or [y(t-1); c], or 1        s(t) = RNN(x(t), s(t-1))
        features(t) = [s(t); x(t)]

    Args:
        vocab_size: V.
        embedding_dim: size of the embedded y(t-1); None where no y(t-1) enters x(t).
        units: U, size of each state.
        reads_context: whether c enters every x(t).
        options: cell, num_layers, dropout, readout, tie_weights, never_generated, teacher_forcing
            and teacher_forcing_per; see `seqkeras.models.rnn_decoder.RNNDecoder`.

    Call arguments:
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.
        values: (B, S, D), the encoder's states.
        initial_state: list of (B, U), the states of the lowest layer first; None for a state that
            starts at zero, but not for the first one.
        context: (B, D), c.
        source_mask: (B, S) booleans, True for real steps of the source, or None.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is not positive, the cell does not fit, never_generated is not in the
            vocabulary, there is nothing to force or to tie, or the target has no step.

    Reference: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215, without c in x(t); Cho et al.
    2014, section 2.2, https://arxiv.org/abs/1406.1078, with both

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import ClassicalDecoder
        >>> decoder = ClassicalDecoder(19, embedding_dim=4, units=3, reads_context=True)
        >>> target_ids, context = np.array([[2, 7]]), np.ones((1, 6))
        >>> tuple(decoder(target_ids, np.ones((1, 5, 6)), [np.ones((1, 3))], context=context).shape)
        (1, 2, 19)
    """

    parallel = True

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int | None,
        units: int,
        reads_context: bool = False,
        **options,
    ):
        super().__init__(vocab_size, embedding_dim, units, **options)
        self.reads_context = reads_context
        self.reads_output = embedding_dim is not None or not reads_context

    def build_step(self, value_dim):
        entry = StateEntry("context", "source", (value_dim,))
        self.own_entries = [entry] if self.reads_context else []
        input_dim = self.reads_output * self.output_dim + self.reads_context * value_dim
        return input_dim, self.units + input_dim

    def first_state(self, context, values, mask):
        if self.reads_context and context is None:
            self._refuse(["context must be given where reads_context is True; received None."])
        return {"context": context} if self.reads_context else {}

    def advance(self, y, state, run):
        c = None
        if self.reads_context:
            c = state["context"][:, None] + ops.zeros_like(y[..., :1])
        x = _join(y if self.reads_output else None, c)
        s, state = run(x, state)
        return ops.concatenate([s, x], axis=-1), None, state

    def get_config(self):
        return {**super().get_config(), "reads_context": self.reads_context}


class AttentionDecoder(RNNDecoder):
    """Base of the decoders that look at the source at every step.

    A local attention needs the number of the step: the state counts it, as `position`. A hard one
    takes the best position, but samples in `sample`, with noise that the state brings. The weights
    of a step are the mean of the heads'; the context is what the heads give together.

    Args:
        vocab_size, embedding_dim, units, options: see `RNNDecoder`.
        attention: `Attention`, `LocalAttention` or `HardAttention`, with a score; or
            `MultiHeadAttention`, without causality and dropout.
        entropy_weight: of hard attention, how much training values positions that stay open.

    Raises:
        ValueError: if the attention is another layer, or does not see the whole source; if hard
            attention is trained on other tokens than those given; if entropy_weight is negative, or
            of another attention than a hard one. See also `RNNDecoder`.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int | None,
        units: int,
        attention: keras.layers.Layer,
        entropy_weight: float = 0.0,
        **options,
    ):
        super().__init__(vocab_size, embedding_dim, units, **options)
        self.attention = attention
        self.entropy_weight = entropy_weight
        self.counts = isinstance(attention, LocalAttention)
        self.has_heads = isinstance(attention, MultiHeadAttention)
        self.is_hard = isinstance(attention, HardAttention)
        self._refuse(self._attention_problems())

    def _attention_problems(self):
        attention, weight = self.attention, self.entropy_weight
        if not isinstance(attention, LAYERS):
            yield (
                "attention must be an Attention, MultiHeadAttention, HardAttention or "
                f"LocalAttention; received {attention!r}."
            )
        if self.has_heads and (attention.causal or attention.dropout):
            yield (
                "multi-head attention sees the whole source, whatever the step: it needs "
                f"causal=False and dropout=0; received {attention!r}."
            )
        if self.is_hard and not self.teacher_forcing.always:
            yield (
                "hard attention is trained on the tokens given: teacher_forcing must be 1; "
                f"received {self.options['teacher_forcing']!r}."
            )
        if weight < 0:
            yield f"entropy_weight must be at least 0; received {weight}."
        if weight and not self.is_hard:
            yield f"entropy_weight needs a HardAttention; received {weight}."

    def build_step(self, value_dim):
        values = (None, None, value_dim)
        build_once(self.attention, (None, None, self.units), values, values)
        self.context_dim = value_dim
        if self.has_heads:
            self.context_dim = self.attention.output_dim or self.units
        self.own_entries = [
            *([StateEntry("position", "beam", (), "int32")] if self.counts else []),
            *self._source_entries(value_dim),
            StateEntry("source_mask", "source", ("source_length",), "bool"),
        ]

    def _source_entries(self, value_dim):
        """Return what `_prepare` makes."""
        if self.has_heads:
            shape = (self.attention.num_heads, "source_length", self.attention.head_dim)
            return [StateEntry(name, "source", shape) for name in ("keys", "values")]
        key_dim = self.attention.score.prepare(ops.zeros((1, 1, value_dim))).shape[-1]
        dims = {"keys": key_dim, "values": value_dim}
        return [StateEntry(name, "source", ("source_length", dim)) for name, dim in dims.items()]

    def _prepare(self, values):
        """Return keys and values as every step reads them."""
        if self.has_heads:
            return self.attention.prepare(values, values)
        return self.attention.score.prepare(values), values

    def first_state(self, context, values, mask):
        position = ops.zeros((ops.shape(mask)[0], 1), "int32")
        keys, values = self._prepare(values)
        return {
            **({"position": position} if self.counts else {}),
            "keys": keys,
            "values": values,
            "source_mask": mask,
        }

    def attend(self, query, state):
        """Return context (B, K, D), weights (B, K, S) or (B, N, K, S), and the state, one step
        on."""
        options = {"positions": state["position"]} if self.counts else {}
        if "noise" in state:
            options["noise"] = state["noise"]
            state = {**state, "query": query}
        source, mask = (state["keys"], state["values"]), state["source_mask"][:, None]
        if self.has_heads:
            context = self.attention.attend(query, *source, attention_mask=mask)
            weights = self.attention.weigh(query, state["keys"], mask)  # (B, N, K, S)
        else:
            context, weights = self.attention.attend(query, *source, attention_mask=mask, **options)
        if self.counts:
            state = {**state, "position": state["position"] + 1}
        return context, weights, state

    def sample(self, target_ids, state):
        """Run a training step of hard attention: `call` with positions drawn from the softmax.

        Args:
            target_ids, state: as in the call.

        Returns:
            logits (B, T, V), the log-probabilities (B, T) of the positions, and the entropies
            (B, T) of what they were drawn from.
        """
        embedded = self._embed(target_ids, training=True)
        # Drawn outside of the loop, where JAX keeps no seed.
        noise = self.attention.draw_noise((*ops.shape(target_ids), ops.shape(state["values"])[1]))
        if self.parallel:
            noisy = {**state, "noise": noise}
            features, weights, after = self.advance(embedded, noisy, self._run_steps)
            query = after["query"]
        else:
            features, weights, query = self._unroll_samples(embedded, noise, state)
        arguments = {
            "query": query,
            "key": state["values"],
            "attention_mask": state["source_mask"][:, None],
        }
        log_probabilities = self.attention.log_probability(weights=weights, **arguments)
        entropies = self.attention.entropy(**arguments)
        return self._logits(features, training=True), log_probabilities, entropies

    def _unroll_samples(self, embedded, noise, state):
        """Return features (B, T, F), weights (B, T, S) and queries (B, T, U), one step after the
        other."""

        def step(now, carried):
            y = ops.reshape(now[:, : self.output_dim], (-1, self.output_dim))  # S may be unknown
            y = ops.cast(y, embedded.dtype)
            noisy = {**state, "noise": now[:, None, self.output_dim :]}
            features, weights, after = self._advance_one(y, carried, noisy)
            return (features, weights[:, 0], after["query"][:, 0]), self._carried(after)

        inputs = ops.concatenate([ops.cast(embedded, noise.dtype), noise], axis=-1)
        _, outputs, _ = keras_rnn(step, inputs, self._carried(state))
        return outputs

    def get_config(self):
        return {
            **super().get_config(),
            "attention": config_of_part(self.attention),
            "entropy_weight": self.entropy_weight,
        }


@keras.saving.register_keras_serializable("seqkeras")
class BahdanauDecoder(AttentionDecoder):
    """Attention before the cell: the state of the step before asks, and the cell reads the context.

        c(t) = attention(query = s(t-1))
        x(t) = [y(t-1); c(t)], or c(t)        s(t) = RNN(x(t), s(t-1))
        features(t) = [s(t); x(t)]

    Args:
        vocab_size: V.
        embedding_dim: size of the embedded y(t-1); None where no y(t-1) enters x(t).
        units: U, size of each state.
        attention: `Attention`, `LocalAttention` or `HardAttention`, with a score; or
            `MultiHeadAttention`, without causality and dropout.
        entropy_weight: how much training values positions of a hard attention that stay open.
        options: cell, num_layers, dropout, readout, tie_weights, never_generated, teacher_forcing
            and teacher_forcing_per; see `seqkeras.models.rnn_decoder.RNNDecoder`.

    Call arguments:
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.
        values: (B, S, D), the encoder's states.
        initial_state: list of (B, U), the states of the lowest layer first; None for a state that
            starts at zero, but not for the first one.
        source_mask: (B, S) booleans, True for real steps of the source, or None.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is not positive, the cell does not fit, never_generated is not in the
            vocabulary, there is nothing to force or to tie, the attention is another layer
            than those above, or the target has no step.

    Reference: Bahdanau et al. 2015, section 3.1, https://arxiv.org/abs/1409.0473

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import AdditiveScore, Attention
        >>> from seqkeras.models import BahdanauDecoder
        >>> decoder = BahdanauDecoder(19, 4, units=3, attention=Attention(AdditiveScore(8)))
        >>> target_ids, values = np.array([[2, 7]]), np.ones((1, 5, 6))
        >>> tuple(decoder(target_ids, values, [np.ones((1, 3))]).shape)
        (1, 2, 19)
    """

    parallel = False

    def build_step(self, value_dim):
        super().build_step(value_dim)
        fed = self.embedding is not None
        input_dim = fed * self.output_dim + self.context_dim
        return input_dim, self.units + input_dim

    def advance(self, y, state, run):
        c, weights, state = self.attend(state[self.query_name], state)
        x = _join(y if self.embedding is not None else None, c)  # (B, K, E + D)
        s, state = run(x, state)
        return ops.concatenate([s, x], axis=-1), weights, state


@keras.saving.register_keras_serializable("seqkeras")
class LuongDecoder(AttentionDecoder):
    """Attention after the cell: the new state asks, and the context goes to the logits.

        x(t) = y(t-1), or [y(t-1); h~(t-1)]        s(t) = RNN(x(t), s(t-1))
        c(t) = attention(query = s(t))
        h~(t) = tanh(W_c [c(t); s(t)]) = features(t)

    Notation: s is the paper's h_t; h~(0) is zero.

    Args:
        vocab_size: V.
        embedding_dim: size of the embedded y(t-1); None where a one stands in its place.
        units: U, size of each state.
        attention: `Attention`, `LocalAttention` or `HardAttention`, with a score; or
            `MultiHeadAttention`, without causality and dropout.
        input_feeding: whether x(t) holds h~(t-1).
        options: cell, num_layers, dropout, tie_weights, never_generated, teacher_forcing and
            teacher_forcing_per, see `seqkeras.models.rnn_decoder.RNNDecoder`; entropy_weight, see
            `BahdanauDecoder`.

    Call arguments:
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.
        values: (B, S, D), the encoder's states.
        initial_state: list of (B, U), the states of the lowest layer first; None for a state that
            starts at zero, but not for the first one.
        source_mask: (B, S) booleans, True for real steps of the source, or None.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is not positive, the cell does not fit, never_generated is not in the
            vocabulary, there is nothing to force or to tie, the attention is another layer
            than those above, or the target has no step.

    Reference: Luong et al. 2015, sections 3 and 3.3, https://arxiv.org/abs/1508.04025

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import Attention, GeneralScore
        >>> from seqkeras.models import LuongDecoder
        >>> decoder = LuongDecoder(19, 4, 3, Attention(GeneralScore()), input_feeding=True)
        >>> target_ids, values = np.array([[2, 7]]), np.ones((1, 5, 6), "float32")
        >>> logits = decoder(target_ids, values, [np.ones((1, 3))])
        >>> state = decoder.start(values, [np.ones((1, 3), "float32")])
        >>> tuple(decoder.attention_weights(target_ids, state).shape)
        (1, 1, 1, 2, 5)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int | None,
        units: int,
        attention: keras.layers.Layer,
        input_feeding: bool = False,
        **options,
    ):
        super().__init__(vocab_size, embedding_dim, units, attention, readout=False, **options)
        self.input_feeding = input_feeding
        self.parallel = not input_feeding
        self.attentional = keras.layers.Dense(
            self.units, activation="tanh", use_bias=False, dtype=self.dtype_policy
        )

    def build_step(self, value_dim):
        super().build_step(value_dim)
        build_once(self.attentional, (None, None, self.context_dim + self.units))
        if self.input_feeding:
            self.own_entries.insert(0, StateEntry("attentional", "beam", (self.units,)))
        return self.output_dim + self.input_feeding * self.units, self.units

    def first_state(self, context, values, mask):
        state = super().first_state(context, values, mask)
        if self.input_feeding:
            zeros = ops.zeros((ops.shape(values)[0], 1, self.units), values.dtype)
            state = {"attentional": zeros, **state}
        return state

    def advance(self, y, state, run):
        x = ops.concatenate([y, state["attentional"]], axis=-1) if self.input_feeding else y
        s, state = run(x, state)
        c, weights, state = self.attend(s, state)
        attentional = self.attentional(ops.concatenate([c, s], axis=-1))
        if self.input_feeding:
            state = {**state, "attentional": attentional}
        return attentional, weights, state

    def get_config(self):
        config = {**super().get_config(), "input_feeding": self.input_feeding}
        del config["readout"]
        return config


def _join(y, c):
    """Return [y; c], or y or c alone where the other is missing."""
    inputs = [tensor for tensor in (y, c) if tensor is not None]
    return inputs[0] if len(inputs) == 1 else ops.concatenate(inputs, axis=-1)
