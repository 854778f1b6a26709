"""What a tokenizer in a graph makes of texts."""

import dataclasses

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
