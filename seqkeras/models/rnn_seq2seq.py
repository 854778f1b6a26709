"""Recurrent encoder-decoder with attention: the model of Bahdanau, Cho and Bengio.

It leaves out what the embedded task does not need yet: stacked layers, scheduled sampling, other
scores and other ways to wire the context.
"""

import keras
from keras import ops

from seqkeras.attention import AdditiveScore, Attention
from seqkeras.attention.masks import padding_mask
from seqkeras.composites import keras_rnn
from seqkeras.decoding import StateEntry
from seqkeras.recurrent import GRU, LSTM, Bidirectional, GRUCell, LSTMCell

CELLS = {"gru": (GRU, GRUCell), "lstm": (LSTM, LSTMCell)}
STATE_NAMES = {"gru": ["hidden"], "lstm": ["hidden", "cell"]}
NEVER = -1e9  # the logit of a token that may not be generated


@keras.saving.register_keras_serializable("seqkeras")
class RNNSeq2Seq(keras.Model):
    """Bidirectional recurrent encoder, additive attention, recurrent decoder.

        h(1..S)   = bidirectional RNN over the embedded source
        s(0)      = tanh(W_s [last forward h; last backward h])
        c(t)      = attention(query = s(t-1), key = value = h)
        s(t)      = RNN([embedding of y(t-1); c(t)], s(t-1))
        logits(t) = V tanh(W_o [s(t); c(t); embedding of y(t-1)])

    Notation: h, s, c, y are the paper's; its maxout layer before the logits is our tanh.

    Args:
        source_vocab_size, target_vocab_size: numbers of token ids.
        embedding_dim: size of the embeddings of both sides.
        units: size of the encoder's state in each direction, and of the attention's hidden layer.
        decoder_units: size of the decoder's state.
        cell: "gru" or "lstm".
        dropout: of the embeddings and before the logits.
        never_generated: target ids whose logit is always `NEVER`: padding, unknown, begin.

    Call arguments (one dictionary):
        token_ids: (B, S) integers, padded on the right.
        lengths: (B,) integers, the real steps of each source.
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last (teacher forcing).

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is not positive, or the cell is unknown.

    Reference: Bahdanau et al. 2015, appendix A.2, https://arxiv.org/abs/1409.0473
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        embedding_dim,
        units,
        decoder_units,
        cell="gru",
        dropout=0.0,
        never_generated=(0, 1, 2),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sizes = {
            "source_vocab_size": source_vocab_size,
            "target_vocab_size": target_vocab_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "decoder_units": decoder_units,
        }
        if min(self.sizes.values()) < 1:
            raise ValueError(f"RNNSeq2Seq: every size must be at least 1; received {self.sizes}.")
        if cell not in CELLS:
            raise ValueError(f"RNNSeq2Seq: cell must be one of {sorted(CELLS)}; received {cell!r}.")
        self.cell_name = cell
        self.never_generated = list(never_generated)
        layer_class, cell_class = CELLS[cell]
        self.source_embedding = keras.layers.Embedding(source_vocab_size, embedding_dim)
        self.target_embedding = keras.layers.Embedding(target_vocab_size, embedding_dim)
        self.encoder = Bidirectional(layer_class(units, return_sequences=True, return_state=True))
        self.bridge = keras.layers.Dense(decoder_units, activation="tanh")
        self.attention = Attention(AdditiveScore(units))
        self.decoder_cell = cell_class(decoder_units)
        self.readout = keras.layers.Dense(decoder_units, activation="tanh")
        # In float32 under every policy: NEVER is over float16's range.
        self.output_layer = keras.layers.Dense(target_vocab_size, dtype="float32")
        self.dropout = keras.layers.Dropout(dropout)

    @property
    def target_vocab_size(self):
        return self.sizes["target_vocab_size"]

    @property
    def state_entries(self):
        """What the decoder's state holds, in order (see `seqkeras.decoding`)."""
        units, decoder_units = self.sizes["units"], self.sizes["decoder_units"]
        return [
            *[StateEntry(name, "beam", (decoder_units,)) for name in STATE_NAMES[self.cell_name]],
            StateEntry("keys", "source", ("source_length", units)),
            StateEntry("values", "source", ("source_length", 2 * units)),
            StateEntry("source_mask", "source", ("source_length",), "bool"),
        ]

    def build(self, inputs_shape):
        sizes = self.sizes
        encoded = (None, None, 2 * sizes["units"])
        query = (None, None, sizes["decoder_units"])
        decoder_input = sizes["embedding_dim"] + encoded[-1]
        self.source_embedding.build((None, None))
        self.target_embedding.build((None, None))
        self.encoder.build((None, None, sizes["embedding_dim"]))
        self.bridge.build((None, encoded[-1]))
        self.attention.build(query, encoded, encoded)
        self.decoder_cell.build((None, decoder_input))
        self.readout.build((None, decoder_input + sizes["decoder_units"]))
        self.output_layer.build(query)

    def call(self, inputs, training=False):
        state = self.encode(inputs["token_ids"], inputs["lengths"], training=training)
        embedded = self._embed_target(inputs["target_ids"], training)  # (B, T, E)
        recurrent = [state[name] for name in STATE_NAMES[self.cell_name]]  # (B, 1, U) each

        def step(embedded_token, states):
            features, states, _ = self._advance(embedded_token[:, None], states, state)
            return features[:, 0], states

        _, features, _ = keras_rnn(step, embedded, recurrent)
        return self._logits(features, training)

    def encode(self, token_ids, lengths, training=False):
        """The decoder's initial state: a dictionary of the entries in `state_entries`.

        Per-beam entries have shape (B, 1, ...), one beam; per-source entries (B, ...).
        """
        mask = padding_mask(lengths, ops.shape(token_ids)[1])
        embedded = self.dropout(self.source_embedding(token_ids), training=training)
        values, *states = self.encoder(embedded, mask=mask)  # (B, S, 2U)
        last = ops.concatenate([states[0], states[len(states) // 2]], axis=-1)
        hidden = self.bridge(last)[:, None]  # (B, 1, U)
        initial = {"hidden": hidden, "cell": ops.zeros_like(hidden)}
        return {
            **{name: initial[name] for name in STATE_NAMES[self.cell_name]},
            "keys": self.attention.score.prepare(values),
            "values": values,
            "source_mask": mask,
        }

    def step(self, token_ids, state):
        """One target step of every beam, the step contract of `seqkeras.decoding`.

        Args:
            token_ids: (B, K) integers, the last token of each of K beams.
            state: as `encode` returns it; per-beam entries (B, K, ...).

        Returns:
            (logits (B, K, V), attention weights (B, K, S)), and the new state.
        """
        names = STATE_NAMES[self.cell_name]
        embedded = self._embed_target(token_ids, training=False)
        recurrent = [state[name] for name in names]
        features, recurrent, weights = self._advance(embedded, recurrent, state)
        state = {**state, **dict(zip(names, recurrent, strict=True))}
        return (self._logits(features, training=False), weights), state

    def _embed_target(self, token_ids, training):
        return self.dropout(self.target_embedding(token_ids), training=training)

    def _advance(self, embedded, recurrent, state):
        """(B, K, E) tokens and (B, K, U) states to features for the logits, states, weights."""
        context, weights = self.attention.attend(
            recurrent[0],
            state["keys"],
            state["values"],
            attention_mask=state["source_mask"][:, None],
        )
        inputs = ops.concatenate([embedded, context], axis=-1)  # (B, K, E + 2 units)
        beams = ops.shape(embedded)[:2]
        rows = [ops.reshape(each, (-1, each.shape[-1])) for each in (inputs, *recurrent)]
        _, rows = self.decoder_cell(rows[0], rows[1:])  # (B K, U)
        recurrent = [ops.reshape(each, (*beams, each.shape[-1])) for each in rows]
        return ops.concatenate([recurrent[0], inputs], axis=-1), recurrent, weights

    def _logits(self, features, training):
        logits = self.output_layer(self.dropout(self.readout(features), training=training))
        allowed = [id_ not in self.never_generated for id_ in range(self.target_vocab_size)]
        return ops.where(ops.convert_to_tensor(allowed), logits, ops.cast(NEVER, logits.dtype))

    def get_config(self):
        return {
            **super().get_config(),
            **self.sizes,
            "cell": self.cell_name,
            "dropout": self.dropout.rate,
            "never_generated": self.never_generated,
        }
