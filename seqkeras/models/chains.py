"""Tags that depend on the tag before: the potentials of a linear-chain conditional random field."""

import keras
from keras import ops

from seqkeras.models.heads import STDDEV, _LinearHead
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class LinearChain(keras.layers.Layer):
    """The potentials of a linear-chain conditional random field, from the logits of each token.

        potential(t, i, j) = logits(t, j) + A(i, j)

    Notation: j is the tag of a token, i the tag before; the last row of A, i = K, is for the first
    token. The probability of tags y(1) … y(n) is the softmax of the sum of
    potential(t, y(t-1), y(t)) over all sequences of tags. `seqkeras.losses.ChainLoss` learns it;
    `seqkeras.serving.Tag` finds the most probable sequence.

    Call arguments:
        logits: (B, T, K).

    Returns:
        (B, T, K + 1, K) potentials.

    Reference: Lafferty et al. 2001, section 3; Lample et al. 2016, section 2.2,
    https://arxiv.org/abs/1603.01360

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import LinearChain
        >>> layer = LinearChain()
        >>> tuple(layer(np.zeros((2, 5, 3))).shape), layer.get_weights()[0].shape
        ((2, 5, 4, 3), (4, 3))
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, logits_shape):
        K = logits_shape[-1]
        self.transitions = self.add_weight(
            shape=(K + 1, K),
            initializer=keras.initializers.RandomNormal(stddev=STDDEV),
            name="transitions",
        )

    def call(self, logits):
        return logits[:, :, None, :] + ops.cast(self.transitions, logits.dtype)

    def compute_output_shape(self, logits_shape):
        B, T, K = logits_shape
        return (B, T, K + 1, K)


@keras.saving.register_keras_serializable("seqkeras")
class ChainTaggingHead(_LinearHead):
    """A tag for each token, which depends on the tag before: a conditional random field.

        potential(t, i, j) = (W dropout(hidden(t)) + b)_j + A(i, j)

    Args:
        num_outputs: the number of tags, K.
        dropout: dropout rate of the hidden states.

    Call arguments:
        hidden: (B, T, D).

    Returns:
        (B, T, K + 1, K) potentials, see `LinearChain`, in float32 at least.

    Raises:
        ValueError: if num_outputs is not positive.

    Reference: Lample et al. 2016, section 2.2, https://arxiv.org/abs/1603.01360

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert, ChainTaggingHead, WithHeads
        >>> bert = Bert(17, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
        >>> model = WithHeads(bert, {"tags": ChainTaggingHead(3)})
        >>> tuple(model({"token_ids": np.array([[2, 5, 3, 4]])})["tags"].shape)
        (1, 4, 4, 3)
    """

    takes = ("hidden",)

    def __init__(self, num_outputs: int, dropout: float = 0.0, **kwargs):
        super().__init__(num_outputs, dropout, **kwargs)
        self.chain = LinearChain(dtype=self.output_layer.dtype_policy, name="chain")

    def build(self, hidden_shape):
        build_once(self.output_layer, hidden_shape)
        build_once(self.chain, (*hidden_shape[:-1], self.num_outputs))

    def call(self, hidden, training=False):
        return self.chain(self._map(hidden, training))
