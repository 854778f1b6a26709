"""ELMo's features for a model of subwords, from its token ids alone."""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.embeddings.spelling import Spelling
from seqkeras.models.bilm import LayerMix
from seqkeras.shapes import require_positive
from seqkeras.values import build_once, config_of_part


@keras.saving.register_keras_serializable("seqkeras")
class BiLMFeatures(keras.layers.Layer):
    """Features of a bidirectional language model for the subwords of a text.

        word(t) = the characters of the pieces of t's word, one after the other
        features(t) = gamma * sum over j of s_j h_j(word(t)),  s = softmax(w)

    h_j are the layers of a `BiLM`, gamma and s the weights of a `LayerMix`: every piece of a word
    has the features of the word, and what is no piece of a word has zeros. The model that holds the
    layer is served as one of token ids: nobody needs to spell words beside it.

    Args:
        bilm: a `BiLM`.
        pieces, goes_on, word_length: see `seqkeras.embeddings.WordCharacters`; the characters
            are the `BiLM`'s.
        train: whether the weights of the `BiLM` learn too; the weights of the mix always do.

    Call arguments:
        token_ids: (B, T) integers.
        segment_ids: (B, T) integers, 1 for the second text of a pair, which is read by itself; or
            None.

    Returns:
        (B, T, 2P), with the P of the `BiLM`; zeros where a token is no piece of a word.

    Reference: Peters et al. 2018, sections 3.2 and 3.3, https://arxiv.org/abs/1802.05365

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import BiLM, BiLMFeatures
        >>> bilm = BiLM(19, 11, 4, widths=[2], filters=[5], units=6, projection_dim=3)
        >>> pieces, goes_on = [[], [3, 1], [2]], [2]  # "[PAD]", "ca", "##t"
        >>> tuple(BiLMFeatures(bilm, pieces, goes_on)(np.array([[1, 2, 0]])).shape)
        (1, 3, 6)
    """

    def __init__(
        self,
        bilm: keras.Model,
        pieces: Sequence[Sequence[int]],
        goes_on: Sequence[int],
        word_length: int = 50,
        train: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(self, word_length=word_length)
        self.bilm, self.train = bilm, train
        self.spell = Spelling(pieces, goes_on, word_length)
        self.mix = LayerMix(dtype=self.dtype_policy)

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
        text = ops.concatenate([first, ops.logical_not(first)], axis=0)
        both = self._features(ops.concatenate([token_ids, token_ids], axis=0), text, training)
        return sum(ops.split(both, 2, axis=0))  # zeros where the other text stands

    def _features(self, token_ids, text, training):
        characters, lengths, position, is_word = self.spell(token_ids, text)
        words = {"character_ids": characters, "lengths": lengths}
        layers = self.bilm.represent(words, training=training and self.train)
        mixed = self.mix(layers)  # (B, T, 2P), of words
        features = ops.take_along_axis(mixed, position[..., None], axis=1)
        return ops.where(is_word[..., None], features, 0)

    def compute_output_shape(self, token_ids_shape, segment_ids_shape=None):
        return (*token_ids_shape, 2 * self.bilm.sizes["projection_dim"])

    def get_config(self):
        return {
            **super().get_config(),
            "bilm": config_of_part(self.bilm),
            **self.spell.config,
            "train": self.train,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "bilm": keras.saving.deserialize_keras_object(config["bilm"])})
