"""Multi-head attention: several scaled dot-product attentions side by side."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.attention.checks import require_attention
from seqkeras.masks import attended, distances_between, with_padding
from seqkeras.shapes import require_positive, require_sequence
from seqkeras.values import normal_or_glorot, without_padding


class Heads(keras.layers.Layer):
    """Base of the attentions with several heads: their projections, and attention between them.

    The weights are those of `keras.layers.MultiHeadAttention`, in its order: kernel (·, N, H) and
    bias (N, H) of query, key and value, then kernel (N, H, D) and bias (D,) of the output.

    Args:
        num_heads: N.
        head_dim: H, of queries, keys and values.
        output_dim: D of the output, or None for the dim of the query.
        use_bias: add biases to the projections.
        dropout: dropout rate of the weights, in training.
        causal: attend to no later position.
        seed: seed of the dropout; None for another one in every process.
        output_stddev: standard deviation of the normal numbers that the output's kernel starts as;
            None for Glorot's uniform ones.
        relative_clip: K, the furthest distance that has vectors a_K and a_V; None for no vectors.

    Raises:
        ValueError: if num_heads, head_dim, output_dim or relative_clip is not a positive integer.
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        output_dim: int | None = None,
        use_bias: bool = True,
        dropout: float = 0.0,
        causal: bool = False,
        seed: int | None = None,
        output_stddev: float | None = None,
        relative_clip: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(self, num_heads=num_heads, head_dim=head_dim)
        for name, size in (("output_dim", output_dim), ("relative_clip", relative_clip)):
            if size is not None:
                require_positive(self, **{name: size})
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.output_dim = output_dim
        self.use_bias = use_bias
        self.dropout = dropout
        self.causal = causal
        self.seed = seed
        self.output_stddev = output_stddev
        self.relative_clip = relative_clip
        self.relative_keys = self.relative_values = None
        self.supports_masking = True
        self.weights_dropout = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def prepare(self, key, value):
        """Return projected keys and values, (B, N, S, H) each: what a decoder computes once, or
        caches."""
        return (
            self._split(self._project(key, self.key_kernel, self.key_bias)),
            self._split(self._project(value, self.value_kernel, self.value_bias)),
        )

    def cache_shape(self):
        """Return the shape of the cached keys, and values, of a row; see `StateEntry`."""
        return (self.num_heads, "cache_length", self.head_dim)

    def plan(self, positions, prefix_lengths, lengths, length, past):
        """Return the arguments of `extend`, which all layers of a stack share.

        Args:
            positions: (B,) integers, how many tokens each row has read.
            prefix_lengths: (B,) integers, or None; see `composites.cached_attention`.
            lengths: (B,) integers, how many of the further tokens are real; None for all. A cache
                of all tokens keeps padding until the next tokens overwrite it.
            length: T, the number of further tokens.
            past: the number of places of the cache.
        """
        return {"positions": positions, "prefix_lengths": prefix_lengths}

    def extend(self, sequence, cache, positions, prefix_lengths=None, distance_bias=None):
        """Attend from T further tokens, (B, T, ·), to these tokens and the earlier ones.

        Args:
            sequence: (B, T, ·).
            cache: the keys and values of earlier tokens; see `composites.cached_attention`.
            positions: (B,) integers, how many places of the cache each row has filled.
            prefix_lengths: (B,) integers, or None; see `composites.cached_attention`.
            distance_bias: a built `DistanceBias`, or None.

        Returns:
            (B, T, D), and the list of the new cached keys and values.
        """
        query = self._split(self._project(sequence, self.query_kernel, self.query_bias))
        further = self.prepare(sequence, sequence)
        contexts, *cache = composites.cached_attention(
            query,
            *further,
            *cache,
            positions,
            prefix_lengths,
            *self._tables(distance_bias),
        )
        return self._project_output(self._merge(contexts)), cache

    def _add_projections(self, query_dim, key_dim, value_dim):
        heads = (self.num_heads, self.head_dim)
        output_dim = query_dim if self.output_dim is None else self.output_dim
        self.query_kernel, self.query_bias = self._add_projection("query", (query_dim, *heads), 1)
        self.key_kernel, self.key_bias = self._add_projection("key", (key_dim, *heads), 1)
        self.value_kernel, self.value_bias = self._add_projection("value", (value_dim, *heads), 1)
        self.output_kernel, self.output_bias = self._add_projection(
            "output", (*heads, output_dim), 2, normal_or_glorot(self.output_stddev)
        )
        if self.relative_clip is not None:
            shape = (2 * self.relative_clip + 1, self.head_dim)
            self.relative_keys = self.add_weight(name="relative_keys", shape=shape)
            self.relative_values = self.add_weight(name="relative_values", shape=shape)

    def _add_projection(self, name, shape, bias_axis, initializer="glorot_uniform"):
        kernel = self.add_weight(name=f"{name}_kernel", shape=shape, initializer=initializer)
        if not self.use_bias:
            return kernel, None
        bias = self.add_weight(name=f"{name}_bias", shape=shape[bias_axis:], initializer="zeros")
        return kernel, bias

    def _project(self, inputs, kernel, bias):
        """Map (B, T, ·) to (B, T, N H)."""
        kernel = ops.reshape(self._cast(kernel), (kernel.shape[0], -1))
        outputs = ops.matmul(self._cast(inputs), kernel)
        return outputs if bias is None else outputs + ops.reshape(self._cast(bias), (-1,))

    def _project_to_parts(self, sequence):
        """Return query, key and value (B, T, N H) of one sequence; in a graph for export, where
        weights are joined once for all, by one product."""
        kernels = [self.query_kernel, self.key_kernel, self.value_kernel]
        biases = [self.query_bias, self.key_bias, self.value_bias]
        if not composites.tracing_nodes():
            return [self._project(sequence, *weights) for weights in zip(kernels, biases)]
        bias = ops.concatenate(biases, axis=0) if self.use_bias else None
        return ops.split(
            self._project(sequence, ops.concatenate(kernels, axis=1), bias), 3, axis=-1
        )

    def _project_output(self, contexts):
        """Map (B, T, N H) to (B, T, D)."""
        kernel = self._cast(self.output_kernel)
        outputs = ops.matmul(contexts, ops.reshape(kernel, (-1, kernel.shape[-1])))
        return outputs if self.output_bias is None else outputs + self._cast(self.output_bias)

    def _cast(self, tensor):
        """Cast inputs or a weight to the dtype of computation, as Keras does in `call` but not in
        `prepare`."""
        return ops.cast(tensor, self.compute_dtype)

    def _split(self, projected):
        """Map (B, T, N H) to (B, N, T, H)."""
        shape = (*ops.shape(projected)[:2], self.num_heads, self.head_dim)
        return ops.transpose(ops.reshape(projected, shape), (0, 2, 1, 3))

    def _merge(self, contexts):
        """Map (B, N, T, H) to (B, T, N H)."""
        batch_size, _, length, _ = ops.shape(contexts)
        shape = (batch_size, length, self.num_heads * self.head_dim)
        return ops.reshape(ops.transpose(contexts, (0, 2, 1, 3)), shape)

    def _tables(self, distance_bias):
        """Return tables by distance, each of them or None: of a `DistanceBias`, a_K and a_V."""
        tables = self.relative_keys, self.relative_values
        return [
            None if distance_bias is None else distance_bias.table(),
            *(None if table is None else self._cast(table) for table in tables),
        ]

    def _attend(
        self, query, key, value, mask, causal, training, distance_bias=None, distances=None
    ):
        """Return (B, N, T, H) contexts of projected queries, keys and values.

        Args:
            distances: (1, T, S) integers, query minus key; None where the last query stands at the
                last key.
        """
        *of_scores, relative_values = self._tables(distance_bias)
        if distances is None and any(table is not None for table in of_scores):
            distances = distances_between(ops.shape(query)[2], ops.shape(key)[2])
        bias = composites.distance_scores(query, distances, *of_scores)
        if relative_values is None and not (training and self.dropout):
            return composites.attention(query, key, value, mask, bias, causal=causal)
        weights = composites.attention_weights(query, key, mask, bias, causal=causal)
        weights = self.weights_dropout(weights, training=training)
        contexts = ops.matmul(weights, value)
        if relative_values is None:
            return contexts
        return contexts + composites.relative_contexts(weights, distances, relative_values)

    def _weigh(self, query, key, mask, causal, distance_bias=None, distances=None):
        """Return (B, N, T, S) weights of projected queries and keys; see `_attend`."""
        if distances is None:
            distances = distances_between(ops.shape(query)[2], ops.shape(key)[2])
        bias = composites.distance_scores(query, distances, *self._tables(distance_bias)[:2])
        return composites.attention_weights(query, key, mask, bias, causal=causal)


