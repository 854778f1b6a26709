"""Vectors of words from their characters, for a model of subwords."""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.embeddings.character import CharacterCNN
from seqkeras.embeddings.spelling import Spelling
from seqkeras.shapes import require_positive


@keras.saving.register_keras_serializable("seqkeras")
class WordCharacters(keras.layers.Layer):
    """Convolutions over the characters of a subword's whole word, from token ids alone.

        word(t) = the characters of the pieces of t's word, one after the other
        y(t) = CharacterCNN(word(t))

    What is no piece of a word has zeros. A model that holds the layer is served as one of token
    ids: nobody needs to spell words beside it.

    Args:
        vocab_size: number of character ids; id 0 is padding.
        embedding_dim: size of a character's embedding.
        widths: the width of each group of filters.
        filters: the number of filters in each group.
        pieces: for each token id a list of the ids of its characters; empty where the token is no
            piece of a word, as padding and [CLS].
        goes_on: the ids of the tokens that go on with the word before them, as "##ing";
            `seqkeras.tokenizers.spelled_pieces` gives both.
        word_length: the most characters of a word that are read.
        activation: "tanh" or "relu".

    Call arguments:
        token_ids: (B, T) integers.

    Returns:
        (B, T, sum of filters).

    Raises:
        ValueError: see `CharacterCNN`.

    Reference: Ma and Hovy 2016, section 2.1, https://arxiv.org/abs/1603.01354; Kim et al. 2016,
    https://arxiv.org/abs/1508.06615

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.embeddings import WordCharacters
        >>> pieces, goes_on = [[], [3, 1], [20]], [2]  # "[PAD]", "ca", "##t"
        >>> layer = WordCharacters(30, 4, [2], [5], pieces, goes_on)
        >>> vectors = ops.convert_to_numpy(layer(np.array([[1, 2, 0]])))
        >>> vectors.shape, np.array_equal(vectors[0, 0], vectors[0, 1])  # both are of "cat"
        ((1, 3, 5), True)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        widths: Sequence[int],
        filters: Sequence[int],
        pieces: Sequence[Sequence[int]],
        goes_on: Sequence[int],
        word_length: int = 50,
        activation: str = "tanh",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(self, word_length=word_length)
        self.of_words = CharacterCNN(
            vocab_size, embedding_dim, widths, filters, activation, dtype=self.dtype_policy
        )
        self.spell = Spelling(pieces, goes_on, word_length)

    def build(self, token_ids_shape):
        if not self.of_words.built:
            self.of_words.build((None, None, self.spell.word_length))

    def call(self, token_ids):
        characters, _, position, is_word = self.spell(ops.cast(token_ids, "int32"))
        vectors = ops.take_along_axis(self.of_words(characters), position[..., None], axis=1)
        return ops.where(is_word[..., None], vectors, 0)

    def compute_output_shape(self, token_ids_shape):
        return (*token_ids_shape, sum(self.of_words.filters))

    def get_config(self):
        names = ("vocab_size", "embedding_dim", "widths", "filters", "activation")
        of_words = {name: getattr(self.of_words, name) for name in names}
        return {**super().get_config(), **of_words, **self.spell.config}
