"""Where the context enters a recurrent decoder: a class for each place, with one step in each."""

import keras
from keras import ops

from seqkeras.attention import (
    AdditiveScore,
    Attention,
    ConcatScore,
    DotScore,
    GeneralScore,
    HardAttention,
    LocalAttention,
    MultiHeadAttention,
    ScaledDotScore,
)
from seqkeras.composites import keras_rnn
from seqkeras.decoding import StateEntry
from seqkeras.models.rnn_decoder import RNNDecoder
from seqkeras.values import build_once

# What the cell is given at each step: the previous output y, the context c, or both.
WIRINGS = {"initial_state": "y", "context": "c", "context_and_output": "yc"}
SCORES = {
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "dot": DotScore,
    "general": GeneralScore,
    "hard": AdditiveScore,  # as in the paper
    "local_monotonic": GeneralScore,  # as in the best local models of the paper
    "local_predictive": GeneralScore,
    "scaled_dot": ScaledDotScore,
}
WINDOW = 10  # the paper's D for local attention


def make_attention(name, units, dtype):
    """The attention of a name in `SCORES`; `units` is for scores that have a hidden layer."""
    score_class = SCORES[name]
    sizes = [units] if score_class in (AdditiveScore, ConcatScore) else []
    score = score_class(*sizes, dtype=dtype)
    if name.startswith("local_"):
        return LocalAttention(score, WINDOW, kind=name.removeprefix("local_"), dtype=dtype)
    if name == "hard":
        return HardAttention(score, dtype=dtype)
    return Attention(score, dtype=dtype)


class ClassicalDecoder(RNNDecoder):
    """One context c for the whole target.

        x(t) = y(t-1), or c, or [y(t-1); c]        s(t) = RNN(x(t), s(t-1))
        features(t) = [s(t); x(t)]

    Args:
        wiring: "initial_state", "context" or "context_and_output", in this order.

    Reference: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215 ("initial_state"); Cho et al.
    2014, section 2.2, https://arxiv.org/abs/1406.1078 ("context_and_output")
    """

    parallel = True

    def __init__(self, wiring, **kwargs):
        super().__init__(**kwargs)
        self.parts = WIRINGS[wiring]

    def build_step(self, value_dim):
        entry = StateEntry("context", "source", (value_dim,))
        self.own_entries = [entry] if "c" in self.parts else []
        input_dim = _input_dim(self.parts, self.output_dim, value_dim)
        return input_dim, self.units + input_dim

    def first_state(self, context, values, mask):
        return {"context": context} if self.own_entries else {}

    def advance(self, y, state, run):
        c = state["context"][:, None] + ops.zeros_like(y[..., :1]) if "c" in self.parts else None
        x = _wire(self.parts, y, c)
        s, state = run(x, state)
        return ops.concatenate([s, x], axis=-1), None, state


class AttentionDecoder(RNNDecoder):
    """Base of the decoders that look at the source at every step.

    A local attention needs the number of the step: the state counts it, as `position`. A hard one
    takes the best position, but samples in `sample`, with noise that the state brings. The weights
    of a step are the mean of the heads'; the context is what the heads give together.

    Args:
        attention: a layer with a score, as `seqkeras.attention.Attention`, or `MultiHeadAttention`.
    """

    def __init__(self, attention, **kwargs):
        super().__init__(**kwargs)
        self.attention = attention
        self.counts = isinstance(attention, LocalAttention)
        self.has_heads = isinstance(attention, MultiHeadAttention)

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
        """What `_prepare` makes."""
        if self.has_heads:
            shape = (self.attention.num_heads, "source_length", self.attention.head_dim)
            return [StateEntry(name, "source", shape) for name in ("keys", "values")]
        key_dim = self.attention.score.prepare(ops.zeros((1, 1, value_dim))).shape[-1]
        dims = {"keys": key_dim, "values": value_dim}
        return [StateEntry(name, "source", ("source_length", dim)) for name, dim in dims.items()]

    def _prepare(self, values):
        """Keys and values as every step reads them."""
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
        """Context (B, K, D), weights (B, K, S) or (B, N, K, S), and the state, one step on."""
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
        """A training step of hard attention: as `call`, with positions drawn from its softmax.

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
        given = {
            "query": query,
            "key": state["values"],
            "attention_mask": state["source_mask"][:, None],
        }
        log_probabilities = self.attention.log_probability(weights=weights, **given)
        entropies = self.attention.entropy(**given)
        return self._logits(features, training=True), log_probabilities, entropies

    def _unroll_samples(self, embedded, noise, state):
        """Features (B, T, F), weights (B, T, S) and queries (B, T, U), one step after the other."""

        def step(now, carried):
            y = ops.cast(now[:, : self.output_dim], embedded.dtype)
            noisy = {**state, "noise": now[:, None, self.output_dim :]}
            features, weights, after = self._advance_one(y, carried, noisy)
            return (features, weights[:, 0], after["query"][:, 0]), self._carried(after)

        inputs = ops.concatenate([ops.cast(embedded, noise.dtype), noise], axis=-1)
        _, outputs, _ = keras_rnn(step, inputs, self._carried(state))
        return outputs


class BahdanauDecoder(AttentionDecoder):
    """Attention before the cell: the state of the step before asks, and the cell reads the context.

        c(t) = attention(query = s(t-1))
        x(t) = c(t), or [y(t-1); c(t)]        s(t) = RNN(x(t), s(t-1))
        features(t) = [s(t); x(t)]

    Args:
        wiring: "context" or "context_and_output", in this order.

    Reference: Bahdanau et al. 2015, section 3.1, https://arxiv.org/abs/1409.0473
    """

    parallel = False

    def __init__(self, wiring, **kwargs):
        super().__init__(**kwargs)
        self.parts = WIRINGS[wiring]

    def build_step(self, value_dim):
        super().build_step(value_dim)
        input_dim = _input_dim(self.parts, self.output_dim, self.context_dim)
        return input_dim, self.units + input_dim

    def advance(self, y, state, run):
        c, weights, state = self.attend(state[self.query_name], state)
        x = _wire(self.parts, y, c)  # (B, K, E + D)
        s, state = run(x, state)
        return ops.concatenate([s, x], axis=-1), weights, state


class LuongDecoder(AttentionDecoder):
    """Attention after the cell: the new state asks, and the context goes to the logits.

        x(t) = y(t-1), or [y(t-1); h~(t-1)]        s(t) = RNN(x(t), s(t-1))
        c(t) = attention(query = s(t))
        h~(t) = tanh(W_c [c(t); s(t)]) = features(t)

    Notation: s is the paper's h_t; h~(0) is zero.

    Args:
        input_feeding: whether x(t) holds h~(t-1).

    Reference: Luong et al. 2015, sections 3 and 3.3, https://arxiv.org/abs/1508.04025
    """

    def __init__(self, input_feeding, **kwargs):
        super().__init__(**kwargs)
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


def _wire(parts, y, c):
    """[y; c], or that of the two which the parts name."""
    return ops.concatenate([y, c], axis=-1) if parts == "yc" else {"y": y, "c": c}[parts]


def _input_dim(parts, output_dim, context_dim):
    return sum({"y": output_dim, "c": context_dim}[part] for part in parts)
