"""The Transformer: an encoder-decoder of attention alone."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from seqkeras.decoding import StateEntry
from seqkeras.embeddings import TokenEmbedding
from seqkeras.masks import padding_mask
from seqkeras.models.bert import Bert
from seqkeras.models.gpt import require_positions
from seqkeras.models.never_generated import id_problems, without
from seqkeras.models.positions import (
    add_positions,
    bias_of_stack,
    position_vectors,
    relative_clip,
    require_kind,
)
from seqkeras.models.source_model import SourceModel, checked_scaling, source_size
from seqkeras.models.with_heads import serialize
from seqkeras.shapes import require_positive
from seqkeras.transformer import Decoder, DecoderBlock, Encoder, EncoderBlock, LayerNorm
from seqkeras.transformer.block import require_heads
from seqkeras.values import build_once

SHARED = ("none", "target", "source", "all")


@keras.saving.register_keras_serializable("seqkeras")
class Transformer(SourceModel):
    """Encoder and decoder of attention and feed-forward blocks.

        encoded   = encoder(sqrt(D) E_x x(1..S) + P)
        hidden    = decoder(sqrt(D) E_y y(0..T-1) + P, encoded)
        logits(t) = E_o hidden(t) + b

    Notation: E_x, E_y and E_o, a row for each token, are one matrix in the paper, as with
    shared_embeddings "all" here; P are the positions, which relative ones and biases
    do without. The paper has no b.

    Args:
        source_vocab_size, target_vocab_size: numbers of token ids; the first is None where the
            source is frames.
        hidden_dim: D, the paper's d_model.
        num_layers: L, of the encoder and of the decoder.
        num_heads: N, which divides D.
        feed_forward_dim: F.
        max_length: the room for target tokens in decoding, unless `encode` sets another; with
            learned positions also the most tokens of a source or target.
        positions: "paper", "tensor2tensor" or "marian", the forms of `SinusoidalPositions`;
            "learned"; "relative" or "bias", by which self-attention knows distances: see
            `seqkeras.models.positions`.
        shared_embeddings: "all", E_x = E_y = E_o; "target", E_y = E_o; "source", E_x = E_y; or
            "none".
        scale_embeddings: False leaves out sqrt(D).
        activation: "relu", "gelu", "gelu_tanh" or "silu".
        pre_norm: normalise what enters a sublayer, not the sum after it.
        dropout: dropout rate of the embeddings and of what each sublayer gives.
        attention_dropout: dropout rate of the attention weights.
        activation_dropout: dropout rate of what the activation gives.
        epsilon: epsilon of layer normalisation.
        never_generated: target ids whose logit is `BANNED_LOGIT` in `step`, which generates:
            padding, unknown, begin. `seqkeras.tokenizers.special_ids` knows a tokenizer's ids.
        output_bias: whether there is b.
        attention_window: r: self-attention, of encoder and decoder, sees no further than so many
            positions; None for all.
        source_features: how many numbers a frame has, where the source is frames, such as sound,
            video or an image's grid; None for tokens. Instead of sqrt(D) E_x x(s) the encoder then
            reads W x(s) + c, learned.
        encoder: a `Bert` of source_vocab_size that is the encoder, of any width and depth; None for
            one like the decoder. While it is not trainable, it drops nothing.
        embedding_norm: whether what enters a stack is normalised, as BERT's embeddings are.
        source_scaling: the mean and the deviation of each number of a frame, two lists: x(s) is
            then (x(s) - mean) / deviation. None reads frames as they are.
        norm, use_bias, gated, head_dim: options of the blocks, see `EncoderBlock`.

    Call arguments (one dictionary):
        token_ids: (B, S) integers, padded on the right; or frames: (B, S, source_features).
        lengths: (B,) integers, the real steps of each source.
        target_ids: (B, T) integers, `<bos>` and all target tokens but the last.

    Returns:
        logits: (B, T, V), in float32 at least.

    Raises:
        ValueError: if a size is not positive, num_heads does not divide hidden_dim, a name is
            unknown, all embeddings are shared by vocabularies of two sizes, there are fewer learned
            positions than tokens, a token id known already, or one of never_generated, is not in
            its vocabulary, never_generated is all of it, or the encoder is no `Bert` of the source.

    Reference: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762; with a `Bert`: Rothe et al.
    2020, section 3, https://arxiv.org/abs/1907.12461

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Transformer
        >>> model = Transformer(17, 19, 8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> source = {"token_ids": np.array([[5, 4, 3]]), "lengths": np.array([3])}
        >>> tuple(model(source | {"target_ids": np.array([[2, 7]])}).shape)
        (1, 2, 19)
        >>> state = model.encode(**source, max_length=9)
        >>> (logits, weights), state = model.step(np.array([[2]]), state)
        >>> tuple(weights.shape)  # of one beam to three tokens of the source
        (1, 1, 3)
    """

    attends = True  # a step returns attention weights too

    def __init__(
        self,
        source_vocab_size: int | None,
        target_vocab_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        feed_forward_dim: int,
        max_length: int = 512,
        positions: str = "paper",
        shared_embeddings: str = "target",
        scale_embeddings: bool = True,
        activation: str = "relu",
        pre_norm: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        epsilon: float = 1e-5,
        never_generated: Sequence[int] = (0, 1, 2),
        output_bias: bool = False,
        attention_window: int | None = None,
        source_features: int | None = None,
        encoder: keras.Model | None = None,
        embedding_norm: bool = False,
        source_scaling: Sequence[Sequence[float]] | None = None,
        norm: str = "layer",
        use_bias: bool = True,
        gated: bool = False,
        head_dim: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.source_features = source_features
        self.source_scaling = checked_scaling(self, source_scaling, source_features)
        self.sizes = {
            **source_size(self, source_vocab_size, source_features),
            "target_vocab_size": target_vocab_size,
            "max_length": max_length,
        }
        self.options = {
            "positions": positions,
            "shared_embeddings": shared_embeddings,
            "scale_embeddings": scale_embeddings,
            "never_generated": list(never_generated),
            "output_bias": output_bias,
            "embedding_norm": embedding_norm,
        }
        self.num_layers = num_layers
        self.block_options: dict[str, Any] = {
            "hidden_dim": hidden_dim,
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "activation": activation,
            "pre_norm": pre_norm,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "epsilon": epsilon,
            "attention_window": attention_window,
            "norm": norm,
            "use_bias": use_bias,
            "gated": gated,
            "head_dim": head_dim,
        }
        self._check(encoder)
        policy = self.dtype_policy
        of_block = {**self.block_options, "relative_clip": relative_clip(positions)}
        of_block |= {"dtype": policy, "name": "block_0"}
        biases = [
            bias_of_stack(positions, num_heads, bidirectional, policy)
            for bidirectional in (True, False)
        ]
        self.encoder = encoder or Encoder(EncoderBlock(**of_block), num_layers, biases[0])
        self.decoder = Decoder(DecoderBlock(**of_block), num_layers, biases[1])
        self.embedding_norm = LayerNorm(epsilon, dtype=policy) if embedding_norm else None
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.positions = position_vectors(positions, hidden_dim, policy, max_length)

        def embedding(vocab_size):
            return TokenEmbedding(vocab_size, hidden_dim, scale_embeddings, dtype=policy)

        self.target_embedding = embedding(target_vocab_size)
        shared = self.target_embedding if shared_embeddings in ("all", "source") else None
        if encoder is not None:
            self.source_embedding = None
        elif source_features is None:
            self.source_embedding = shared or embedding(source_vocab_size)
        else:
            self.source_embedding = keras.layers.Dense(hidden_dim, dtype=policy)
        self.output_embedding = (
            self.target_embedding
            if shared_embeddings in ("all", "target")
            else embedding(target_vocab_size)
        )

    def _check(self, encoder):
        sizes, options = self.sizes, self.options
        heads = ("hidden_dim", "num_heads", "head_dim")
        require_heads(self, *(self.block_options[name] for name in heads))
        require_positive(self, **sizes)
        require_kind(self, options["positions"])
        if options["shared_embeddings"] not in SHARED:
            raise ValueError(
                f"Transformer: shared_embeddings must be one of {SHARED}; received "
                f"{options['shared_embeddings']!r}."
            )
        for problem in id_problems(options["never_generated"], sizes["target_vocab_size"]):
            raise ValueError(f"Transformer: {problem}")
        if encoder is not None:
            self._check_encoder(encoder)
        vocab_sizes = sizes.get("source_vocab_size"), sizes["target_vocab_size"]
        if options["shared_embeddings"] in ("all", "source") and len(set(vocab_sizes)) > 1:
            raise ValueError(
                "Transformer: source_vocab_size and target_vocab_size must be equal to share "
                f"embeddings; received {vocab_sizes[0]} and {vocab_sizes[1]}."
            )

    def _check_encoder(self, encoder):
        if not isinstance(encoder, Bert) or self.options["shared_embeddings"] in ("all", "source"):
            raise ValueError(
                "Transformer: encoder must be a Bert, with its own embeddings (shared_embeddings "
                f'"target" or "none"); received a {type(encoder).__name__} and '
                f"{self.options['shared_embeddings']!r}."
            )
        size, given = encoder.config["vocab_size"], self.sizes.get("source_vocab_size")
        if given != size:
            raise ValueError(
                f"Transformer: source_vocab_size must be the encoder's, {size}; received {given}."
            )

    @property
    def never_generated(self):
        return self.options["never_generated"]

    @property
    def position_limit(self):
        """The number of positions that have a vector; None where any has."""
        return self.sizes["max_length"] if self.options["positions"] == "learned" else None

    @property
    def state_entries(self):
        """Entries of the decoder's state, in order (see `seqkeras.decoding`)."""
        return [
            *self.decoder.cache_entries,
            *self.decoder.source_entries,
            StateEntry("source_mask", "source", ("source_length",), "bool"),
        ]

    def build(self, inputs_shape=None):
        sequence = (None, None, self.block_options["hidden_dim"])
        features = (self.source_features,) if self.source_features else ()
        of_source = (self.source_embedding, (None, None, *features))
        of_tokens = (self.target_embedding, self.output_embedding, self.positions)
        shapes = [of_source, (self.embedding_norm, sequence)]
        for layer, shape in (*shapes, *((layer, (None, None)) for layer in of_tokens)):
            if layer is not None:
                build_once(layer, shape)
        self.output_bias = None
        if self.options["output_bias"]:
            self.output_bias = self.add_weight(
                name="output_bias",
                shape=(self.sizes["target_vocab_size"],),
                initializer="zeros",
                autocast=False,  # float32, like logits
            )
        of_bert = isinstance(self.encoder, Bert)
        build_once(self.encoder, None if of_bert else sequence)
        encoded = (None, None, self.encoder.hidden_dim) if of_bert else sequence
        build_once(self.decoder, sequence, encoded)

    def call(self, inputs, training=False):
        self.require_inputs(inputs)
        source = (inputs[name] for name in self.source_names)
        encoded, mask = self._encode(*source, training)
        embedded = self._with_positions(self.target_embedding(inputs["target_ids"]))
        hidden = self.decoder(
            self.dropout(embedded, training=training),
            encoded,
            encoded_mask=mask,
            training=training,
        )  # (B, T, D)
        return self._logits(hidden)

    def encode(self, token_ids, lengths, max_length=None):
        """Return the decoder's initial state: a dictionary of the entries in `state_entries`.

        Args:
            token_ids: (B, S) integers, padded on the right; or frames, (B, S, source_features).
            lengths: (B,) integers, the real steps of each source.
            max_length: how many target tokens the cache has room for; None for the model's.

        Returns:
            Per-beam entries (B, 1, ...), one beam; per-source entries (B, ...).

        Raises:
            ValueError: if there are fewer learned positions, or the lengths do not fit
                the token_ids.
        """
        build_once(self)
        self.require_source(token_ids, lengths)
        cache_length = self.sizes["max_length"] if max_length is None else max_length
        if self.options["positions"] == "learned":
            require_positions(self, cache_length, self.sizes["max_length"])
        encoded, mask = self._encode(token_ids, lengths)
        return {
            **self.decoder.initial_cache(ops.shape(token_ids)[0], cache_length),
            **self.decoder.prepare(encoded),
            "source_mask": mask,
        }

    def _encode(self, token_ids, lengths, training=False):
        """Return the encoder's output (B, S, D), and the source's padding mask (B, S)."""
        mask = padding_mask(lengths, ops.shape(token_ids)[1])
        if isinstance(self.encoder, Bert):
            inputs = {"token_ids": token_ids, "lengths": lengths}
            training = training and self.encoder.trainable
            return self.encoder(inputs, training=training)["hidden"], mask
        embedded = self._with_positions(self.embed_source(token_ids, mask))
        embedded = self.dropout(embedded, training=training)
        return self.encoder(embedded, attention_mask=mask[:, None], training=training), mask

    def attention_weights(self, inputs):
        self.require_inputs(inputs)
        token_ids, lengths = (inputs[name] for name in self.source_names)
        encoded, mask = self._encode(token_ids, lengths)
        target = self._with_positions(self.target_embedding(inputs["target_ids"]))
        if isinstance(self.encoder, Bert):
            of_source = {"token_ids": token_ids, "lengths": lengths}
            weights = self.encoder.attention_weights(of_source)
        else:
            source = self._with_positions(self.embed_source(token_ids, mask))
            weights = {"encoder": self.encoder.attention_weights(source, mask[:, None])}
        return {
            **weights,
            **self.decoder.attention_weights(target, encoded, encoded_mask=mask),
        }

    def _with_positions(self, embedded):
        """Return (B, T, D) embeddings, from the first position on."""
        positions = ops.arange(ops.shape(embedded)[1])[None]
        return self._normed(add_positions(self.positions, embedded, positions))

    def _normed(self, embedded):
        return embedded if self.embedding_norm is None else self.embedding_norm(embedded)

    def step(self, token_ids, state):
        """Advance every beam by one token, the step contract of `seqkeras.decoding`.

        A search refuses more tokens than the cache has room for.

        Args:
            token_ids: (B, K) integers, the last token of each of K beams.
            state: the result of `encode`; per-beam entries (B, K, ...).

        Returns:
            (logits (B, K, V), attention weights (B, K, S)), and the new state. The logits are
            `BANNED_LOGIT` for what is never generated; the weights are the last block's, the mean
            of its heads.
        """
        (logits, heads), state = self._step(token_ids, state)
        return (logits, ops.mean(heads[-1], axis=1)[:, :, 0]), state

    def step_by_heads(self, token_ids, state):
        """Advance like `step`, with the weights (B, K, L, N, S) of each head of each block."""
        (logits, heads), state = self._step(token_ids, state)
        heads = ops.stack([weights[:, :, :, 0] for weights in heads], axis=1)  # (B, L, N, K, S)
        return (logits, ops.transpose(heads, (0, 3, 1, 2, 4))), state

    @property
    def attention_heads(self):
        """Numbers of layers that attend to the source, and of heads of each."""
        return self.num_layers, self.block_options["num_heads"]

    def _step(self, token_ids, state):
        """Return logits (B, K, V) and the list of the blocks' weights (B, N, K, 1, S), and the
        state."""
        embedded = self.target_embedding(token_ids[..., None])  # (B, K, 1, D)
        embedded = add_positions(self.positions, embedded, state["position"][..., None])
        embedded = self._normed(embedded)
        hidden, heads, state = self.decoder.read(embedded, state, state["source_mask"])
        logits = without(self._logits(hidden[:, :, 0]), self.never_generated)
        return (logits, heads), state

    def _logits(self, hidden):
        logits = self.output_embedding.logits(hidden)
        return logits if self.output_bias is None else logits + self.output_bias

    def get_config(self):
        return {
            **super().get_config(),
            "source_vocab_size": None,
            "source_features": self.source_features,
            "source_scaling": self.source_scaling,
            **self.sizes,
            **self.options,
            "num_layers": self.num_layers,
            **self.block_options,
            "encoder": serialize(self.encoder) if isinstance(self.encoder, Bert) else None,
        }

    @classmethod
    def from_config(cls, config):
        encoder = config.get("encoder")
        encoder = None if encoder is None else keras.saving.deserialize_keras_object(encoder)
        return cls(**{**config, "encoder": encoder})
