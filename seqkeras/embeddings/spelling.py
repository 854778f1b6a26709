"""The words that pieces spell, within a graph."""

import numpy as np
from keras import ops


class Spelling:
    """Token ids of pieces to the characters of their words.

        word(t) = the characters of the pieces of t's word, one after the other

    Args:
        pieces: for each token id a list of the ids of its characters; empty where the token is no
            piece of a word, as padding and [CLS].
        goes_on: the ids of the tokens that go on with the word before them, as "##ing";
            `seqkeras.tokenizers.spelled_pieces` gives both.
        word_length: the most characters of a word that are read.
    """

    def __init__(self, pieces, goes_on, word_length):
        self.pieces, self.goes_on = [[*piece] for piece in pieces], [*goes_on]
        self.word_length = word_length
        self._spelled = np.zeros((len(pieces), max(1, *map(len, self.pieces))), "int32")  # (V, P)
        for row, piece in zip(self._spelled, self.pieces):
            row[: len(piece)] = piece
        self._begins = ~np.isin(np.arange(len(pieces)), self.goes_on)

    @property
    def config(self):
        """The arguments."""
        return {"pieces": self.pieces, "goes_on": self.goes_on, "word_length": self.word_length}

    def __call__(self, token_ids, text=None):
        """Return the words of pieces.

        Args:
            token_ids: (B, T) int32.
            text: (B, T) booleans, which of them are read; None for all.

        Returns:
            (B, T, word_length) int32 characters of T words; (B,) how many of them are real;
            (B, T) the place of each piece's word; (B, T) booleans, whether it is of a word.
        """
        spelled = ops.take(ops.convert_to_tensor(self._spelled), token_ids, axis=0)  # (B, T, P)
        if text is not None:
            spelled = ops.where(text[..., None], spelled, 0)
        real = ops.not_equal(spelled, 0)
        sizes = ops.sum(ops.cast(real, "int32"), axis=-1)
        is_word = sizes > 0
        begins = ops.take(ops.convert_to_tensor(self._begins), token_ids, axis=0)
        before = ops.pad(is_word[:, :-1], [[0, 0], [1, 0]])
        begins = ops.logical_and(is_word, ops.logical_or(begins, ops.logical_not(before)))
        position = ops.cumsum(ops.cast(begins, "int32"), axis=1) - 1
        lengths = ops.max(position, axis=1) + 1
        starts = ops.cumsum(sizes, axis=1) - sizes  # of pieces, in characters of the text
        batch_size, length, width = ops.shape(spelled)
        steps = ops.arange(length, dtype="int32")
        seen = ops.logical_and(steps[:, None] >= steps, begins[:, None])  # (B, T, T)
        starts -= ops.max(ops.where(seen, starts[:, None], 0), axis=-1)  # in positions of the word
        column = starts[..., None] + ops.arange(width, dtype="int32")  # (B, T, P)
        is_letter = ops.logical_and(real, column < self.word_length)
        # Dropped characters fall into a word after the last, which is cut off.
        word = ops.where(is_letter, position[..., None], length)
        column = ops.where(is_letter, column, 0)
        row = ops.broadcast_to(
            ops.arange(batch_size, dtype="int32")[:, None, None], ops.shape(spelled)
        )
        indices = ops.reshape(ops.stack([row, word, column], axis=-1), (-1, 3))
        shape = (batch_size, length + 1, self.word_length)
        characters = ops.scatter(indices, ops.reshape(spelled, (-1,)), shape)[:, :-1]
        return characters, lengths, ops.maximum(position, 0), is_word
