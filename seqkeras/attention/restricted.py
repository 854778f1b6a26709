"""Self-attention restricted to a window, in time and memory that grow linearly with length."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seqkeras import composites
from seqkeras.attention.checks import require_attention
from seqkeras.attention.multi_head import Heads
from seqkeras.masks import attended, combine_masks, prefix_mask, window_mask, with_padding
from seqkeras.shapes import require_mask, require_positive, require_sequence, require_steps
from seqkeras.values import is_symbol, without_padding


@keras.saving.register_keras_serializable("seqkeras")
class RestrictedSelfAttention(Heads):
    """Multi-head self-attention in which each position attends to the positions within a distance
    r.

        head(n) = attention(x W_Q(n), x W_K(n), x W_V(n)), position t attends to t - r ... t + r
        output = [head(1); ...; head(N)] W_O

    The sequence falls into blocks of r; each attends to itself and to its neighbours under a band
    mask, so no (T, T) tensor is made: time and memory are O(T r). The outputs are those of
    `MultiHeadAttention` under `window_mask(T, r, r)`; `get_weights` gives arrays of the same
    shapes in the same order. An attention_mask that differs from query to query is a (T, T) tensor
    already: under one the layer computes as `MultiHeadAttention` does.

    `extend` reads further tokens after a cache of the last P <= r, whose last place holds the last
    token: a step costs O(r), however many tokens came before it.

    Notation: N and H are the paper's h and d_k = d_v.

    Args:
        num_heads: N.
        head_dim: H, of queries, keys and values.
        window: r.
        output_dim: D of the output, or None for the dim of the sequence.
        use_bias: add biases to the projections, as the paper does not.
        dropout: dropout rate of the weights, in training.
        causal: attend to t - r ... t only.
        seed: seed of the dropout; None for another one in every process.
        relative_clip: see `MultiHeadAttention`.

    Call arguments:
        sequence: (B, T, ·).
        mask: (B, T) booleans, True for real positions, or None. The others are not attended to,
            and what they attend with is zeros.
        attention_mask: (B or 1, T or 1, T) booleans beside the window, True = may attend, or None.
        causal: as the argument of the layer, for this call; None for the layer's.
        distance_bias: a built `DistanceBias`, whose numbers are added to the scores, or None.
        prefix_lengths: (B,) integers, how many of a row's first tokens causal attention reads both
            ways, within r; None for none.

    Returns:
        (B, T, D); where a query may attend to nothing the heads are zero, and the output its bias.

    Raises:
        ValueError: if num_heads, head_dim, window or output_dim is not a positive integer, the
            sequence not of rank 3 or without a step, or a mask of another shape.

    Reference: Vaswani et al. 2017, section 4 and table 1, https://arxiv.org/abs/1706.03762

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import MultiHeadAttention, RestrictedSelfAttention, window_mask
        >>> layer, full = RestrictedSelfAttention(2, 4, window=1), MultiHeadAttention(2, 4)
        >>> x = np.arange(48.0).reshape(1, 6, 8) % 5
        >>> expected, _ = full(x, x, x, attention_mask=window_mask(6, 1, 1)), layer(x)
        >>> layer.set_weights(full.get_weights())
        >>> np.allclose(layer(x), expected, atol=1e-5)
        True
    """

    def __init__(self, num_heads: int, head_dim: int, window: int, **kwargs):
        super().__init__(num_heads, head_dim, **kwargs)
        require_positive(self, window=window)
        self.window = window

    def build(self, sequence_shape):
        require_sequence(self, sequence=sequence_shape)
        self._add_projections(*[sequence_shape[-1]] * 3)

    def call(
        self,
        sequence,
        mask=None,
        training=False,
        attention_mask=None,
        causal=None,
        distance_bias=None,
        prefix_lengths=None,
    ):
        causal = self.causal if causal is None else causal
        require_sequence(self, sequence=sequence.shape)
        require_steps(self, sequence=sequence)
        require_mask(self, mask, sequence.shape)
        require_attention(self, sequence, sequence, sequence, (attention_mask, *[None] * 3))
        (sequence,) = without_padding(mask, sequence)
        allowed = with_padding(attention_mask, mask)
        read = sequence
        if not composites.tracing_nodes():  # a graph for export holds numbers everywhere
            (read,) = without_padding(attended(attention_mask), sequence)
        query = self._project(sequence, self.query_kernel, self.query_bias)
        key = self._project(read, self.key_kernel, self.key_bias)
        value = self._project(read, self.value_kernel, self.value_bias)
        if allowed is None or allowed.shape[1] == 1:
            contexts = self._attend_in_blocks(
                query, key, value, allowed, causal, training, distance_bias, prefix_lengths
            )
        else:
            length = ops.shape(sequence)[1]
            near = combine_masks(self._near(length), allowed)
            if causal and prefix_lengths is not None:
                near, causal = combine_masks(near, prefix_mask(prefix_lengths, length)), False
            split = (self._split(tensor) for tensor in (query, key, value))
            contexts = self._attend(*split, near[:, None], causal, training, distance_bias)
            contexts = self._merge(contexts)
        return self._project_output(contexts)

    def attention_weights(self, sequence, attention_mask=None, causal=None, distance_bias=None):
        """Return (B, N, T, T) weights of every head, as a plot shows them."""
        query = self._split(self._project(sequence, self.query_kernel, self.query_bias))
        key = self._split(self._project(sequence, self.key_kernel, self.key_bias))
        near = combine_masks(self._near(ops.shape(sequence)[1]), attention_mask)
        causal = self.causal if causal is None else causal
        return self._weigh(query, key, near[:, None], causal, distance_bias)

    def _near(self, length):
        """Return (1, T, T) mask of the window."""
        return window_mask(length, self.window, self.window)

    def cache_shape(self):
        return (self.num_heads, "window_length", self.head_dim)

    def plan(self, positions, prefix_lengths, lengths, length, past):
        """Return the arguments of `extend`, which all layers of a stack share.

        A block of c = min(r, T) tokens attends to those up to r before it and to itself, and where
        there is a prefix to those after it.
        """
        size = _lower(self.window, length)
        before = _lower(self.window, past + length - 1)
        after = 0 if prefix_lengths is None else _lower(self.window, length - 1)
        missing = size - 1 - (length - 1) % size
        firsts = size * ops.arange((length + missing) // size)[:, None]  # (n, 1)
        keys = firsts + ops.arange(before + size + after)  # (n, S)
        distances = (before + ops.arange(size)[:, None] - keys[:1])[None]
        positions = ops.convert_to_tensor(positions)[:, None, None]
        places = positions + ops.cast(keys - before, positions.dtype)  # (B, n, S)
        near = self._near_in_blocks(distances, True, places, prefix_lengths)
        near = ops.logical_and(near, (places >= 0)[:, :, None])  # (B, n, c, S)
        blocks = Blocks(
            queries=firsts + ops.arange(size),
            keys=keys,
            zeros=(before - past, missing, after),
            distances=distances,
            near=ops.reshape(near, (-1, 1, *ops.shape(near)[2:])),
        )
        return {"blocks": blocks, "lengths": lengths}

    def extend(self, sequence, cache, blocks, lengths=None, distance_bias=None):
        """Attend from T further tokens, (B, T, ·), to these tokens and the earlier ones in the
        window.

        Args:
            sequence: (B, T, ·).
            cache: keys and values of the last P tokens, (B, N, P, H) each.
            blocks, lengths: as `plan` returned them.
            distance_bias: a built `DistanceBias`, or None.

        Returns:
            (B, T, D), and the list of the new cached keys and values.
        """
        query, *further = (self._split(part) for part in self._project_to_parts(sequence))
        batch_size, length = ops.shape(sequence)[:2]
        first, missing, after = blocks.zeros
        end = first + ops.shape(cache[0])[2] + length
        whole = [
            _between_zeros([past, present], first, missing + after)
            for past, present in zip(cache, further, strict=True)
        ]  # (B, N, S, H) keys and values
        contexts = self._attend(
            _pieces(_between_zeros([query], 0, missing), blocks.queries),
            *(_pieces(tensor, blocks.keys) for tensor in whole),
            blocks.near,
            causal=False,
            training=False,
            distance_bias=distance_bias,
            distances=blocks.distances,
        )  # (B n, N, c, H)
        contexts = ops.reshape(
            self._merge(contexts), (batch_size, -1, self.num_heads * self.head_dim)
        )
        if lengths is None:  # a cache that is no longer than what was read grows to the window
            kept = _lower(self.window, end - first)
            cache = [tensor[:, :, end - kept : end] for tensor in whole]
        else:
            places = first + ops.cast(lengths, "int32")[:, None] + ops.arange(self.window)
            cache = [
                ops.take_along_axis(tensor, places[:, None, :, None], axis=2) for tensor in whole
            ]
        return self._project_output(contexts[:, :length]), cache

    def _attend_in_blocks(
        self, query, key, value, allowed, causal, training, distance_bias, prefix_lengths
    ):
        """Return (B, T, N H) contexts of projected tensors; allowed: (B or 1, 1, T) or None."""
        batch_size, length = ops.shape(query)[:2]
        if is_symbol(length):
            return query
        real = ops.ones((batch_size, length), "bool")
        real = real if allowed is None else ops.logical_and(real, allowed[:, 0])
        # A block no longer than the sequence: a window beyond it sees everything.
        size = _lower(self.window, length)
        blocks = [_blocks(tensor, size) for tensor in (query, key, value, real[..., None])]
        only_before = causal and prefix_lengths is None
        near = [_with_neighbours(tensor, only_before) for tensor in blocks[1:]]
        query, key, value, real = (_fold(tensor) for tensor in (blocks[0], *near))
        distances = _distances_in_blocks(size, only_before)
        places = size * ops.arange(ops.shape(blocks[0])[1])[:, None] - distances[:, 0]  # (n, 3r)
        near = self._near_in_blocks(distances, causal, places[None], prefix_lengths)
        contexts = self._attend(
            self._split(query),
            self._split(key),
            self._split(value),
            ops.logical_and(
                ops.reshape(near, (-1, 1, *ops.shape(near)[-2:])), real[:, None, None, :, 0]
            ),  # (B n, 1, r, 2r or 3r)
            causal=False,
            training=training,
            distance_bias=distance_bias,
            distances=distances,
        )  # (B n, N, r, H)
        contexts = ops.reshape(
            self._merge(contexts), (batch_size, -1, self.num_heads * self.head_dim)
        )
        return contexts[:, :length]

    def _near_in_blocks(self, distances, causal, places, prefix_lengths):
        """Return (1, c, S) mask, with a prefix (B, n, c, S): what the c queries of a block may
        attend to.

        Args:
            distances: (1, c, S) integers, query minus key.
            causal: whether a query sees later keys in the prefix alone.
            places: (B or 1, n, S) integers, the position of each key of a block in its row.
            prefix_lengths: (B,) integers, or None.
        """
        back = 0 if causal and prefix_lengths is None else self.window
        near = ops.logical_and(distances <= self.window, distances >= -back)
        if not causal or prefix_lengths is None:
            return near
        prefix = places < ops.cast(prefix_lengths, places.dtype)[:, None, None]  # (B, n, S)
        return ops.logical_and(near, ops.logical_or(distances >= 0, prefix[:, :, None]))

    def compute_output_shape(self, sequence_shape):
        output_dim = sequence_shape[-1] if self.output_dim is None else self.output_dim
        return (*sequence_shape[:-1], output_dim)


class Blocks(NamedTuple):
    """What each of n blocks of further tokens attends to.

    Args:
        queries: (n, c) integers, places of the tokens.
        keys: (n, S) integers, places of cache and tokens between zeros.
        zeros: numbers of zeros before the cache; that fill the last block; and after it.
        distances: (1, c, S) integers, query minus key.
        near: (B n, 1, c, S) booleans, True = may attend.
    """

    queries: Any
    keys: Any
    zeros: tuple[Any, Any, Any]
    distances: Any
    near: Any


def _between_zeros(tensors, before, after):
    """Join (B, N, ·, H) tensors, with so many zeros before and behind."""
    batch_size, num_heads, _, head_dim = ops.shape(tensors[-1])
    zeros = [
        ops.zeros((batch_size, num_heads, missing, head_dim), tensors[-1].dtype)
        for missing in (before, after)
    ]
    return ops.concatenate([zeros[0], *map(ops.convert_to_tensor, tensors), zeros[1]], axis=2)


def _pieces(sequence, places):
    """Map (B, N, S, H) to (B n, N, c, H): for each of n blocks its (n, c) places."""
    pieces = ops.transpose(ops.take(sequence, places, axis=2), (0, 2, 1, 3, 4))
    return ops.reshape(pieces, (-1, *ops.shape(pieces)[2:]))


def _distances_in_blocks(size, causal):
    """Return (1, r, 2r or 3r) integers: how far before each query of a block of that size the keys
    of the block and its neighbours are."""
    num_keys = (2 if causal else 3) * size
    return (ops.arange(size)[:, None] + size - ops.arange(num_keys)[None])[None]


def _blocks(sequence, size):
    """Map (B, T, ·) to (B, n, r, ·), blocks of that size, the last one filled with zeros."""
    batch_size, length, dim = ops.shape(sequence)
    missing = size - 1 - (length - 1) % size
    padded = ops.concatenate(
        [sequence, ops.zeros((batch_size, missing, dim), sequence.dtype)], axis=1
    )
    return ops.reshape(padded, (batch_size, -1, size, dim))


def _with_neighbours(blocks, causal):
    """Map (B, n, r, ·) to (B, n, 3r, ·): each after the one before it, and before the next."""
    before = ops.concatenate([ops.zeros_like(blocks[:, :1]), blocks[:, :-1]], axis=1)
    if causal:
        return ops.concatenate([before, blocks], axis=2)
    after = ops.concatenate([blocks[:, 1:], ops.zeros_like(blocks[:, :1])], axis=1)
    return ops.concatenate([before, blocks, after], axis=2)


def _lower(window, length):
    """Return the lower one of a number and a number or scalar tensor."""
    return (ops.minimum if ops.is_tensor(length) else min)(window, length)


def _fold(blocks):
    """Map (B, n, r, ·) to (B n, r, ·): every block becomes a row."""
    return ops.reshape(blocks, (-1, *ops.shape(blocks)[2:]))
