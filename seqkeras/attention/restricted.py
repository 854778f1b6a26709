"""Self-attention restricted to a window, in time and memory that grow linearly with length."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.attention.checks import require_attention
from seqkeras.attention.multi_head import Heads
from seqkeras.masks import attended, combine_masks, window_mask, with_padding
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
    `MultiHeadAttention` under `window_mask(T, r, r)`, and the weights are laid out as there. An
    attention_mask that differs from query to query is a (T, T) tensor already: under one the layer
    computes as `MultiHeadAttention` does.

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

    Returns:
        (B, T, D); where a query may attend to nothing the heads are zero, and the output its bias.

    Raises:
        ValueError: if num_heads, head_dim, window or output_dim is not a positive integer, the
            sequence not of rank 3 or without a step, or a mask of another shape.

    Reference: Vaswani et al. 2017, section 4 and table 1, https://arxiv.org/abs/1706.03762
    """

    def __init__(self, num_heads, head_dim, window, **kwargs):
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
                query, key, value, allowed, causal, training, distance_bias
            )
        else:
            near = combine_masks(self._near(ops.shape(sequence)[1]), allowed)[:, None]
            split = (self._split(tensor) for tensor in (query, key, value))
            contexts = self._merge(self._attend(*split, near, causal, training, distance_bias))
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

    def _attend_in_blocks(self, query, key, value, allowed, causal, training, distance_bias):
        """Return (B, T, N H) contexts of projected tensors; allowed: (B or 1, 1, T) or None."""
        batch_size, length = ops.shape(query)[:2]
        if is_symbol(length):
            return query
        real = ops.ones((batch_size, length), "bool")
        real = real if allowed is None else ops.logical_and(real, allowed[:, 0])
        # A block no longer than the sequence: a window beyond it sees everything.
        size = (ops.minimum if ops.is_tensor(length) else min)(self.window, length)
        blocks = [_blocks(tensor, size) for tensor in (query, key, value, real[..., None])]
        near = [_with_neighbours(tensor, causal) for tensor in blocks[1:]]
        query, key, value, real = (_fold(tensor) for tensor in (blocks[0], *near))
        distances = _distances_in_blocks(size, causal)
        contexts = self._attend(
            self._split(query),
            self._split(key),
            self._split(value),
            ops.logical_and(
                self._band(distances, causal), real[:, None, None, :, 0]
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

    def _band(self, distances, causal):
        """Return (1, r, 2r or 3r) mask: what is within the window of each query of a block."""
        return ops.logical_and(
            distances <= self.window, distances >= (0 if causal else -self.window)
        )

    def compute_output_shape(self, sequence_shape):
        output_dim = sequence_shape[-1] if self.output_dim is None else self.output_dim
        return (*sequence_shape[:-1], output_dim)


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


def _fold(blocks):
    """Map (B, n, r, ·) to (B n, r, ·): every block becomes a row."""
    return ops.reshape(blocks, (-1, *ops.shape(blocks)[2:]))
