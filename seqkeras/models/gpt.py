"""GPT: a Transformer decoder as a language model, causal or of a prefix.

Left out: GPT-1's auxiliary losses. `PermutedGPT` predicts in any order.
"""

from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from seqkeras.embeddings import TokenEmbedding
from seqkeras.embeddings.position import FORMS
from seqkeras.masks import prefix_mask
from seqkeras.models.inputs import require_inputs
from seqkeras.models.positions import (
    add_positions,
    bias_of_stack,
    position_vectors,
    relative_clip,
    require_kind,
)
from seqkeras.models.token_model import TokenModel
from seqkeras.shapes import require_positive
from seqkeras.transformer import Decoder, DecoderBlock
from seqkeras.transformer.block import require_heads
from seqkeras.values import build_once, known_numbers

STDDEV = 0.02  # of what weights start as


@keras.saving.register_keras_serializable("seqkeras")
class GPT(TokenModel):
    """Language model of causal self-attention, in the form of GPT-2 or of GPT-1.

        h_0(t) = E y(t) + P(t)        h_l(1..T) = block_l(h_{l-1}(1..T))
        logits(t) = E h_L(t), for y(t + 1)

    GPT-2's blocks are pre-norm, with one more normalisation after the last; the last kernel of
    each of their 2 L sublayers starts as normal numbers of 0.02 / sqrt(2 L). GPT-1's are post-norm.

    A position attends to itself and to what is before it; with mask "prefix" to everything in the
    prefix too, as in T5's prefix language model and UniLM. The mask adds no weight: what was
    trained with one continues with the other.

    Notation: E and P are the paper's W_e and W_p. With sinusoids E y(t) is multiplied by sqrt(D);
    relative positions and biases do without P.

    Args:
        vocab_size: V, the number of token ids.
        hidden_dim: D.
        num_layers: L.
        num_heads: N, which divides D.
        feed_forward_dim: F; 4 D in the papers.
        max_length: the number of learned positions; with others the room for tokens, unless
            `initial_state` sets another.
        activation: "gelu_tanh", "gelu", "relu" or "silu".
        pre_norm: True for GPT-2, False for GPT-1.
        dropout: dropout rate of the embeddings and of what each sublayer gives.
        attention_dropout: dropout rate of the attention weights.
        epsilon: epsilon of layer normalisation.
        attention_window: r, the positions that self-attention sees at most; None for all.
        mask: "causal" or "prefix".
        positions: "learned"; "paper", "tensor2tensor" or "marian" for sinusoids; "relative" or
            "bias": see `seqkeras.models.positions`.

    Call arguments (one dictionary):
        token_ids: (B, T) integers, padded on the right, if at all. No position sees a later one, so
            lengths change nothing but which logits have a meaning.
        lengths: (B,) integers, the real tokens of each row, which may be left out.
        prefix_lengths: (B,) integers, how many of a row's first tokens all attend to each other;
            with mask "prefix".

    Returns:
        logits: (B, T, V), in float32 at least.

    Raises:
        ValueError: if a size is not positive, num_heads does not divide hidden_dim, the activation
            is unknown, T is more than the learned positions, a token id known already is not under
            V, the mask or the kind of positions is unknown, or its input is missing or unused.

    Train it with the masked cross-entropy named in `seqkeras.losses`. `read` and `step` continue a
    state, which holds the key/value cache; `step` is the contract of `seqkeras.decoding`.

    Step by step, `read` takes prefix_lengths of the first piece, and `read_beams` reads a first
    piece as a prefix; what follows goes from left to right. So a bundle reads its prompt both ways
    where the mask is of a prefix, and continues as a causal model.

    Reference: Radford et al. 2018, section 3.1 ("Improving Language Understanding by Generative
    Pre-Training"); Radford et al. 2019, section 2.3 ("Language Models are Unsupervised Multitask
    Learners"), https://github.com/openai/gpt-2; prefix: Raffel et al. 2020, section 3.2.1,
    https://arxiv.org/abs/1910.10683, and Dong et al. 2019, https://arxiv.org/abs/1905.03197

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import GPT
        >>> gpt = GPT(17, 8, num_layers=1, num_heads=2, feed_forward_dim=16, max_length=32)
        >>> logits, state = gpt.read(np.array([[3, 1, 4]]))  # a prompt, and its keys and values
        >>> (logits,), state = gpt.step(np.array([[5]]), state)  # one token of one beam
        >>> tuple(logits.shape)
        (1, 1, 17)
    """

    block_class, decoder_class = DecoderBlock, Decoder
    masks: ClassVar = {"causal": [], "prefix": ["prefix_lengths"]}  # and its input
    ahead = 0  # how far the positions reach beyond the tokens that are read

    def __init__(
        self,
        vocab_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        feed_forward_dim: int,
        max_length: int,
        activation: str = "gelu_tanh",
        pre_norm: bool = True,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        epsilon: float = 1e-5,
        attention_window: int | None = None,
        mask: str = "causal",
        positions: str = "learned",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_heads(self, hidden_dim, num_heads)
        require_positive(self, num_layers=num_layers, max_length=max_length)
        require_kind(self, positions)
        if mask not in self.masks:
            raise ValueError(
                f"{type(self).__name__}: mask must be one of {[*self.masks]}, and for any order "
                f"the model a PermutedGPT; received {mask!r}."
            )
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size,
            "hidden_dim": hidden_dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "max_length": max_length,
            "activation": activation,
            "pre_norm": pre_norm,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "epsilon": epsilon,
            "attention_window": attention_window,
            "mask": mask,
            "positions": positions,
        }
        self.max_length = max_length
        policy = self.dtype_policy
        stddev = None if positions in FORMS else STDDEV
        self.embedding = TokenEmbedding(
            vocab_size, hidden_dim, positions in FORMS, stddev, dtype=policy
        )
        self.positions = position_vectors(
            positions, hidden_dim, policy, max_length + self.ahead, stddev=STDDEV
        )
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        block = self.block_class(
            hidden_dim,
            num_heads,
            feed_forward_dim,
            activation,
            pre_norm,
            cross_attention=False,
            dropout=dropout,
            attention_dropout=attention_dropout,
            epsilon=epsilon,
            residual_stddev=STDDEV / (2 * num_layers) ** 0.5 if pre_norm else None,
            attention_window=attention_window,
            relative_clip=relative_clip(positions),
            dtype=policy,
            name="block_0",
        )
        later = mask != "causal" or self.ahead > 0  # whether some token sees a later one
        bias = bias_of_stack(positions, num_heads, later, policy)
        self.decoder = self.decoder_class(block, num_layers, bias)

    @property
    def input_names(self):
        return ["token_ids", *self.masks[self.config["mask"]]], ["lengths"]

    @property
    def vocab_size(self):
        return self.config["vocab_size"]

    @property
    def position_limit(self):
        """The number of positions that have a vector; None where any has."""
        return self.max_length if self.config["positions"] == "learned" else None

    @property
    def state_entries(self):
        """Entries of the state, in order (see `seqkeras.decoding`)."""
        return self.decoder.cache_entries

    @property
    def id_limits(self):
        return {"token_ids": ("vocab_size", self.config["vocab_size"])}

    def build(self, inputs_shape=None):
        build_once(self.embedding, (None, None))
        if self.positions is not None:
            build_once(self.positions, (None, None))
        build_once(self.decoder, (None, None, self.config["hidden_dim"]))

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        token_ids = inputs["token_ids"]
        x = self._embed(token_ids, ops.arange(ops.shape(token_ids)[1])[None])
        if self.config["mask"] == "prefix" and self.config["attention_window"] is not None:
            seen = {"prefix_lengths": self._prefix_lengths(inputs)}  # no (T, T) mask
        else:
            seen = self._mask(inputs)
        x = self.decoder(self.dropout(x, training=training), training=training, **seen)
        return self.embedding.logits(x)  # of (B, T, D)

    @property
    def reads_prefix(self):
        """Whether what is read first is a prefix, whose tokens all attend to each other."""
        return self.config["mask"] == "prefix"

    def from_left_to_right(self, token_ids, prefix_lengths=None):
        """Return the inputs of a text as generation reads it: after its prefix, if it has one, in
        order.

        Args:
            token_ids: (B, T) integers.
            prefix_lengths: (B,) integers, with mask "prefix" alone.
        """
        prefix = {"prefix_lengths": prefix_lengths} if self.reads_prefix else {}
        return {"token_ids": token_ids, **prefix}

    def _mask(self, inputs):
        """Return what a position may attend to, as options of the decoder."""
        if self.config["mask"] == "causal":
            return {}
        mask = prefix_mask(self._prefix_lengths(inputs), ops.shape(inputs["token_ids"])[1])
        return {"attention_mask": mask, "causal": False}

    def _prefix_lengths(self, inputs):
        """Return (B,) lengths of prefixes, which end where the padding begins."""
        prefix, lengths = inputs["prefix_lengths"], inputs.get("lengths")
        return prefix if lengths is None else ops.minimum(prefix, ops.cast(lengths, prefix.dtype))

    def attention_weights(self, inputs):
        self.require_inputs(inputs)
        positions = ops.arange(ops.shape(inputs["token_ids"])[1])[None]
        embedded = self._embed(inputs["token_ids"], positions)
        return self.decoder.attention_weights(embedded, **self._mask(inputs))

    def initial_state(self, batch_size, max_length=None):
        """Return the state before any token, for one beam (see `state_entries`).

        Args:
            batch_size: B.
            max_length: how many tokens the cache has room for; None for the model's.

        Raises:
            ValueError: if max_length is more than there are learned positions.
        """
        build_once(self)  # not in a step: JAX can make no weights inside a loop
        cache_length = self.max_length if max_length is None else max_length
        if self.config["positions"] == "learned":
            require_positions(self, cache_length, self.max_length)
        return self.decoder.initial_cache(batch_size, cache_length)

    def read(self, token_ids, lengths=None, state=None, prefix_lengths=None):
        """Return a piece of text, after another.

        Args:
            token_ids: (B, T) integers, padded on the right; T may be 0.
            lengths: (B,) integers, or None if every token is real.
            state: the state after the piece before, of one beam; None at the beginning, with room
                for all max_length tokens. Every step attends to all of that room: `initial_state`
                with as many tokens as are needed is cheaper.
            prefix_lengths: (B,) integers, of the first piece, with mask "prefix" alone: how many of
                its tokens all attend to each other; None for none.

        Returns:
            (B, T, V) logits, and the state after each row's last real token.

        Raises:
            ValueError: if the lengths do not fit the token_ids, the state is another model's,
                or the prefix is not of the first piece.
        """
        build_once(self)
        require_inputs(
            self, {"token_ids": token_ids, "lengths": lengths}, ["token_ids"], ["lengths"]
        )
        if prefix_lengths is not None:
            self._require_prefix(state)
            read = ops.shape(token_ids)[1] if lengths is None else lengths
            prefix_lengths = ops.minimum(prefix_lengths, read)[:, None]
        if state is None:
            state = self.initial_state(ops.shape(token_ids)[0])
        self._require_state(state)
        if token_ids.shape[1] == 0:
            return self.embedding.logits(self.embedding(token_ids)), state
        lengths = None if lengths is None else lengths[:, None]
        hidden, state = self._hidden(token_ids[:, None], state, lengths, prefix_lengths)
        return self.embedding.logits(hidden[:, 0]), state

    def _require_prefix(self, state):
        """Raise a ValueError unless a prefix may be read after this state."""
        read = None if state is None else known_numbers(state["position"])
        if self.config["mask"] != "prefix" or (read is not None and np.any(read)):
            before = 0 if read is None else int(np.max(read))
            raise ValueError(
                'GPT: prefix_lengths must be of the first piece, of a model with mask "prefix"; '
                f"received some for {self.config['mask']!r}, after {before} tokens."
            )

    def _require_state(self, state):
        names = [entry.name for entry in self.state_entries]
        if sorted(names) != sorted(state):
            raise ValueError(
                f"GPT: the state must hold what initial_state gives, {names}; received "
                f"{list(state)}."
            )

    def step(self, token_ids, state):
        """Advance every beam by one token, the step contract of `seqkeras.decoding`.

        A search refuses more tokens than the cache has room for.

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
            state: entries (B, K, ...), or caches as `transformer.Decoder.read` takes them too.

        Returns:
            (logits (B, K, V) after the last one,), and the new state.

        With mask "prefix" the tokens of a beam that has read none are its prefix.

        Raises:
            ValueError: if there is no token.
        """
        if token_ids.shape[-1] == 0:
            raise ValueError(
                "GPT: token_ids must hold at least one token of every beam; received shape "
                f"{tuple(token_ids.shape)}."
            )
        prefix_lengths = None
        if self.reads_prefix:
            is_first = ops.cast(state["position"] == 0, "int32")
            prefix_lengths = is_first * ops.shape(token_ids)[-1]
        hidden, state = self._hidden(token_ids, state, prefix_lengths=prefix_lengths)
        return (self.embedding.logits(hidden[:, :, -1]),), state

    def _hidden(self, token_ids, state, lengths=None, prefix_lengths=None):
        """Map (B, K, T) further tokens to (B, K, T, D), and the new state."""
        positions = state["position"][..., None] + ops.arange(ops.shape(token_ids)[2])
        if lengths is not None and self.config["positions"] == "learned":
            # What is padded has no position.
            positions = ops.minimum(positions, self.max_length - 1)
        x, _, state = self.decoder.read(
            self._embed(token_ids, positions),
            state,
            lengths=lengths,
            prefix_lengths=prefix_lengths,
        )
        return x, state

    def _embed(self, token_ids, positions):
        return add_positions(self.positions, self.embedding(token_ids), positions)

    def get_config(self):
        return {**super().get_config(), **self.config}


def require_positions(model, length, max_length):
    """Raise a ValueError if the model has fewer positions."""
    if not 1 <= length <= max_length:
        raise ValueError(
            f"{type(model).__name__}: a sequence must have from 1 to max_length, {max_length}, "
            f"positions; received {length}."
        )
