"""Linear classifier of the n-grams of a text, from the token ids of its subwords."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from seqkeras.embeddings.spelling import Spelling
from seqkeras.models.found_weights import add_found_weight
from seqkeras.models.recurrent_stack import values_dtype
from seqkeras.shapes import require_positive

PRIME = 8_191  # sums of products of 30 codes and factors are below 2^31
EDGE = 4_099  # code of the two ends of a word
SALT = 30_011  # between n-grams of two lengths
MOST_BUCKETS, MOST_LETTERS = 2**16, 28


@keras.saving.register_keras_serializable("seqkeras")
class LinearNgrams(keras.layers.Layer):
    """Logits that are linear in the n-grams of a text, hashed into buckets.

        G = n-grams of 2 … `longest` characters of each word between its two ends, words, and pairs
            of neighbouring words
        y = b + sum over g in G of W[hash(g)] / sqrt(|G|)

        hash(c_1 … c_n) = (sum over j of a_j code(c_j) + n s) mod buckets
        code(c) = (id(c) + 1)^11 mod P        a_j = 1103^j mod P        P = 8,191

    The hash of a word sums over all of its characters; the hash of a pair sums over the hashes of
    its words. In training the output is 0, so that a network whose logits it is added to learns as
    if it were alone. W and b are not trained: `seqkeras.training` finds them by a support vector
    machine, and whoever holds others sets them by `set_weights`.

    Args:
        units: number of classes, K.
        buckets: number of rows of W.
        pieces: for each token id a list of the ids of its characters; empty where the token is no
            piece of a word, as padding and [CLS].
        goes_on: ids of the tokens that go on with the word before them, as "##ing";
            `seqkeras.tokenizers.spelled_pieces` gives both.
        longest: characters of the longest n-gram, 2 at least.
        word_length: most characters of a word that are read, 28 at most.

    Call arguments:
        token_ids: (B, T) integers.

    Returns:
        (B, K), in float32 at least.

    Raises:
        ValueError: if a size is not positive or too large.

    Reference: Joulin et al. 2017, section 2, https://arxiv.org/abs/1607.01759 (hashed n-grams);
    Bojanowski et al. 2017, section 3.2, https://arxiv.org/abs/1607.04606 (n-grams of characters)

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import LinearNgrams
        >>> pieces, goes_on = [[], [3, 1], [20]], [2]  # "[PAD]", "ca", "##t"
        >>> layer = LinearNgrams(2, buckets=64, pieces=pieces, goes_on=goes_on)
        >>> ops.convert_to_numpy(layer(np.array([[1, 2, 0]]))).tolist()  # W and b start at 0
        [[0.0, 0.0]]
    """

    def __init__(
        self,
        units: int,
        buckets: int,
        pieces: Sequence[Sequence[int]],
        goes_on: Sequence[int],
        longest: int = 5,
        word_length: int = 16,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        sizes = {"units": units, "buckets": buckets, "longest": longest}
        require_positive(self, **sizes, word_length=word_length)
        if buckets > MOST_BUCKETS or not 2 <= longest <= word_length <= MOST_LETTERS:
            raise ValueError(
                f"LinearNgrams: buckets must be at most {MOST_BUCKETS:,}, and 2 <= longest <= "
                f"word_length <= {MOST_LETTERS}; received {buckets:,}, {longest} and {word_length}."
            )
        self.values_dtype = values_dtype(self)
        self.units, self.buckets, self.longest = units, buckets, longest
        self.spell = Spelling(pieces, goes_on, word_length)
        most = max(map(max, filter(None, self.spell.pieces)), default=0)
        codes = [0, *(pow(index + 1, 11, PRIME) or EDGE for index in range(1, most + 1))]
        factors = [pow(1103, position + 1, PRIME) for position in range(word_length + 2)]
        self._codes, self._factors = np.array(codes, "int32"), np.array(factors, "int32")

    def build(self, token_ids_shape):
        self.kernel = self._weight("kernel", (self.buckets, self.units))
        self.bias = self._weight("bias", (self.units,))

    def _weight(self, name, shape):
        return add_found_weight(self, name, shape, self.values_dtype)

    def call(self, token_ids, training=False):
        if training:
            return ops.zeros((ops.shape(token_ids)[0], self.units), self.values_dtype)
        total = count = 0
        for buckets, real in self.grams(token_ids):
            present = ops.cast(real, self.values_dtype)[:, None]  # (B, 1, N)
            total += ops.matmul(present, ops.take(self.kernel, buckets, axis=0))[:, 0]  # (B, K)
            count += ops.sum(present, axis=-1)  # (B, 1)
        return self.bias + total / ops.sqrt(ops.maximum(count, 1))

    def grams(self, token_ids):
        """Yield the buckets (B, N) of the n-grams of one kind, and which of them are real, (B, N)
        booleans: of each length, of words, and of pairs of words."""
        characters, _, _, _ = self.spell(ops.cast(token_ids, "int32"))  # (B, T, L)
        size = ops.sum(ops.cast(characters != 0, "int32"), axis=-1, keepdims=True)
        is_word = size > 0
        positions = ops.arange(characters.shape[-1] + 2, dtype="int32")
        ends = ops.logical_and(is_word, ops.logical_or(positions == 0, positions == size + 1))
        codes = ops.take(ops.convert_to_tensor(self._codes), characters, axis=0)
        codes = ops.where(ends, EDGE, ops.pad(codes, [[0, 0], [0, 0], [1, 1]]))  # (B, T, L + 2)
        more = ops.pad(codes, [[0, 0], [0, 0], [0, self.longest - 1]])
        gram = codes * int(self._factors[0])
        for number in range(1, self.longest):
            after = more[..., number : number + positions.shape[0]]
            gram = gram + after * int(self._factors[number])
            yield self._of(gram, number + 1), _flat(after != 0)
        word = ops.sum(codes * ops.convert_to_tensor(self._factors), axis=-1)  # (B, T)
        word, is_word = self._of(word, self.longest + 1), is_word[..., 0]
        yield word, is_word
        first, second = (word * int(factor) for factor in self._factors[:2])
        second, follows = (ops.pad(values, [[0, 0], [0, 1]])[:, 1:] for values in (second, is_word))
        yield self._of(first + second, self.longest + 2), follows

    def _of(self, gram, kind):
        return _flat((gram + kind * SALT) % self.buckets)

    def compute_output_shape(self, token_ids_shape):
        return (token_ids_shape[0], self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "buckets": self.buckets,
            "longest": self.longest,
            **self.spell.config,
        }


def linear_part(model):
    """Return the linear classifier of n-grams whose logits a model adds, None without one."""
    parts = (layer for layer in model.layers if isinstance(layer, LinearNgrams))
    return next(parts, None)


def _flat(values):
    """Return (B, N) of (B, ...)."""
    return ops.reshape(values, (ops.shape(values)[0], -1))
