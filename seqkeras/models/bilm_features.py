"""ELMo's features for a model of subwords, from its token ids alone."""

import keras
import numpy as np
from keras import ops

from seqkeras.models.bilm import LayerMix
from seqkeras.values import build_once, config_of_part


@keras.saving.register_keras_serializable("seqkeras")
class BiLMFeatures(keras.layers.Layer):
    """Features of a bidirectional language model for the subwords of a text.

        word(t) = the characters of the pieces of t's word, one behind the other
        features(t) = gamma * sum over j of s_j h_j(word(t)),  s = softmax(w)

    h_j are the layers of a `BiLM`, gamma and s the weights of a `LayerMix`: every piece of a word
    has the features of the word, and what is no piece of a word has zeros. The model that holds the
    layer is served as one of token ids: nobody needs to spell words beside it.

    Args:
        bilm: a `BiLM`.
        pieces: for each token id a list of the ids of its characters, as the `BiLM` knows them;
            empty where the token is no piece of a word, as padding and [CLS].
        goes_on: the ids of the tokens that go on with the word before them, as "##ing";
            `seqkeras.tokenizers.spelled_pieces` gives both.
        word_length: the most characters of a word that are read.
        train: whether the weights of the `BiLM` learn too; those of the mix always do.

    Call arguments:
        token_ids: (B, T) integers.
        segment_ids: (B, T) integers, 1 for the second text of a pair, which is read by itself; or
            None.

    Returns:
        (B, T, 2P), with the P of the `BiLM`.

    Reference: Peters et al. 2018, sections 3.2 and 3.3, https://arxiv.org/abs/1802.05365
    """

    def __init__(self, bilm, pieces, goes_on, word_length=50, train=False, **kwargs):
        super().__init__(**kwargs)
        self.bilm, self.train = bilm, train
        self.pieces, self.goes_on = [[*piece] for piece in pieces], [*goes_on]
        self.word_length = word_length
        self.mix = LayerMix(dtype=self.dtype_policy)
        self._spelled = np.zeros((len(pieces), max(1, *map(len, self.pieces))), "int32")  # (V, P)
        for row, piece in zip(self._spelled, self.pieces):
            row[: len(piece)] = piece
        self._begins = ~np.isin(np.arange(len(pieces)), self.goes_on)

    def build(self, token_ids_shape, segment_ids_shape=None):
        build_once(self.bilm, None)
        others = self.bilm.output_layer.weights  # no feature of them
        for weight in self.bilm.weights:
            weight.trainable = self.train and not any(weight is other for other in others)
        sizes = self.bilm.sizes
        self.mix.build((None, sizes["num_layers"] + 1, None, 2 * sizes["projection_dim"]))

    def call(self, token_ids, segment_ids=None, training=False):
        token_ids = ops.cast(token_ids, "int32")
        if segment_ids is None:
            return self._features(token_ids, None, training)
        first = ops.equal(segment_ids, 0)
        own = ops.concatenate([first, ops.logical_not(first)], axis=0)
        both = self._features(ops.concatenate([token_ids, token_ids], axis=0), own, training)
        return sum(ops.split(both, 2, axis=0))  # zeros where the other text stands

    def _features(self, token_ids, own, training):
        words, place, is_word = self.spell(token_ids, own)
        layers = self.bilm.represent(words, training=training and self.train)
        mixed = self.mix(layers)  # (B, T, 2P), of words
        features = ops.take_along_axis(mixed, place[..., None], axis=1)
        return ops.where(is_word[..., None], features, 0)

    def spell(self, token_ids, own=None):
        """The words of pieces.

        Args:
            token_ids: (B, T) int32.
            own: (B, T) booleans, which of them are read; None for all.

        Returns:
            The inputs of the `BiLM`, T words, of which "lengths" are real; (B, T) the place of each
            piece's word; (B, T) booleans, whether it is of a word.
        """
        spelled = ops.take(ops.convert_to_tensor(self._spelled), token_ids, axis=0)  # (B, T, P)
        if own is not None:
            spelled = ops.where(own[..., None], spelled, 0)
        real = ops.not_equal(spelled, 0)
        sizes = ops.sum(ops.cast(real, "int32"), axis=-1)
        is_word = sizes > 0
        begins = ops.take(ops.convert_to_tensor(self._begins), token_ids, axis=0)
        before = ops.pad(is_word[:, :-1], [[0, 0], [1, 0]])
        begins = ops.logical_and(is_word, ops.logical_or(begins, ops.logical_not(before)))
        place = ops.cumsum(ops.cast(begins, "int32"), axis=1) - 1
        lengths = ops.max(place, axis=1) + 1
        starts = ops.cumsum(sizes, axis=1) - sizes  # of pieces, in characters of the text
        batch_size, length, width = ops.shape(spelled)
        steps = ops.arange(length, dtype="int32")
        seen = ops.logical_and(steps[:, None] >= steps, begins[:, None])  # (B, T, T)
        starts -= ops.max(ops.where(seen, starts[:, None], 0), axis=-1)  # in those of the word
        column = starts[..., None] + ops.arange(width, dtype="int32")  # (B, T, P)
        kept = ops.logical_and(real, column < self.word_length)
        # What is not kept falls into a word behind the last, which is cut off.
        word = ops.where(kept, place[..., None], length)
        column = ops.where(kept, column, 0)
        row = ops.broadcast_to(
            ops.arange(batch_size, dtype="int32")[:, None, None], ops.shape(spelled)
        )
        indices = ops.reshape(ops.stack([row, word, column], axis=-1), (-1, 3))
        shape = (batch_size, length + 1, self.word_length)
        characters = ops.scatter(indices, ops.reshape(spelled, (-1,)), shape)[:, :-1]
        return {"character_ids": characters, "lengths": lengths}, ops.maximum(place, 0), is_word

    def compute_output_shape(self, token_ids_shape, segment_ids_shape=None):
        return (*token_ids_shape, 2 * self.bilm.sizes["projection_dim"])

    def get_config(self):
        return {
            **super().get_config(),
            "bilm": config_of_part(self.bilm),
            "pieces": self.pieces,
            "goes_on": self.goes_on,
            "word_length": self.word_length,
            "train": self.train,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "bilm": keras.saving.deserialize_keras_object(config["bilm"])})
