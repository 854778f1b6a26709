"""Transformer decoder: all at once, or a token at a time with a key/value cache."""

import keras
from keras import ops

from seqkeras.decoding import StateEntry
from seqkeras.transformer.block import Block
from seqkeras.transformer.stack import BlockStack
from seqkeras.values import build_once, known_numbers


@keras.saving.register_keras_serializable("seqkeras")
class DecoderBlock(Block):
    """One block of a decoder; without cross-attention, of a language model.

        post-norm (the paper's):
        a = norm(x + dropout(attention(x, x, x))), where no position attends to a later one
        c = norm(a + dropout(cross_attention(a, encoded, encoded)))
        y = norm(c + dropout(feed_forward(c)))

        pre-norm: x + dropout(sublayer(norm(x))) instead of each norm(x + dropout(sublayer(x)))

    Args:
        hidden_dim, num_heads, feed_forward_dim, activation, pre_norm: see `EncoderBlock`.
        cross_attention: whether there is an encoder to attend to.
        options: the other arguments of `EncoderBlock`: dropout, attention_dropout,
            activation_dropout, epsilon, residual_stddev, attention_window, relative_clip, norm,
            use_bias, gated, head_dim.

    Call arguments:
        sequence: (B, T, D). What padding holds changes nothing elsewhere, but a NaN there would
            reach the gradients of the weights.
        encoded: (B, S, ·) what the encoder gave; None without cross-attention.
        attention_mask: (B or 1, T or 1, T) booleans beside causality, True = may attend, or None.
        encoded_mask: (B, S) booleans, True for real positions of the source, or None.
        causal: False lets the attention_mask alone say what a position may attend to, as the mask
            of a prefix or a permutation does.
        prefix_lengths: (B,) integers, how many of a row's first tokens all attend to each other
            within the attention_window; None for none, and without a window.
        distance_bias: a built `DistanceBias`, whose numbers are added to the scores, or None.

    A mask that Keras carries along, as after `Embedding(mask_zero=True)`, is padding too, and is
    passed on.

    Returns:
        (B, T, D).

    Raises:
        ValueError: if num_heads does not divide hidden_dim, the activation is unknown, the sequence
            has another width, or encoded is missing or has no use.

    Reference: Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762; without
    cross-attention: Radford et al. 2018, section 3.1

    Example:
        >>> import numpy as np
        >>> from seqkeras.transformer import DecoderBlock
        >>> block = DecoderBlock(8, 2, 16)
        >>> sequence, encoded = np.ones((2, 3, 8)), np.ones((2, 5, 4))
        >>> tuple(block(sequence, encoded).shape)
        (2, 3, 8)
        >>> tuple(block.cross_attention_weights(sequence, encoded).shape)
        (2, 2, 3, 5)
    """

    causal = True

    def __init__(
        self,
        hidden_dim: int,
        num_heads: int,
        feed_forward_dim: int,
        activation: str = "relu",
        pre_norm: bool = False,
        cross_attention: bool = True,
        **options,
    ):
        super().__init__(hidden_dim, num_heads, feed_forward_dim, activation, pre_norm, **options)
        self.cross_attention = self.cross_norm = None
        if cross_attention:
            self.cross_attention = self._make_attention("cross_attention")
            self.cross_norm = self.make_norm(name="cross_norm")

    def build(self, sequence_shape, encoded_shape=None):
        self._require_width(sequence_shape)
        if (encoded_shape is None) != (self.cross_attention is None):
            raise ValueError(
                "DecoderBlock: encoded must be given with cross_attention, and only then; "
                f"received shape {encoded_shape}."
            )
        self._build_shared(sequence_shape)
        if self.cross_attention is not None:
            build_once(self.cross_attention, sequence_shape, encoded_shape, encoded_shape)
            build_once(self.cross_norm, sequence_shape)

    def call(
        self,
        sequence,
        encoded=None,
        attention_mask=None,
        encoded_mask=None,
        training=False,
        causal=True,
        distance_bias=None,
        **prefix_lengths,
    ):
        x = self._attend_to_itself(
            sequence, attention_mask, training, causal, distance_bias, **prefix_lengths
        )
        if self.cross_attention is not None:
            h = self._enter(self.cross_norm, x)
            mask = None if encoded_mask is None else encoded_mask[:, None]
            y = self.cross_attention(h, encoded, encoded, attention_mask=mask, training=training)
            x = self._leave(self.cross_norm, x, y, training)
        return self._feed(x, training)

    def cross_attention_weights(
        self,
        sequence,
        encoded,
        attention_mask=None,
        encoded_mask=None,
        causal=True,
        distance_bias=None,
    ):
        """Return (B, N, T, S): how much each head attends to the source; the arguments are the
        call's."""
        x = self._attend_to_itself(sequence, attention_mask, False, causal, distance_bias)
        h = self._enter(self.cross_norm, x)
        mask = None if encoded_mask is None else encoded_mask[:, None]
        return self.cross_attention.attention_weights(h, encoded, mask)

    def read(
        self,
        sequence,
        cache,
        plan,
        prepared=None,
        encoded_mask=None,
        distance_bias=None,
    ):
        """Read T further tokens of each of K beams.

        Args:
            sequence: (B, K, T, D).
            cache: keys and values of the self-attention, (B, K, N, C, H) or (B K, N, C, H) each.
            plan: as `plan` of the self-attention returned it for (B K) rows.
            prepared: keys and values of the source, (B, N, S, H) each, which all beams share; None
                without cross-attention.
            encoded_mask: (B, S) booleans, True for real positions of the source, or None.
            distance_bias: see the call.

        Returns:
            (B, K, T, D); the (B, N, K, T, S) attention of each head to the source, or None; and the
            new cache.
        """
        beams = ops.shape(sequence)[:3]
        x = ops.reshape(sequence, (-1, beams[2], self.hidden_dim))  # (BK, T, D)
        x, cache = self._read_self(x, cache, plan, distance_bias)
        weights = None
        if self.cross_attention is not None:
            h = ops.reshape(
                self._enter(self.cross_norm, x), (beams[0], -1, self.hidden_dim)
            )  # (B, KT, D): each beam is some query positions
            mask = None if encoded_mask is None else encoded_mask[:, None]
            y = self.cross_attention.attend(h, *prepared, attention_mask=mask)
            weights = self.cross_attention.weigh(h, prepared[0], mask)  # (B, N, KT, S)
            shape = (beams[0], self.num_heads, *beams[1:], ops.shape(weights)[-1])
            weights = ops.reshape(weights, shape)
            x = self._leave(self.cross_norm, x, ops.reshape(y, ops.shape(x)))
        return ops.reshape(self._feed(x), (*beams, self.hidden_dim)), weights, cache

    def _read_self(self, x, cache, plan, distance_bias):
        h = self._enter(self.attention_norm, x)
        rows = [_rows(tensor) for tensor in cache]  # (BK, N, C, H)
        y, rows = self.attention.extend(h, rows, **plan, distance_bias=distance_bias)
        cache = [
            tensor if len(old.shape) == 4 else ops.reshape(tensor, ops.shape(old))
            for tensor, old in zip(rows, cache, strict=True)
        ]
        return self._leave(self.attention_norm, x, y), cache

    def get_config(self):
        return {**super().get_config(), "cross_attention": self.cross_attention is not None}


