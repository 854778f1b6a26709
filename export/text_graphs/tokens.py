"""What a tokenizer in a graph is, and what it makes of texts."""

import dataclasses
import functools

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The tokens of B texts, without those that a template sets around them.

    Attributes:
        token_ids: (B, None) ragged int32.
        starts, ends: (B, None) ragged int32, where each token lies in its text, in code points.
    """

    token_ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor

    @classmethod
    def of_rows(cls, token_ids, starts, ends, rows, batch_size):
        """Of all texts' tokens, one after the other, and the text of each."""
        first = tf.RaggedTensor.from_value_rowids(token_ids, rows, batch_size)
        return cls(first, first.with_values(starts), first.with_values(ends))


class TextGraph:
    """A tokenizer in a graph: a SavedModel holds its tables once, however often it is called.

    Attributes:
        most_characters: that a text may have for every token that there may be, more than any text
            of words, so that no time is spent on hopeless ones; None for any number.
    """

    most_characters = None

    def __call__(self, texts):
        """(B,) strings to `Tokens`."""
        return Tokens(*self._function(texts))

    def split(self, texts):
        """(B,) strings to `Tokens`; one that can not be split is an InvalidArgumentError."""
        raise NotImplementedError

    def decode(self, token_ids, kept):
        """(B, T) ids to (B,) strings, of those that are kept; special tokens have no text."""
        raise NotImplementedError

    @functools.cached_property
    def _function(self):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def function(texts):
            tokens = self.split(texts)
            return tokens.token_ids, tokens.starts, tokens.ends

        return function
