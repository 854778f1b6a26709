"""Recurrent language model: the next token from all tokens before it."""

import functools

import keras
from keras import ops

from seqkeras.attention import KeyValueAttention, KeyValuePredictAttention
from seqkeras.decoding import StateEntry
from seqkeras.embeddings import TokenEmbedding
from seqkeras.masks import padding_mask
from seqkeras.models.recurrent_stack import RecurrentStack, values_dtype
from seqkeras.models.rnn_cells import config_of, require_cell, with_objects
from seqkeras.models.token_model import TokenModel
from seqkeras.shapes import require_positive
from seqkeras.values import build_once

ATTENTIONS = {"key_value": KeyValueAttention, "key_value_predict": KeyValuePredictAttention}


@keras.saving.register_keras_serializable("seqkeras")
class RNNLanguageModel(TokenModel):
    """Embedding, recurrent layers, softmax over the next token.

        h_0(t) = E y(t)        h_l(1..T) = RNN_l(dropout(h_{l-1}(1..T)))
        logits(t) = W dropout(h_L(t)) + b, for y(t + 1)

    With tied weights the logits are E (P dropout(h_L(t))) with the embeddings E themselves; P, a
    projection to their size, is there only if the states have another size.

    With an attention to the last states h*(t) = attention(h_L(t-W..t)) takes the place of h_L(t):
    each state falls into a key and a value, or into a key, a value and a part to predict from.

    Notation: E and W are the U and V of both Mikolov and Press and Wolf; P is the latter's.

    Args:
        vocab_size: V, the number of token ids.
        embedding_dim: size of the embeddings.
        units: U, size of each layer's state.
        num_layers: L.
        cell: "gru", "lstm", "simple_rnn", "qrnn", or a `QRNN` or a cell of whatever size, ours,
            Keras's or your own, as a pattern of each layer's (`seqkeras.models.rnn_cells`).
        dropout: dropout rate of the embeddings, between the layers and before the logits; never of
            the states.
        tie_weights: take the embeddings as the matrix of the logits.
        attention: "key_value" or "key_value_predict", layers of `seqkeras.attention`, whose two or
            three parts divide U; None for none.
        attention_window: how many of the last states it attends to.

    Call arguments (one dictionary):
        token_ids: (B, T) integers, padded on the right.
        lengths: (B,) integers, the real steps of each row; without them every step is real.

    Returns:
        logits: (B, T, V), in float32 at least.

    Raises:
        ValueError: if a size is not positive, the cell or the attention is unknown or does not fit,
            or an input is missing or unknown.

    Train it with the masked cross-entropy named in `seqkeras.losses`. `read` takes the state of the
    piece of text before, so that long text is read in pieces (truncated back-propagation through
    time); `step` is the contract of `seqkeras.decoding`.

    Reference: Mikolov et al. 2010, https://doi.org/10.21437/Interspeech.2010-343; dropout: Zaremba
    et al. 2014, section 3.2, https://arxiv.org/abs/1409.2329; tied weights: Press and Wolf 2017,
    https://arxiv.org/abs/1608.05859, and Inan et al. 2017, https://arxiv.org/abs/1611.01462;
    attention: Daniluk et al. 2017, sections 2.2 and 2.3, https://arxiv.org/abs/1702.04521

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import RNNLanguageModel
        >>> model = RNNLanguageModel(17, embedding_dim=4, units=6, cell="gru", tie_weights=True)
        >>> logits, state = model.read(np.array([[3, 1, 4]]))
        >>> logits, state = model.read(np.array([[1, 5]]), state=state)  # the text goes on
        >>> tuple(logits.shape)
        (1, 2, 17)
    """

    input_names = ["token_ids"], ["lengths"]

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        units: int,
        num_layers: int = 1,
        cell: str | keras.layers.Layer = "lstm",
        dropout: float = 0.0,
        tie_weights: bool = False,
        attention: str | None = None,
        attention_window: int = 5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sizes = {
            "vocab_size": vocab_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
        }
        require_positive(self, **self.sizes)
        require_cell(self, cell)
        self.cell_config = functools.partial(config_of, cell)  # hides it from Keras's tracking
        self.tie_weights = tie_weights
        policy = self.dtype_policy.name
        self.embedding = TokenEmbedding(vocab_size, embedding_dim, dtype=policy)
        self.stack = RecurrentStack(cell, units, num_layers, dropout, dtype=policy)
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.attention_options = {"attention": attention, "attention_window": attention_window}
        self.attention, self.output_dim = self._make_attention(units, attention, attention_window)
        self.projection = self.output_layer = None
        if not tie_weights:
            self.output_layer = keras.layers.Dense(vocab_size, dtype=values_dtype(self))
        elif self.output_dim != embedding_dim:
            self.projection = keras.layers.Dense(embedding_dim, use_bias=False, dtype=policy)

    def _make_attention(self, units, name, window):
        """Return the layer of a name, or None, and the size of what the logits are made of."""
        if name is None:
            return None, units
        if name not in ATTENTIONS:
            raise ValueError(
                f"RNNLanguageModel: attention must be one of {[*ATTENTIONS]} or None; "
                f"received {name!r}."
            )
        attention = ATTENTIONS[name](window, dtype=self.dtype_policy.name)
        if units % attention.num_parts:
            raise ValueError(
                f"RNNLanguageModel: units must be a multiple of {attention.num_parts} with "
                f"attention {name!r}; received {units}."
            )
        return attention, units // attention.num_parts

    @property
    def vocab_size(self):
        return self.sizes["vocab_size"]

    @property
    def state_entries(self):
        """Entries of the state, in order (see `seqkeras.decoding`)."""
        shapes = self.stack.state_shapes(self.sizes["embedding_dim"])
        entries = dict(zip(self.stack.state_names, shapes, strict=True))
        if self.attention is not None:
            window = self.attention.window
            entries |= dict.fromkeys(("keys", "values"), (window, self.output_dim))
            entries["real"] = (window,)
        return [
            StateEntry(name, "beam", shape, "bool" if name == "real" else self.compute_dtype)
            for name, shape in entries.items()
        ]

    @property
    def id_limits(self):
        return {"token_ids": ("vocab_size", self.sizes["vocab_size"])}

    def build(self, inputs_shape):
        build_once(self.embedding, (None, None))
        build_once(self.stack, (None, None, self.sizes["embedding_dim"]))
        if self.attention is not None:
            build_once(self.attention, (None, None, self.sizes["units"]))
        for layer in (self.projection, self.output_layer):
            if layer is not None:
                build_once(layer, (None, None, self.output_dim))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        logits, _ = self.read(inputs["token_ids"], inputs.get("lengths"), training=training)
        return logits

    def initial_state(self, batch_size):
        """Return the state before any token: zeros for each of `state_entries`, one beam."""
        build_once(self, None)  # not in a step: JAX can make no weights inside a loop
        return {
            entry.name: ops.zeros((batch_size, 1, *entry.shape), entry.dtype)
            for entry in self.state_entries
        }

    def read(self, token_ids, lengths=None, state=None, training=False):
        """Return a piece of text, after another.

        Args:
            token_ids: (B, T) integers, padded on the right.
            lengths: (B,) integers, or None if every step is real.
            state: the state after the piece before, entries (B, 1, ...); None at the beginning.
            training: whether dropout drops.

        Returns:
            (B, T, V) logits, and the state after each row's last real token.

        Raises:
            ValueError: if the lengths do not fit the token_ids.
        """
        self.require_inputs({"token_ids": token_ids, "lengths": lengths})
        hidden, state = self._hidden(token_ids, lengths, state, training)
        return self._logits(self.dropout(hidden, training=training)), state

    def _hidden(self, token_ids, lengths=None, state=None, training=False):
        """Return what logits are made of (B, T, ·), and the state after each row's last real
        token."""
        mask = None if lengths is None else padding_mask(lengths, ops.shape(token_ids)[1])
        names = self.stack.state_names
        hidden, states = self.stack(
            self.embedding(token_ids),
            mask=mask,
            initial_state=None if state is None else [state[name][:, 0] for name in names],
            training=training,
        )
        after = dict(zip(names, states, strict=True))
        if self.attention is not None:
            past = self.attention.initial_state(ops.shape(token_ids)[0])
            if state is not None:
                past = {name: state[name][:, 0] for name in past}
            hidden, _, past = self.attention.read(hidden, past, mask)
            after |= past
        return hidden, {name: tensor[:, None] for name, tensor in after.items()}

    def attention_weights(self, inputs):
        if self.attention is None:
            return super().attention_weights(inputs)
        self.require_inputs(inputs)
        token_ids, lengths = inputs["token_ids"], inputs.get("lengths")
        length = ops.shape(token_ids)[1]
        mask = None if lengths is None else padding_mask(lengths, length)
        hidden, _ = self.stack(self.embedding(token_ids), mask=mask)
        _, weights = self.attention(hidden, mask=mask)  # (B, T, L), from step t - L to t - 1
        steps = ops.arange(length)[:, None] + ops.arange(self.attention.window)
        places = ops.one_hot(steps, length + self.attention.window, dtype=weights.dtype)
        return {"past": ops.einsum("btl,tls->bts", weights, places)[:, None, None, :, -length:]}

    def step(self, token_ids, state):
        """Advance every beam by one token, the step contract of `seqkeras.decoding`.

        Args:
            token_ids: (B, K) integers, the last token of each of K beams.
            state: entries (B, K, ...).

        Returns:
            (logits (B, K, V),), and the new state.
        """
        return self.read_beams(token_ids[..., None], state)

    def read_beams(self, token_ids, state):
        """Advance some tokens of every beam, as `step` advances one.

        Args:
            token_ids: (B, K, T) integers.
            state: entries (B, K, ...).

        Returns:
            (logits (B, K, V) after the last one,), and the new state.
        """
        *beams, length = ops.shape(token_ids)
        shapes = {entry.name: entry.shape for entry in self.state_entries}
        rows = {name: ops.reshape(tensor, (-1, 1, *shapes[name])) for name, tensor in state.items()}
        hidden, rows = self._hidden(ops.reshape(token_ids, (-1, length)), state=rows)  # (BK, T, U)
        logits = self._logits(hidden[:, -1])
        state = {
            name: ops.reshape(tensor, (*beams, *shapes[name])) for name, tensor in rows.items()
        }
        return (ops.reshape(logits, (*beams, logits.shape[-1])),), state

    def _logits(self, hidden):
        if not self.tie_weights:
            return self.output_layer(hidden)
        if self.projection is not None:
            hidden = self.projection(hidden)
        return self.embedding.logits(hidden)

    def get_config(self):
        return {
            **super().get_config(),
            **self.sizes,
            "cell": self.cell_config(),
            "dropout": self.dropout.rate,
            "tie_weights": self.tie_weights,
            **self.attention_options,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_objects(config, "cell"))
