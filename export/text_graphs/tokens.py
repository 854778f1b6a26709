"""The base class of tokenizers in a graph, and the tokens that they return."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import tensorflow as tf

from seqkeras.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The tokens of B texts, without a template's special tokens."""

    token_ids: tf.RaggedTensor  # (B, None) int32
    starts: tf.RaggedTensor  # (B, None) int32, offset in the text, in code points
    ends: tf.RaggedTensor  # (B, None) int32
    errors: tf.Tensor  # (B,) strings, why a text is refused; "" for the others

    @classmethod
    def of_rows(
        cls, token_ids: Tensor, starts: Tensor, ends: Tensor, rows: Tensor, errors: Tensor
    ) -> Tokens:
        """Return `Tokens` of one list of tokens, the row of each, and the errors of rows."""
        size = tf.size(errors, tf.int64)
        first = tf.RaggedTensor.from_value_rowids(token_ids, rows, size)
        return cls(first, first.with_values(starts), first.with_values(ends), errors)

    def cut(self, sizes: Tensor) -> Tokens:
        """Return the first tokens of each text, (B,) `sizes` of them at most."""
        places = tf.ragged.range(self.token_ids.row_lengths())
        is_within = places < tf.expand_dims(sizes, 1)
        return Tokens(
            *(tf.ragged.boolean_mask(part, is_within) for part in self.columns), self.errors
        )

    @property
    def columns(self) -> tuple[Tensor, ...]:
        """The token ids, and where they start and end."""
        return self.token_ids, self.starts, self.ends


class TextGraph:
    """A tokenizer in a graph; a SavedModel stores its tables once for all calls.

    A text of more than `most_characters` for each token of the limit is refused before it is
    tokenized; None for no limit. An id's text is one of the list `pieces`.
    """

    most_characters = None
    pieces: Any

    def __call__(self, texts: Any) -> Tokens:
        """Map (B,) strings to `Tokens`."""
        return Tokens(*self._function(texts))

    def split(self, texts: Any) -> Tokens:
        """Map (B,) strings to `Tokens`."""
        raise NotImplementedError

    def decode(self, token_ids: Tensor, kept: Tensor) -> Tensor:
        """Map (B, T) ids and a mask of those to keep, to (B,) strings without special tokens."""
        pieces = tf.where(kept, tf.gather(tf.constant(self.pieces), token_ids), "")
        return self.tidied(tf.strings.reduce_join(pieces, axis=-1))

    def tidied(self, joined: Tensor) -> Tensor:
        """Map (B,) joined pieces to texts."""
        return joined

    @functools.cached_property
    def _function(self):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def function(texts):
            tokens = self.split(texts)
            return tokens.token_ids, tokens.starts, tokens.ends, tokens.errors

        return function
