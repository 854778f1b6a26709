"""Recurrent encoder-decoders, put together from their parts: with attention and without.

Does not support the maxout layers of the papers, nor hard attention with scheduled sampling.
"""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.attention import DotScore, MovingAverageBaseline, ScaledDotScore
from seqkeras.embeddings.ids import require_ids
from seqkeras.masks import padding_mask
from seqkeras.models import rnn_presets
from seqkeras.models.bridges import Bridge, FirstStates
from seqkeras.models.contexts import CONTEXTS
from seqkeras.models.recurrent_stack import RecurrentStack, values_dtype
from seqkeras.models.rnn_cells import with_objects
from seqkeras.models.rnn_decoder import RNNDecoder
from seqkeras.models.rnn_reinforce import reinforce_term
from seqkeras.models.source_model import SourceModel, checked_scaling, source_size
from seqkeras.shapes import require_positive
from seqkeras.values import build_once, config_of_part, reversed_steps

CLASSES = {"encoder": RecurrentStack, "decoder": RNNDecoder, "bridge": FirstStates}
PARTS = {
    "encoder": "a RecurrentStack",
    "decoder": "a ClassicalDecoder, BahdanauDecoder or LuongDecoder",
    "bridge": "a Bridge or an OwnState",
}
SAME_WIDTH = (DotScore, ScaledDotScore)  # scores of a query and keys of one width


