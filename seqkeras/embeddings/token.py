"""Token embeddings, whose matrix may also make the logits."""

import keras
from keras import ops

from seqkeras.embeddings.ids import require_ids
from seqkeras.shapes import require_positive


@keras.saving.register_keras_serializable("seqkeras")
class TokenEmbedding(keras.layers.Layer):
    """A vector for each token id; the same matrix turns hidden states into logits.

        y = s E(token_id)        logits(h) = E h

    Notation: E is a row for each token; s is sqrt(D) if `scale`, as in the paper, else 1.

    Args:
        vocab_size: V.
        dim: D.
        scale: multiply what is looked up, and not the logits, by sqrt(D).
        stddev: stddev of the normal numbers that E starts as; None for 1 / sqrt(D).

    Call arguments:
        token_ids: (...) integers.

    Returns:
        (..., D).

    Raises:
        ValueError: if a size is not positive, or a token id that is known before the graph runs is
            not under vocab_size.

    Reference: Vaswani et al. 2017, section 3.4, https://arxiv.org/abs/1706.03762; tied logits:
    Press and Wolf 2017, https://arxiv.org/abs/1608.05859

    Example:
        >>> import numpy as np
        >>> from seqkeras.embeddings import TokenEmbedding
        >>> layer = TokenEmbedding(vocab_size=10, dim=4)
        >>> embedded = layer(np.array([[1, 2, 3]]))
        >>> tuple(embedded.shape), tuple(layer.logits(embedded).shape)  # by the same matrix
        ((1, 3, 4), (1, 3, 10))
    """

    def __init__(
        self, vocab_size: int, dim: int, scale: bool = False, stddev: float | None = None, **kwargs
    ):
        super().__init__(**kwargs)
        require_positive(self, vocab_size=vocab_size, dim=dim)
        self.vocab_size = vocab_size
        self.dim = dim
        self.scale = scale
        self.stddev = stddev

    def build(self, token_ids_shape):
        stddev = self.dim**-0.5 if self.stddev is None else self.stddev
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocab_size, self.dim),
            initializer=keras.initializers.RandomNormal(stddev=stddev),
            autocast=False,  # rows are cast after the lookup, and logits are not
        )

    def compute_output_spec(self, token_ids):
        require_ids(self, "token_ids", token_ids, "vocab_size", self.vocab_size)
        return super().compute_output_spec(token_ids)

    def call(self, token_ids):
        require_ids(self, "token_ids", token_ids, "vocab_size", self.vocab_size)
        if keras.backend.standardize_dtype(token_ids.dtype) != "int64":
            token_ids = ops.cast(token_ids, "int32")  # TensorFlow looks up no others
        looked_up = ops.cast(ops.take(self.embeddings, token_ids, axis=0), self.compute_dtype)
        return looked_up * self.dim**0.5 if self.scale else looked_up

    def logits(self, hidden):
        """Map (..., D) hidden states to (..., V) logits, in float32 at least."""
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        E = ops.cast(self.embeddings, dtype)
        logits = ops.matmul(ops.cast(hidden, dtype), ops.transpose(E))
        return ops.cast(logits, dtype)  # on PyTorch Keras multiplies float64 in float32

    def compute_output_shape(self, token_ids_shape):
        return (*token_ids_shape, self.dim)