def _rows(cache):
    """Map (B, K, N, C, H), or as it is where beams are rows already, to (BK, N, C, H)."""
    return cache if len(cache.shape) == 4 else ops.reshape(cache, (-1, *ops.shape(cache)[2:]))


@keras.saving.register_keras_serializable("seqkeras")
class Decoder(BlockStack):
    """Decoder blocks on top of each other; pre-norm blocks end with one more normalisation.

        x_l = block_l(x_{l-1}, encoded)        y = x_L, or norm(x_L)

        Decoder(DecoderBlock(512, 8, 2048, dropout=0.1), 6)

    `read` is the same with a cache, some tokens at a time.

    Args:
        block: a `DecoderBlock`, the first one; the others are made from its config.
        num_layers: L.
        distance_bias: a `DistanceBias` that self-attention of all blocks shares, as in T5, or None.

    Call arguments:
        sequence, encoded, attention_mask, encoded_mask, causal, prefix_lengths: see `DecoderBlock`.

    Returns:
        (B, T, D).

    Raises:
        ValueError: if num_layers is not positive, block is no `DecoderBlock`, the sequence has
            another width, or encoded is missing or has no use.

    Reference: Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.transformer import Decoder, DecoderBlock
        >>> decoder = Decoder(DecoderBlock(8, 2, 16, cross_attention=False), num_layers=2)
        >>> x = np.arange(48.0, dtype="float32").reshape(2, 3, 8) % 5
        >>> expected = decoder(x)
        >>> first, _, state = decoder.read(x[:, None, :2], decoder.initial_cache(2, cache_length=8))
        >>> last, _, state = decoder.read(x[:, None, 2:], state)  # one more token, by the cache
        >>> np.allclose(last[:, 0], expected[:, 2:], atol=1e-5)
        True
    """

    block_class = DecoderBlock

    def build(self, sequence_shape, encoded_shape=None):
        self._build_blocks(sequence_shape, encoded_shape)

    def call(
        self,
        sequence,
        encoded=None,
        attention_mask=None,
        encoded_mask=None,
        training=False,
        causal=True,
        **prefix_lengths,
    ):
        for block in self.blocks:
            sequence = block(
                sequence,
                encoded=encoded,
                attention_mask=attention_mask,
                encoded_mask=encoded_mask,
                training=training,
                causal=causal,
                distance_bias=self.distance_bias,
                **prefix_lengths,
            )
        return self._normalise(sequence)

    def attention_weights(
        self, sequence, encoded=None, attention_mask=None, encoded_mask=None, causal=True
    ):
        """Return how much each head of each block attends; the arguments are the call's.

        Returns:
            A dictionary of "decoder", (B, L, N, T, T), and with cross-attention "cross", (B, L, N,
            T, S).
        """
        layers = {"decoder": [], "cross": []}
        options = {"attention_mask": attention_mask, "causal": causal}
        options["distance_bias"] = self.distance_bias
        cross_options = {"encoded_mask": encoded_mask, **options}
        for block in self.blocks:
            layers["decoder"].append(block.self_attention_weights(sequence, **options))
            if encoded is not None:
                layers["cross"].append(
                    block.cross_attention_weights(sequence, encoded, **cross_options)
                )
            sequence = block(sequence, encoded=encoded, **cross_options)
        return {name: ops.stack(tensors, axis=1) for name, tensors in layers.items() if tensors}

    @property
    def cache_entries(self):
        """Entries of `initial_cache`: keys and values of each block, and the number of tokens."""
        shape = self.blocks[0].attention.cache_shape()
        names = [
            f"{part}_{level}" for level in range(len(self.blocks)) for part in ("key", "value")
        ]
        caches = [StateEntry(name, "beam", shape, self.compute_dtype) for name in names]
        return [StateEntry("position", "beam", (), "int32"), *caches]

    @property
    def source_entries(self):
        """Entries of `prepare`: keys and values of the source, for each block."""
        block = self.blocks[0]
        shape = (block.num_heads, "source_length", block.head_dim)
        return [
            StateEntry(f"source_{part}_{level}", "source", shape, self.compute_dtype)
            for level in range(len(self.blocks))
            for part in ("key", "value")
        ]

    def initial_cache(self, batch_size, cache_length):
        """Return the state of `cache_entries` before any token, for one beam."""
        window = self.blocks[0].attention_window
        lengths = {"cache_length": cache_length, "window_length": window}
        return {
            entry.name: ops.zeros(
                (
                    batch_size,
                    1,
                    *(lengths.get(size, size) for size in entry.shape),
                ),
                entry.dtype,
            )
            for entry in self.cache_entries
        }

    def prepare(self, encoded):
        """Return the state of `source_entries`: the source's keys and values, projected once."""
        projected = [
            tensor
            for block in self.blocks
            for tensor in block.cross_attention.prepare(encoded, encoded)
        ]
        return {
            entry.name: tensor for entry, tensor in zip(self.source_entries, projected, strict=True)
        }

    def read(self, sequence, state, encoded_mask=None, lengths=None, prefix_lengths=None):
        """Read T further tokens of each of K beams.

        Args:
            sequence: (B, K, T, D).
            state: entries of `cache_entries`, and with cross-attention of `source_entries`. Keys
                and values may come with their beams as rows, (B K, N, C, H), and leave so.
            encoded_mask: (B, S) booleans, True for real positions of the source, or None.
            lengths: (B, K) integers, how many of the T tokens are real; None for all.
            prefix_lengths: (B, K) integers, how many of the first tokens of all, T at most, attend
                to each other; None for none.

        Returns:
            (B, K, T, D); a list of each block's (B, N, K, T, S) attention to the source, empty
            without cross-attention; and the new state.

        Raises:
            ValueError: if the cache is full; in a traced graph, where that is not known, tokens
                that do not fit are not kept.
        """
        positions, after, attended = state["position"], dict(state), []
        attention = self.blocks[0].attention
        if "cache_length" in attention.cache_shape():
            self._require_room(positions, sequence.shape[2], state["key_0"].shape[-2])
        plan = attention.plan(
            *(
                None if counts is None else ops.reshape(counts, (-1,))
                for counts in (positions, prefix_lengths, lengths)
            ),
            ops.shape(sequence)[2],
            ops.shape(state["key_0"])[-2],
        )
        for level, block in enumerate(self.blocks):
            names = f"key_{level}", f"value_{level}"
            prepared = None
            if block.cross_attention is not None:
                prepared = [state[f"source_{name}"] for name in names]
            cache = [state[name] for name in names]
            sequence, weights, cache = block.read(
                sequence, cache, plan, prepared, encoded_mask, self.distance_bias
            )
            after |= dict(zip(names, cache, strict=True))
            attended += [] if weights is None else [weights]
        sequence = self._normalise(sequence)
        taken = ops.shape(sequence)[2] if lengths is None else ops.cast(lengths, "int32")
        after["position"] = positions + taken
        return sequence, attended, after

    def _require_room(self, positions, length, cache_length):
        known = known_numbers(positions)
        if None in (length, cache_length) or known is None:
            return
        if known.size and known.max() + length > cache_length:
            raise ValueError(
                f"{type(self).__name__}: the cache must have room for every token; it has "
                f"{cache_length} places, and received {length} tokens after {known.max()}."
            )
