"""Recurrent encoder-decoders: the three classical ones, and those with attention.

It leaves out hard attention, whose gradient needs a loss of its own
(`seqkeras.attention.HardAttention`), the maxout layers of the papers, cells other than "gru",
"lstm" and "simple_rnn", and attention before the cell with wiring "initial_state".
"""

import keras
from keras import ops

from seqkeras.attention.masks import padding_mask
from seqkeras.models.contexts import CONTEXTS, Bridge
from seqkeras.models.recurrent_stack import STATE_NAMES
from seqkeras.models.rnn_checks import check_arguments
from seqkeras.models.rnn_encoder import last_states, make_encoder
from seqkeras.models.rnn_wirings import (
    BahdanauDecoder,
    ClassicalDecoder,
    LuongDecoder,
    make_attention,
)
from seqkeras.models.teacher_forcing import TeacherForcing
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class RNNSeq2Seq(keras.Model):
    """Recurrent encoder and decoder; by default Bahdanau's, with additive attention.

        h(1..S)   = recurrent layers over the embedded source
        c         = h(S), or a learned map of it, or a learned combination of h(1..S)
        s(0)      = bridge(c)
        s(t)      = RNN(x(t), s(t-1)),    x(t) made of y(t-1), the embedded previous output, and c
        logits(t) = V tanh(W_o [s(t); x(t)])

    With attention the context of a step is the attention's, c(t), and c is for s(0) alone.
    `seqkeras.models.rnn_wirings` has the formula of each step.

    Notation: h, s, c, y are the papers'; the maxout layer before the logits is our tanh. Where both
    directions are read, h(S) is the last state of each, side by side. Bahdanau's readout reads
    s(t-1), ours s(t); his s(0) comes from the backward state at the first word, ours from h(S).

    Args:
        source_vocab_size, target_vocab_size: numbers of token ids.
        embedding_dim: size of the embeddings of both sides.
        units: size of the encoder's state in each direction, and of the hidden layer of scores.
        decoder_units: size of the decoder's state.
        cell: "gru", "lstm" or "simple_rnn".
        dropout: of the embeddings, between the layers of the encoder, and before the logits.
        never_generated: target ids whose logit is always `NEVER`: padding, unknown, begin.
        encoder_layers, decoder_layers: how many. A decoder's layer starts from the encoder's at the
            same distance from the top, or from the lowest.
        bidirectional: whether the encoder reads both ways.
        context: "last", c = h(S), where every state of the decoder starts from the one it
            corresponds to; "map", c = q(h(S)); or "combination", c = q(h(1) ... h(S)).
        bridge_layers: how many layers map c to each of the decoder's first states; with 0 it is
            that state, and the sizes must match.
        initial_cell: "zeros" or "bridge", where the cell states of an LSTM decoder start.
        wiring: "initial_state", x(t) = y(t-1); "context", x(t) = c; or "context_and_output",
            x(t) = [y(t-1); c].
        feed_output: False makes x(t) of "initial_state" a one, so that s(t) = RNN(s(t-1)).
        attention: None; "additive", "concat", "dot", "general", "scaled_dot", "local_monotonic",
            "local_predictive"; or a layer, `Attention` or `LocalAttention`, with a score.
        attention_place: "before" the cell, s(t-1) asks and c(t) enters x(t) (Bahdanau); or "after"
            it, s(t) asks and h~(t) = tanh(W_c [c(t); s(t)]) goes to the logits (Luong).
        input_feeding: x(t) = [y(t-1); h~(t-1)].
        readout: False makes logits(t) = V s(t).
        teacher_forcing: how often, while training, y(t-1) is the given token and not the one
            predicted: a number from 0 to 1, or a `seqkeras.schedules` schedule.
        teacher_forcing_per: "token" or "batch", for which of them one draw decides.

    Call arguments (one dictionary):
        token_ids: (B, S) integers, padded on the right.
        lengths: (B,) integers, the real steps of each source.
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is out of range, a name unknown, or two arguments do not go together.

    Reference: Bahdanau et al. 2015, appendix A.2, https://arxiv.org/abs/1409.0473, by default;
    Sutskever et al. 2014, https://arxiv.org/abs/1409.3215; Cho et al. 2014,
    https://arxiv.org/abs/1406.1078; Luong et al. 2015, https://arxiv.org/abs/1508.04025; teacher
    forcing: Bengio et al. 2015, https://arxiv.org/abs/1506.03099
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
        encoder_layers=1,
        decoder_layers=1,
        bidirectional=True,
        context="last",
        bridge_layers=1,
        initial_cell="zeros",
        wiring="context_and_output",
        feed_output=True,
        attention="additive",
        attention_place="before",
        input_feeding=False,
        readout=True,
        teacher_forcing=1.0,
        teacher_forcing_per="token",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sizes = {
            "source_vocab_size": source_vocab_size,
            "target_vocab_size": target_vocab_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "decoder_units": decoder_units,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
        }
        self.options = {
            "cell": cell,
            "dropout": dropout,
            "never_generated": list(never_generated),
            "bidirectional": bidirectional,
            "context": context,
            "bridge_layers": bridge_layers,
            "initial_cell": initial_cell,
            "wiring": wiring,
            "feed_output": feed_output,
            "attention_place": attention_place,
            "input_feeding": input_feeding,
            "readout": readout,
            "teacher_forcing": keras.saving.serialize_keras_object(teacher_forcing),
            "teacher_forcing_per": teacher_forcing_per,
        }
        self.encoder_dim = units * (2 if bidirectional else 1)
        check_arguments(self, self.sizes, self.options, attention, self.encoder_dim)
        self.options["attention"] = keras.saving.serialize_keras_object(attention)
        dtype = self.dtype_policy.name
        if isinstance(attention, str):
            attention = make_attention(attention, units, dtype)
        self.source_embedding = keras.layers.Embedding(
            source_vocab_size, embedding_dim, dtype=dtype
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype)
        self.encoder = make_encoder(cell, units, encoder_layers, bidirectional, dropout, dtype)
        self.context_layer = CONTEXTS[context](dtype=dtype) if CONTEXTS[context] else None
        self.bridge = Bridge(decoder_units, bridge_layers, dtype=dtype)
        teacher_forcing = TeacherForcing(teacher_forcing, teacher_forcing_per, dtype=dtype)
        self.decoder = self._make_decoder(attention, teacher_forcing)

    def _make_decoder(self, attention, teacher_forcing):
        sizes, options, dtype = self.sizes, self.options, self.dtype_policy.name
        after = options["attention_place"] == "after"
        feeds = options["feed_output"] and options["wiring"] != "context"
        common = {
            "vocab_size": sizes["target_vocab_size"],
            "embedding_dim": sizes["embedding_dim"] if feeds else 0,
            "units": sizes["decoder_units"],
            "cell": options["cell"],
            "num_layers": sizes["decoder_layers"],
            "reads_out": options["readout"] and not after,
            "dropout": options["dropout"],
            "never_generated": options["never_generated"],
            "teacher_forcing": teacher_forcing,
            "dtype": dtype,
        }
        if attention is None:
            return ClassicalDecoder(options["wiring"], **common)
        if after:
            return LuongDecoder(options["input_feeding"], attention=attention, **common)
        return BahdanauDecoder(options["wiring"], attention=attention, **common)

    @property
    def cell_name(self):
        return self.options["cell"]

    @property
    def never_generated(self):
        return self.options["never_generated"]

    @property
    def target_vocab_size(self):
        return self.sizes["target_vocab_size"]

    @property
    def attends(self):
        """Whether `step` returns attention weights."""
        return self.options["attention"] is not None

    @property
    def state_entries(self):
        """What the decoder's state holds, in order (see `seqkeras.decoding`)."""
        return self.decoder.state_entries

    def build(self, inputs_shape=None):
        values = (None, None, self.encoder_dim)
        last = (None, self.encoder_dim)
        build_once(self.source_embedding, (None, None))
        build_once(self.encoder, (None, None, self.sizes["embedding_dim"]))
        if self.context_layer is not None:
            build_once(self.context_layer, values, last)
        build_once(self.bridge, [last] * self.num_bridged * self.sizes["decoder_layers"])
        build_once(self.decoder, values)

    @property
    def num_bridged(self):
        """How many states of each layer of the decoder start from c; the others are zero."""
        return len(STATE_NAMES[self.cell_name]) if self.options["initial_cell"] == "bridge" else 1

    def call(self, inputs, training=False):
        state = self.encode(inputs["token_ids"], inputs["lengths"], training=training)
        return self.decoder(inputs["target_ids"], state, training=training)

    def encode(self, token_ids, lengths, training=False):
        """The decoder's initial state: a dictionary of the entries in `state_entries`.

        Per-beam entries have shape (B, 1, ...), one beam; per-source entries (B, ...).
        """
        mask = padding_mask(lengths, ops.shape(token_ids)[1])
        embedded = self.dropout(self.source_embedding(token_ids), training=training)
        values, *states = self.encoder(embedded, mask=mask, training=training)  # (B, S, E)
        num_states = len(STATE_NAMES[self.cell_name])
        last = last_states(states, self.sizes["encoder_layers"], num_states)
        context = last[-1][0]
        if self.context_layer is not None:
            context = self.context_layer(values, context, mask)
            last = [[context] * num_states]  # everything starts from it
        return {
            **self._first_states(last),
            **self.decoder.first_state(context, values, mask),
        }

    def _first_states(self, last):
        """The decoder's states before the first step, (B, 1, U), from the encoder's last ones."""
        layers = self.decoder.recurrent_names
        # Counted from the top: the highest layer starts from the highest one.
        sources = [last[max(0, level + len(last) - len(layers))] for level in range(len(layers))]
        kept = self.num_bridged
        bridged = self.bridge([state for source in sources for state in source[:kept]])
        bridged = [each[:, None] for each in bridged]
        state = {}
        for level, names in enumerate(layers):
            given = bridged[level * kept : (level + 1) * kept]
            zeros = [ops.zeros_like(given[0]) for _ in names[kept:]]
            state |= zip(names, given + zeros, strict=True)
        return state

    def step(self, token_ids, state):
        """One target step of every beam, the step contract of `seqkeras.decoding`.

        Args:
            token_ids: (B, K) integers, the last token of each of K beams.
            state: as `encode` returns it; per-beam entries (B, K, ...).

        Returns:
            (logits (B, K, V), attention weights (B, K, S)), and the new state; (logits,) alone
            where there is no attention.
        """
        return self.decoder.step(token_ids, state)

    def get_config(self):
        return {**super().get_config(), **self.sizes, **self.options}

    @classmethod
    def from_config(cls, config):
        objects = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("attention", "teacher_forcing")
            if isinstance(config.get(name), dict)
        }
        return cls(**{**config, **objects})
