"""Words of Keras's `TextVectorization` in a graph, as `serving.text.VectorizedWords` reads them."""

import tensorflow as tf

from export.text_graphs.characters import characters, shifted
from export.text_graphs.lookup import Trie, find
from export.text_graphs.tokens import TextGraph, Tokens
from serving.text.vectorized_words import PUNCTUATION, SPACES
from serving.text.vocabularies import UNK

TO_LOWER = ord("a") - ord("A")


class WordIds(TextGraph):
    """The tokenizer of a `VectorizedWords`: a token for each word.

    Args:
        table: the `VectorizedWords`.
    """

    def __init__(self, table):
        special = len(table.special_tokens)
        own = enumerate(table.words[special:], start=special)
        self._trie = Trie({(0, *map(ord, word)): place for place, word in own})
        self._lowercase, self._strips = table.lowercase, table.strips

    def split(self, texts):
        source = characters(texts)
        code_points = source.code_points
        space = find(sorted(map(ord, SPACES)), code_points)[0]
        begins = shifted(space, -1, True) | (source.rows != shifted(source.rows, -1, -1))
        word = tf.cumsum(tf.cast(begins, tf.int32))
        kept = ~space
        if self._strips:
            kept &= ~find(sorted(map(ord, PUNCTUATION)), code_points)[0]
        if self._lowercase:
            capital = (code_points >= ord("A")) & (code_points <= ord("Z"))
            code_points = tf.where(capital, code_points + TO_LOWER, code_points)
        index = tf.boolean_mask(tf.range(tf.size(word)), kept)
        _, word, lengths = tf.unique_with_counts(tf.gather(word, index))
        behind = tf.cumsum(lengths)
        first, last = (tf.gather(index, each) for each in (behind - lengths, behind - 1))
        return Tokens.of_rows(
            self._ids(tf.gather(code_points, index), behind - lengths, lengths),
            tf.gather(source.starts, first),
            tf.gather(source.ends, last),
            tf.gather(source.rows, first),
            source.batch_size,
        )

    def _ids(self, code_points, begins, lengths):
        """(W,) the ids of words, which are the code points from their beginnings on."""
        trie = self._trie.held()

        def goes_on(step, states):
            return tf.reduce_any((step < lengths) & (states >= 0))

        def walk(step, states):
            inside = step < lengths
            following = tf.gather(code_points, tf.where(inside, begins + step, 0))
            return step + 1, tf.where(inside & (states >= 0), trie.step(states, following), states)

        _, states = tf.while_loop(goes_on, walk, (0, tf.zeros_like(lengths)))
        return tf.maximum(trie.value(states), UNK)
