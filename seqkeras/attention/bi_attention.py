"""Attention in both directions between a context and a query, as in BiDAF."""

import keras
from keras import ops

from seqkeras.masks import combine_masks, mask_scores, masked_softmax
from seqkeras.shapes import require_mask, require_sequence, require_steps
from seqkeras.values import without_padding


@keras.saving.register_keras_serializable("seqkeras")
class BiAttention(keras.layers.Layer):
    """The attention flow layer: context-to-query and query-to-context.

        S(t, j) = w^T [h(t); u(j); h(t) * u(j)]
        a(t) = softmax over j of S(t, j)            u~(t) = sum over j of a(t, j) u(j)
        b = softmax over t of max over j of S(t, j)     h~ = sum over t of b(t) h(t)
        g(t) = [h(t); u~(t); h(t) * u~(t); h(t) * h~]

    Notation: h, u, g are columns of the paper's H, U, G, whose rows are our D = 2d; T counts the
    words of the context, J the words of the query. The products with the three parts of w are
    computed one by one, so no (B, T, J, 3D) tensor is made.

    Call arguments:
        context: (B, T, D), h.
        query: (B, J, D), u.
        context_mask: (B, T) booleans, True for real words, or None.
        query_mask: (B, J) booleans, True for real words, or None.

    Returns:
        (B, T, 4D) g, zero where the context is masked. Without a real word in the query u~ and h~
        are zero.

    Raises:
        ValueError: if context or query is not of rank 3 or has no word, their dims differ, or a
            mask is not of the shape above.

    Reference: Seo et al. 2017, section 2 ("Attention flow layer"), https://arxiv.org/abs/1611.01603

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import BiAttention
        >>> layer = BiAttention()
        >>> context, query = np.ones((2, 7, 3)), np.ones((2, 5, 3))
        >>> tuple(layer(context, query).shape)
        (2, 7, 12)
        >>> [tuple(weights.shape) for weights in layer.attention_weights(context, query)]
        [(2, 7, 5), (2, 7)]
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, context_shape, query_shape):
        require_sequence(self, context=context_shape, query=query_shape)
        if context_shape[-1] != query_shape[-1]:
            raise ValueError(
                "BiAttention: context and query must have the same dim; received "
                f"{context_shape[-1]} and {query_shape[-1]}."
            )
        self.kernel = self.add_weight(name="kernel", shape=(3 * context_shape[-1], 1))  # w

    def call(self, context, query, context_mask=None, query_mask=None):
        require_sequence(self, context=context.shape, query=query.shape)
        require_steps(self, context=context, query=query)
        require_mask(self, context_mask, context.shape, "context_mask", "context")
        require_mask(self, query_mask, query.shape, "query_mask", "query")
        (context,) = without_padding(context_mask, context)
        (query,) = without_padding(query_mask, query)
        to_query, to_context = self.attention_weights(context, query, context_mask, query_mask)
        attended_query = ops.matmul(to_query, query)  # (B, T, D) u~
        attended_context = ops.matmul(to_context[:, None], context)  # (B, 1, D) h~
        g = ops.concatenate(
            [context, attended_query, context * attended_query, context * attended_context],
            axis=-1,
        )
        (g,) = without_padding(context_mask, g)
        return g

    def attention_weights(self, context, query, context_mask=None, query_mask=None):
        """Return a (B, T, J), context-to-query, and b (B, T), query-to-context, for the call's
        arguments."""
        w_h, w_u, w_hu = ops.split(self.kernel, 3, axis=0)  # (D, 1) each
        similarity = (
            ops.matmul(context, w_h)
            + ops.transpose(ops.matmul(query, w_u), (0, 2, 1))
            + ops.matmul(ops.multiply(context, w_hu[:, 0]), ops.transpose(query, (0, 2, 1)))
        )  # (B, T, J)
        query_mask = None if query_mask is None else query_mask[:, None]  # (B, 1, J)
        best = ops.max(mask_scores(similarity, query_mask), axis=-1)  # (B, T)
        answered = None if query_mask is None else ops.any(query_mask, axis=-1)  # (B, 1)
        to_context = masked_softmax(best, combine_masks(context_mask, answered))
        return masked_softmax(similarity, query_mask), ops.cast(to_context, similarity.dtype)