@keras.saving.register_keras_serializable("seqkeras")
class MultiHeadAttention(Heads):
    """Multi-head attention.

        head(n) = attention(query W_Q(n), key W_K(n), value W_V(n))
        output = [head(1); ...; head(N)] W_O

    attention is the scaled dot product of `seqkeras.composites.attention`. The weights are those of
    `keras.layers.MultiHeadAttention`, in its order: kernel (·, N, H) and bias (N, H) of query, key
    and value, then kernel (N, H, D) and bias (D,) of the output; `set_weights(other.get_weights())`
    copies them both ways.

    With relative_clip K, the distance d = s - t of key s from query t counts, and all heads share

        a_K(max(-K, min(d, K))), added to the key, and a_V(max(-K, min(d, K))), added to the value

    (Shaw et al. 2018, equations 3 and 4); the distance_bias of a call is added to the scores.

    Notation: N and H are the paper's h and d_k = d_v.

    Args:
        num_heads: N.
        head_dim: H, of queries, keys and values.
        output_dim: D of the output, or None for the dim of the query.
        use_bias: add biases to the projections, as the paper does not.
        dropout: dropout rate of the weights, in training.
        causal: attend to no later position; the last query stands at the last key.
        seed: seed of the dropout; None for another one in every process.
        output_stddev: standard deviation of the normal numbers that the output's kernel starts as;
            None for Glorot's uniform ones.
        relative_clip: K, the furthest distance that has vectors of its own; None for no vectors.

    Call arguments:
        query: (B, T, ·).
        key: (B, S, ·).
        value: (B, S, ·); it and the key may hold anything where no query may attend.
        attention_mask: (B or 1, T or 1, S) or (B or 1, N or 1, T or 1, S) booleans, True = may
            attend, or None.
        query_mask, key_mask, value_mask: (B, T), (B, S) and (B, S) booleans, True for real steps,
            or None. Keras fills them in where a tensor carries a mask along, as one after
            `Embedding(mask_zero=True)` does, and passes the query's on.
        causal: as the argument of the layer, for this call; None for the layer's.
        distance_bias: a built `DistanceBias`, whose numbers are added to the scores, or None.

    Returns:
        (B, T, D), zero where the query is masked; where it may attend to nothing the heads are
        zero, and the output its bias.

    Raises:
        ValueError: if num_heads, head_dim or output_dim is not a positive integer, query, key or
            value is not of rank 3, or a mask is not of the shape above.

    Reference: Vaswani et al. 2017, section 3.2.2, https://arxiv.org/abs/1706.03762; relative_clip:
    Shaw et al. 2018, section 3, https://arxiv.org/abs/1803.02155

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import MultiHeadAttention
        >>> layer, x = MultiHeadAttention(num_heads=2, head_dim=4, causal=True), np.ones((1, 3, 8))
        >>> tuple(layer(x, x, x).shape)
        (1, 3, 8)
        >>> ops.convert_to_numpy(layer.attention_weights(x, x))[0, 0, 1].tolist()  # head 0, t = 1
        [0.5, 0.5, 0.0]
    """

    def build(self, query_shape, key_shape, value_shape):
        require_sequence(self, query=query_shape, key=key_shape, value=value_shape)
        self._add_projections(query_shape[-1], key_shape[-1], value_shape[-1])

    def call(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=False,
        query_mask=None,
        key_mask=None,
        value_mask=None,
        causal=None,
        distance_bias=None,
    ):
        masks = attention_mask, query_mask, key_mask, value_mask
        require_attention(self, query, key, value, masks, self.num_heads)
        mask = self._mask_of_heads(with_padding(attention_mask, key_mask, value_mask))
        if not composites.tracing_nodes():  # a graph for export holds numbers everywhere
            key, value = without_padding(attended(mask), key, value)
            (query,) = without_padding(query_mask, query)
        prepared = self.prepare(key, value)
        outputs = self.attend(query, *prepared, mask, training, causal, distance_bias)
        (outputs,) = without_padding(query_mask, outputs)
        return outputs

    def attend(
        self,
        query,
        prepared_key,
        prepared_value,
        attention_mask=None,
        training=False,
        causal=None,
        distance_bias=None,
    ):
        """Attend to what `prepare` returned."""
        causal = self.causal if causal is None else causal
        query = self._split(self._project(query, self.query_kernel, self.query_bias))
        mask = self._mask_of_heads(attention_mask)
        contexts = self._attend(
            query, prepared_key, prepared_value, mask, causal, training, distance_bias
        )
        return self._project_output(self._merge(contexts))

    def attention_weights(self, query, key, attention_mask=None, causal=None, distance_bias=None):
        """Return (B, N, T, S) weights of every head, as a plot shows them."""
        key = self._split(self._project(key, self.key_kernel, self.key_bias))
        return self.weigh(query, key, attention_mask, causal, distance_bias)

    def weigh(self, query, prepared_key, attention_mask=None, causal=None, distance_bias=None):
        """Return the attention weights for a key that `prepare` returned."""
        query = self._split(self._project(query, self.query_kernel, self.query_bias))
        mask = self._mask_of_heads(attention_mask)
        causal = self.causal if causal is None else causal
        return self._weigh(query, prepared_key, mask, causal, distance_bias)

    def _mask_of_heads(self, mask):
        if mask is None or len(mask.shape) == 4:
            return mask
        if len(mask.shape) != 3:
            raise ValueError(
                f"{type(self).__name__}: attention_mask must have shape (batch, target, source) or "
                f"(batch, heads, target, source); received {tuple(mask.shape)}. A padding mask "
                "(batch, source) becomes one of attention by mask[:, None]."
            )
        return mask[:, None]
