"""The attention weights of one block as an output, for a student to match its teacher's."""

import keras
from keras import ops

from seqkeras.models.heads import Head
from seqkeras.shapes import require_positive


@keras.saving.register_keras_serializable("seqkeras")
class AttentionWeightsHead(Head):
    """The attention of each head of one block to each token.

        y(n, t, s) = softmax over s of q_n(t) . k_n(s) / sqrt(H)

    Args:
        block: which one, from 1, the first, to the number of blocks.

    Call arguments:
        attention: a list of (B, N, T, T), from `Bert` with attention=True.

    Returns:
        (B, N, T, T), in float32 at least. No meaning at padded queries.

    Raises:
        ValueError: if block is no positive integer, or beyond the last one.

    Reference: Vaswani et al. 2017, section 3.2, https://arxiv.org/abs/1706.03762

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import AttentionWeightsHead, Bert, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=2, num_heads=2, feed_forward_dim=16)
        >>> model = WithHeads(bert, {"weights": AttentionWeightsHead(block=2)})
        >>> tuple(model({"token_ids": np.array([[2, 5, 3]])})["weights"].shape)
        (1, 2, 3, 3)
    """

    takes = ("attention",)

    def __init__(self, block: int, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, block=block)
        self.block = block

    def build(self, attention_shape):
        pass

    def call(self, attention, training=False):
        if self.block > len(attention):
            raise ValueError(
                "AttentionWeightsHead: block must be at most the number of blocks, "
                f"{len(attention)}; received {self.block}."
            )
        weights = attention[self.block - 1]
        return ops.cast(weights, keras.backend.result_type(weights.dtype, "float32"))
