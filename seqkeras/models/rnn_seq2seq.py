"""Recurrent encoder-decoders without attention, in three wirings, and those with attention.

It leaves out the maxout layers of the papers, attention before the cell with wiring
"initial_state", and hard attention together with scheduled sampling.
"""

import functools

import keras
from keras import ops

from seqkeras.attention import MovingAverageBaseline
from seqkeras.attention.masks import padding_mask
from seqkeras.embeddings.ids import require_ids
from seqkeras.models.contexts import CONTEXTS, Bridge
from seqkeras.models.recurrent_stack import RecurrentStack, values_dtype
from seqkeras.models.rnn_cells import config_of, with_objects
from seqkeras.models.rnn_checks import check_arguments, is_hard
from seqkeras.models.rnn_reinforce import reinforce_term
from seqkeras.models.rnn_wirings import (
    BahdanauDecoder,
    ClassicalDecoder,
    LuongDecoder,
    make_attention,
)
from seqkeras.models.source_model import SourceModel, source_size
from seqkeras.models.teacher_forcing import TeacherForcing
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class RNNSeq2Seq(SourceModel):
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
        source_vocab_size, target_vocab_size: numbers of token ids; the first is None where the
            source is frames.
        embedding_dim: size of the embeddings of both sides.
        units: size of the encoder's state in each direction, and of the hidden layer of scores.
        decoder_units: size of the decoder's state.
        cell: "gru", "lstm", "simple_rnn", or a cell of whatever size, ours, Keras's or your own, as
            a pattern of each layer's (`seqkeras.models.rnn_cells`); also "qrnn" or a `QRNN`, for
            the encoder, with another cell as decoder_cell.
        dropout: of the embeddings, between the layers of the encoder, and before the logits.
        never_generated: target ids whose logit is `BANNED_LOGIT` in `step`, which generates:
            padding, unknown, begin. `seqkeras.tokenizers.special_ids` knows those of a tokenizer.
        encoder_layers, decoder_layers: how many. A decoder's layer starts from the encoder's at the
            same distance from the top, or from the lowest.
        bidirectional: whether the encoder reads both ways.
        context: "last", c = h(S), where every state of the decoder starts from the one it
            corresponds to; "map", c = q(h(S)); or "combination", c = q(h(1) ... h(S)).
        bridge_layers: how many layers map c to each of the decoder's first states; with 0 it is
            that state, and the sizes must match.
        initial_cell: "zeros" or "bridge", where the states behind the first of each cell of the
            decoder start, as the cell state of an LSTM.
        wiring: "initial_state", x(t) = y(t-1); "context", x(t) = c; or "context_and_output",
            x(t) = [y(t-1); c].
        feed_output: False makes x(t) of "initial_state" a one, so that s(t) = RNN(s(t-1)).
        attention: None; "additive", "concat", "dot", "general", "scaled_dot", "local_monotonic",
            "local_predictive", "hard"; or a layer, `Attention`, `LocalAttention` or
            `HardAttention`, with a score; or `MultiHeadAttention`, whose weights are here the mean
            of its heads, without causality and dropout.
        attention_place: "before" the cell, s(t-1) asks and c(t) enters x(t) (Bahdanau); or "after"
            it, s(t) asks and h~(t) = tanh(W_c [c(t); s(t)]) goes to the logits (Luong).
        input_feeding: x(t) = [y(t-1); h~(t-1)].
        readout: False makes logits(t) = V s(t).
        teacher_forcing: how often, while training, y(t-1) is the given token and not the one
            predicted: a number from 0 to 1, or a `seqkeras.schedules` schedule.
        teacher_forcing_per: "token" or "batch", for which of them one draw decides.
        entropy_weight: of hard attention, how much training values positions that stay open.
        decoder_cell: of the decoder, as `cell` but for a QRNN; None for that of the encoder.
        source_features: of a source that is frames, as of sound, video or an image's grid, how many
            numbers each has. The encoder reads them as they are, x(s), in place of embeddings.

    Call arguments (one dictionary):
        token_ids: (B, S) integers, padded on the right; or frames: (B, S, source_features).
        lengths: (B,) integers, the real steps of each source.
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a size is out of range, a name unknown, the cell does not fit, two arguments
            do not go together, an input is missing or unknown, or an id known already is out of
            range.

    Hard attention takes the best position at inference. In training it samples one, which no
    gradient goes through, and `fit` adds the gradient of the expected loss by REINFORCE
    (`compute_loss`); the metrics then look at another sample.

    Reference: Bahdanau et al. 2015, appendix A.2, https://arxiv.org/abs/1409.0473, by default;
    Sutskever et al. 2014, https://arxiv.org/abs/1409.3215; Cho et al. 2014,
    https://arxiv.org/abs/1406.1078; Luong et al. 2015, https://arxiv.org/abs/1508.04025; teacher
    forcing: Bengio et al. 2015, https://arxiv.org/abs/1506.03099; hard attention: Xu et al. 2015,
    section 4.1, https://arxiv.org/abs/1502.03044
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
        entropy_weight=0.0,
        decoder_cell=None,
        source_features=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.source_features = source_features
        self.sizes = {
            **source_size(self, source_vocab_size, source_features),
            "target_vocab_size": target_vocab_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "decoder_units": decoder_units,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
        }
        self.options = {
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
            "entropy_weight": entropy_weight,
        }
        # Patterns are no layers of ours.
        self.cell_config = functools.partial(config_of, cell)
        self.decoder_cell_config = functools.partial(config_of, decoder_cell)
        decoder_cell = cell if decoder_cell is None else decoder_cell
        self.encoder_dim = units * (2 if bidirectional else 1)
        cells = {"cell": cell, "decoder_cell": decoder_cell}
        check_arguments(self, self.sizes, self.options, cells, attention, self.encoder_dim)
        self.options["attention"] = keras.saving.serialize_keras_object(attention)
        dtype = self.dtype_policy.name
        if isinstance(attention, str):
            attention = make_attention(attention, units, dtype)
        self.source_embedding = None
        if source_features is None:
            self.source_embedding = keras.layers.Embedding(
                source_vocab_size, embedding_dim, dtype=dtype
            )
        self.encoder = RecurrentStack(
            cell, units, encoder_layers, dropout, bidirectional, dtype=dtype
        )
        self.context_layer = CONTEXTS[context](dtype=dtype) if CONTEXTS[context] else None
        self.bridge = Bridge(decoder_units, bridge_layers, dtype=dtype)
        teacher_forcing = TeacherForcing(teacher_forcing, teacher_forcing_per, dtype=dtype)
        self.decoder = self._make_decoder(decoder_cell, attention, teacher_forcing)
        self.baseline = None
        if is_hard(attention):
            self.baseline = MovingAverageBaseline(dtype=values_dtype(self))

    def _make_decoder(self, cell, attention, teacher_forcing):
        sizes, options, dtype = self.sizes, self.options, self.dtype_policy.name
        after = options["attention_place"] == "after"
        feeds = options["feed_output"] and options["wiring"] != "context"
        common = {
            "vocab_size": sizes["target_vocab_size"],
            "embedding_dim": sizes["embedding_dim"] if feeds else 0,
            "units": sizes["decoder_units"],
            "cell": cell,
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
    def never_generated(self):
        return self.options["never_generated"]

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
        if self.source_embedding is not None:
            build_once(self.source_embedding, (None, None))
        width = self.source_features or self.sizes["embedding_dim"]
        build_once(self.encoder, (None, None, width))
        if self.context_layer is not None:
            build_once(self.context_layer, values, last)
        build_once(self.bridge, [last] * self.num_bridged * self.sizes["decoder_layers"])
        build_once(self.decoder, values)
        if self.baseline is not None:
            build_once(self.baseline, (None,))

    @property
    def num_bridged(self):
        """How many states of each layer of the decoder start from c; the others are zero."""
        if self.options["initial_cell"] != "bridge":
            return 1
        return min(self.encoder.num_vectors, len(self.decoder.recurrent_names[0]))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        self.check_ids(inputs)
        if training and self.baseline is not None:
            return self._sample(inputs)[0]
        state = self.encode(*self._source(inputs), training=training)
        return self.decoder(inputs["target_ids"], state, training=training)

    def _source(self, inputs):
        return [inputs[name] for name in self.source_names]

    def attention_weights(self, inputs):
        if not self.attends:
            return super().attention_weights(inputs)
        self.require_inputs(inputs)
        state = self.encode(*self._source(inputs))
        target_ids = ops.convert_to_tensor(inputs["target_ids"])
        return {"cross": self.decoder.attention_weights(target_ids, state)}

    def encode(self, token_ids, lengths, training=False):
        """The decoder's initial state: a dictionary of the entries in `state_entries`.

        A source of frames stands in the place of `token_ids`.

        Per-beam entries have shape (B, 1, ...), one beam; per-source entries (B, ...).
        """
        build_once(self)
        self.require_source(token_ids, lengths)
        mask = padding_mask(lengths, ops.shape(token_ids)[1])
        embedded = self.embed_source(token_ids, mask)
        values, states = self.encoder(embedded, mask=mask, training=training)  # (B, S, E)
        last = self.encoder.last_states(states)
        context = last[-1][0]
        if self.context_layer is not None:
            context = self.context_layer(values, context, mask)
            last = [[context] * self.encoder.num_vectors]  # everything starts from it
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
        require_ids(self, "token_ids", token_ids, *self.id_limits["target_ids"])
        return self.decoder.step(token_ids, state)

    def step_by_heads(self, token_ids, state):
        """As `step`, but with the weights (B, K, 1, N, S) of each head."""
        return self.decoder.step_by_heads(token_ids, state)

    @property
    def attention_heads(self):
        """How many layers attend to the source, and with how many heads each."""
        return 1, getattr(self.decoder.attention, "num_heads", 1)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss that `compile` names; with hard attention training adds REINFORCE's gradient.

        The loss is then that of a sample drawn here, by a second pass over the batch: what was
        sampled in `call` is not kept. The targets' padding is 0.
        """
        if not training or self.baseline is None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        logits, log_probabilities, entropies = self._sample(x)
        loss = super().compute_loss(x, y, logits, sample_weight, training)
        term = reinforce_term(
            y,
            logits,
            log_probabilities,
            self.options["entropy_weight"] * entropies,
            self.baseline,
            sample_weight,
            parallel=self.decoder.parallel,
        )
        return loss + ops.cast(term, loss.dtype)

    def _sample(self, inputs):
        """The decoder's `sample`, in training."""
        state = self.encode(*self._source(inputs), training=True)
        return self.decoder.sample(inputs["target_ids"], state)

    def get_config(self):
        return {
            **super().get_config(),
            "source_vocab_size": None,
            "source_features": self.source_features,
            **self.sizes,
            **self.options,
            "cell": self.cell_config(),
            "decoder_cell": self.decoder_cell_config(),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_objects(config, "cell", "decoder_cell", "attention", "teacher_forcing"))
