"""A word's vector from its characters."""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.shapes import require_positive, require_steps

ACTIVATIONS = ("relu", "tanh")  # never under -1, which stands for "no window here" below


@keras.saving.register_keras_serializable("seqkeras")
class CharacterCNN(keras.layers.Layer):
    """Convolutions over the characters of a word, then the largest value of each filter.

        f_k(i) = g(<C[i : i + w], H_k> + b_k)        y_k = max over i of f_k(i)

    Notation: C, H, w, i are the paper's; g is its tanh, and ReLU in ELMo and BiDAF. One window
    begins at each real character and reads zeros after the word's end, so that the vector does
    not depend on the padding; the paper's windows lie within the padded word.

    Args:
        vocab_size: number of character ids; id 0 is padding.
        embedding_dim: size of a character's embedding.
        widths: the width w of each group of filters.
        filters: the number of filters in each group.
        activation: g, "tanh" or "relu".

    Call arguments:
        character_ids: (B, T, W) integers, each word's characters, padded on the right with 0.

    Returns:
        (B, T, sum of filters); zeros for a word without characters.

    Raises:
        ValueError: if a size is not positive, widths and filters do not pair up, the activation
            is unknown, or character_ids is not of rank 3 or holds no word.

    Reference: Kim et al. 2016, "Character-level CNN", https://arxiv.org/abs/1508.06615

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.embeddings import CharacterCNN
        >>> layer = CharacterCNN(vocab_size=30, embedding_dim=4, widths=[2, 3], filters=[5, 6])
        >>> vectors = layer(np.array([[[3, 1, 20, 0], [0, 0, 0, 0]]]))  # "cat" and padding
        >>> tuple(vectors.shape), bool(ops.all(vectors[0, 1] == 0))
        ((1, 2, 11), True)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        widths: Sequence[int],
        filters: Sequence[int],
        activation: str = "tanh",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not widths or len(widths) != len(filters):
            raise ValueError(
                "CharacterCNN: widths and filters must be lists of one length; "
                f"received {widths} and {filters}."
            )
        require_positive(self, vocab_size=vocab_size, embedding_dim=embedding_dim)
        for width, number in zip(widths, filters, strict=True):
            require_positive(self, widths=width, filters=number)
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"CharacterCNN: activation must be one of {ACTIVATIONS}; received {activation!r}."
            )
        self.vocab_size = vocab_size
        self.embedding_dim = embedding_dim
        self.widths = list(widths)
        self.filters = list(filters)
        self.activation = activation
        self.embedding = keras.layers.Embedding(
            vocab_size, embedding_dim, dtype=self.dtype_policy, name="embedding"
        )
        self.convolutions = [
            keras.layers.Conv1D(
                number, width, activation=activation, dtype=self.dtype_policy, name=f"width_{width}"
            )
            for width, number in zip(widths, filters, strict=True)
        ]

    def build(self, character_ids_shape):
        _require_characters(character_ids_shape)
        for layer, shape in [
            (self.embedding, (None, None)),
            *((convolution, (None, None, self.embedding_dim)) for convolution in self.convolutions),
        ]:
            if not layer.built:  # as a layer from a file is
                layer.build(shape)

    def call(self, character_ids):
        _require_characters(character_ids.shape)
        require_steps(self, character_ids=character_ids)
        batch_size, length, characters = ops.shape(character_ids)
        words = ops.reshape(character_ids, (-1, characters))  # (BT, W)
        real = ops.not_equal(words, 0)[..., None]
        embedded = ops.where(real, self.embedding(words), 0)  # (BT, W, C)
        largest = [
            ops.max(ops.where(real, self._windows(convolution, embedded), -1), axis=1)
            for convolution in self.convolutions
        ]
        vectors = ops.where(ops.any(real, axis=1), ops.concatenate(largest, axis=-1), 0)
        return ops.reshape(vectors, (batch_size, length, sum(self.filters)))

    def _windows(self, convolution, embedded):
        """Return (BT, W, filters): the windows that begin at each character."""
        behind = convolution.kernel_size[0] - 1
        return convolution(ops.pad(embedded, [[0, 0], [0, behind], [0, 0]]))

    def compute_output_shape(self, character_ids_shape):
        return (*character_ids_shape[:2], sum(self.filters))


def _require_characters(shape):
    if len(shape) != 3:
        raise ValueError(
            "CharacterCNN: character_ids must have shape (batch, length, characters); "
            f"received {tuple(shape)}."
        )