@keras.saving.register_keras_serializable("seqkeras")
class RNNSeq2Seq(SourceModel):
    """Recurrent encoder and decoder, with a bridge between their states.

        h(1..S)   = encoder(x(1..S)), the embedded source or frames
        c         = h(S), or a learned map of it, or a learned combination of h(1..S)
        s(0)      = bridge(c)
        logits(t) = decoder(y(t-1), s(t-1), c or h(1..S)), y(t-1) the embedded previous output

    Most papers' models are presets, made from sizes and options (`rnn_presets`, `rnn_parts`):

        RNNSeq2Seq.bahdanau(100, 120, 64, 128)      additive attention before the cell
        RNNSeq2Seq.luong(100, 120, 64, 128)         attention after the cell, input feeding
        RNNSeq2Seq.sutskever, .cho                  one context for the whole target
        RNNSeq2Seq.classical_first_state, .classical_context, .classical_context_and_output

    Notation: h, s, c, y are the papers'. Where both directions are read, h(S) is the last state of
    each, side by side. A decoder's layer starts from the encoder's at the same distance from the
    top, or from the lowest. `seqkeras.models.rnn_wirings` has the formula of each decoder.

    Args:
        encoder: a `RecurrentStack`.
        decoder: a `ClassicalDecoder`, `BahdanauDecoder` or `LuongDecoder`.
        bridge: a `Bridge`, or an `OwnState` of the decoder; None for a `Bridge` of one layer.
        context: "last", c = h(S), where every state of the decoder starts from the one it
            corresponds to; "map", c = q(h(S)); or "combination", c = q(h(1) ... h(S)).
        source_embedding: layer that embeds the source's tokens, such as `keras.layers.Embedding`;
            None for frames.
        source_features: how many numbers a frame has, where the source is frames, such as sound,
            video or an image's grid; None for tokens. The encoder reads frames in place of
            embeddings.
        source_scaling: the mean and the deviation of each number of a frame, two lists: the encoder
            then reads (x(s) - mean) / deviation.
        reverse_source: whether the encoder reads x(S) first; h(s) stays the state at x(s).

    Call arguments (one dictionary):
        token_ids: (B, S) integers, padded on the right; or frames: (B, S, source_features).
        lengths: (B,) integers, the real steps of each source.
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.

    Returns:
        logits: (B, T, V).

    Raises:
        ValueError: if a part is of another class, two parts do not fit each other, the context is
            unknown, an input is missing or unknown, or an id known already is out of range.

    Hard attention takes the best position at inference. In training it samples one, which no
    gradient goes through, and `fit` adds the gradient of the expected loss by REINFORCE
    (`compute_loss`); the metrics then look at another sample.

    Reference: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215; Cho et al. 2014,
    https://arxiv.org/abs/1406.1078; Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473; Luong et
    al. 2015, https://arxiv.org/abs/1508.04025; teacher forcing: Bengio et al. 2015,
    https://arxiv.org/abs/1506.03099; hard attention: Xu et al. 2015, section 4.1,
    https://arxiv.org/abs/1502.03044

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import RNNSeq2Seq
        >>> model = RNNSeq2Seq.bahdanau(17, 19, embedding_dim=4, units=3)
        >>> source = {"token_ids": np.array([[5, 4, 3]]), "lengths": np.array([3])}
        >>> tuple(model(source | {"target_ids": np.array([[2, 7]])}).shape)
        (1, 2, 19)
        >>> (logits, weights), state = model.step(np.array([[2]]), model.encode(**source))
        >>> tuple(weights.shape)  # of one beam to three tokens of the source
        (1, 1, 3)
    """

    sutskever = classmethod(rnn_presets.sutskever)
    cho = classmethod(rnn_presets.cho)
    bahdanau = classmethod(rnn_presets.bahdanau)
    luong = classmethod(rnn_presets.luong)
    classical_first_state = classmethod(rnn_presets.classical_first_state)
    classical_context = classmethod(rnn_presets.classical_context)
    classical_context_and_output = classmethod(rnn_presets.classical_context_and_output)

    def __init__(
        self,
        encoder: keras.layers.Layer,
        decoder: keras.layers.Layer,
        bridge: keras.layers.Layer | None = None,
        context: str = "last",
        source_embedding: keras.layers.Layer | None = None,
        source_features: int | None = None,
        reverse_source: bool = False,
        source_scaling: Sequence[Sequence[float]] | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if bridge is None and isinstance(decoder, RNNDecoder):
            bridge = Bridge(decoder.units, dtype=self.dtype_policy.name)
        self._check({"encoder": encoder, "decoder": decoder, "bridge": bridge}, context)
        self.source_features = source_features
        self.source_scaling = checked_scaling(self, source_scaling, source_features)
        self.reverse_source = reverse_source
        vocab_size = getattr(source_embedding, "input_dim", None)
        self.sizes = {
            **source_size(
                self, vocab_size, source_features, "source_vocab_size (or a source_embedding)"
            ),
            "target_vocab_size": decoder.vocab_size,
        }
        require_positive(self, **self.sizes)
        self.source_embedding = source_embedding
        self.encoder = encoder
        self.context = context
        dtype = self.dtype_policy.name
        self.context_layer = CONTEXTS[context](dtype=dtype) if CONTEXTS[context] else None
        self.bridge = bridge
        self.decoder = decoder
        self.baseline = None
        if self.decoder.is_hard:
            self.baseline = MovingAverageBaseline(dtype=values_dtype(self))

    def _check(self, parts, context):
        """Raise a ValueError unless these are parts that fit each other."""
        problems = [
            f"{name} must be {PARTS[name]}; received {part!r}."
            for name, part in parts.items()
            if not isinstance(part, CLASSES[name])
        ]
        if problems:
            problems.append("The presets take sizes, as RNNSeq2Seq.bahdanau does.")
        if context not in CONTEXTS:
            problems.append(f"context must be one of {sorted(CONTEXTS)}; received {context!r}.")
        problems = problems or list(_misfits(**parts))
        if problems:
            raise ValueError(f"RNNSeq2Seq: {' '.join(problems)}")
        parts["bridge"].require_width(parts["encoder"].output_dim)

    @property
    def never_generated(self):
        return self.decoder.never_generated

    @property
    def attends(self):
        """Whether `step` returns attention weights."""
        return self.decoder.attention is not None

    @property
    def state_entries(self):
        """Entries of the decoder's state, in order (see `seqkeras.decoding`)."""
        return self.decoder.state_entries

    def build(self, inputs_shape=None):
        width = self.source_features
        if self.source_embedding is not None:
            build_once(self.source_embedding, (None, None))
            width = self.source_embedding.output_dim
        build_once(self.encoder, (None, None, width))
        values = (None, None, self.encoder.output_dim)
        last = (None, self.encoder.output_dim)
        if self.context_layer is not None:
            build_once(self.context_layer, values, last)
        build_once(self.bridge, [last] * self.num_bridged * len(self.decoder.recurrent_names))
        build_once(self.decoder, (None, None), values)
        if self.baseline is not None:
            build_once(self.baseline, (None,))

    @property
    def num_bridged(self):
        """Number of states that the bridge gives each layer of the decoder; the others are zero."""
        if not self.bridge.cell_states:
            return 1
        return min(self.encoder.num_vectors, len(self.decoder.recurrent_names[0]))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        self.check_ids(inputs)
        if training and self.baseline is not None:
            return self._sample(inputs)[0]
        source = self._read(*self._source(inputs), training=training)
        return self.decoder(inputs["target_ids"], **source, training=training)

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
        """Return the decoder's initial state: a dictionary of the entries in `state_entries`.

        A source of frames stands instead of `token_ids`.

        Per-beam entries have shape (B, 1, ...), one beam; per-source entries (B, ...).
        """
        return self.decoder.start(**self._read(token_ids, lengths, training))

    def _read(self, token_ids, lengths, training=False):
        """Return what a decoder reads of the source, as arguments of its call."""
        build_once(self)
        self.require_source(token_ids, lengths)
        mask = padding_mask(lengths, ops.shape(token_ids)[1])
        source = self.embed_source(token_ids, mask)
        if self.reverse_source:
            source = reversed_steps(source, lengths)
        values, states = self.encoder(source, mask=mask, training=training)  # (B, S, E)
        if self.reverse_source:
            values = reversed_steps(values, lengths)
        last = self.encoder.last_states(states)
        context = last[-1][0]
        if self.context_layer is not None:
            context = self.context_layer(values, context, mask)
            last = [[context] * self.encoder.num_vectors]  # everything starts from it
        return {
            "values": values,
            "initial_state": self._first_states(last),
            "context": context,
            "source_mask": mask,
        }

    def _first_states(self, last):
        """Return the decoder's states before the first step, (B, U), from the encoder's last ones.

        None stands for those that start at zero.
        """
        layers = self.decoder.recurrent_names
        # Counted from the top: the highest layer starts from the highest one.
        sources = [last[max(0, level + len(last) - len(layers))] for level in range(len(layers))]
        num_bridged = self.num_bridged
        bridged = iter(self.bridge([state for source in sources for state in source[:num_bridged]]))
        return [
            next(bridged) if index < num_bridged else None
            for names in layers
            for index in range(len(names))
        ]

    def step(self, token_ids, state):
        """Advance every beam by one token, the step contract of `seqkeras.decoding`.

        Args:
            token_ids: (B, K) integers, the last token of each of K beams.
            state: the result of `encode`; per-beam entries (B, K, ...).

        Returns:
            (logits (B, K, V), attention weights (B, K, S)), and the new state; (logits,) alone
            where there is no attention.
        """
        require_ids(self, "token_ids", token_ids, *self.id_limits["target_ids"])
        return self.decoder.step(token_ids, state)

    def step_by_heads(self, token_ids, state):
        """Advance like `step`, with the weights (B, K, 1, N, S) of each head."""
        return self.decoder.step_by_heads(token_ids, state)

    @property
    def attention_heads(self):
        """Numbers of layers that attend to the source, and of heads of each."""
        return 1, getattr(self.decoder.attention, "num_heads", 1)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Return the loss that `compile` names; with hard attention training adds REINFORCE's
        gradient.

        The loss is then the loss of a sample drawn here, by a second pass over the batch: what was
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
            self.decoder.entropy_weight * entropies,
            self.baseline,
            sample_weight,
            parallel=self.decoder.parallel,
        )
        return loss + ops.cast(term, loss.dtype)

    def _sample(self, inputs):
        """Return the decoder's `sample`, in training."""
        state = self.encode(*self._source(inputs), training=True)
        return self.decoder.sample(inputs["target_ids"], state)

    def get_config(self):
        parts = ("encoder", "decoder", "bridge", "source_embedding")
        return {
            **super().get_config(),
            **{name: config_of_part(getattr(self, name)) for name in parts},
            "context": self.context,
            "source_features": self.source_features,
            "reverse_source": self.reverse_source,
            "source_scaling": self.source_scaling,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_objects(config, "encoder", "decoder", "bridge", "source_embedding"))


def _misfits(encoder, decoder, bridge):
    """Yield reasons, as sentences, why these parts do not fit each other."""
    if bridge.units != decoder.units:
        yield f"bridge must have the decoder's units; received {bridge.units} and {decoder.units}."
    score = getattr(decoder.attention, "score", None)
    if isinstance(score, SAME_WIDTH) and encoder.output_dim != decoder.units:
        yield (
            f"{type(score).__name__} needs the encoder's states as wide as the decoder's; received "
            f"{encoder.output_dim} and {decoder.units}. GeneralScore takes different ones."
        )
