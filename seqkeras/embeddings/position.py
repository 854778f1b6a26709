"""Vectors of positions in a sequence."""

import keras
import numpy as np
from keras import ops

from seqkeras.embeddings.ids import require_ids
from seqkeras.shapes import require_counts, require_positive
from seqkeras.values import known_numbers

FORMS = ("paper", "tensor2tensor", "marian")
EXACT_BITS = 11  # of a frequency, so that its products with positions under 2^13 are exact


@keras.saving.register_keras_serializable("seqkeras")
class SinusoidalPositions(keras.layers.Layer):
    """Sines and cosines of the position, at wavelengths from 2 pi to 10000 * 2 pi.

        "paper":         P(p, 2i) = sin(p / 10000^(2i / D)),    P(p, 2i + 1) = cos of the same
        "tensor2tensor": P(p, i)  = sin(p / 10000^(i / (n - 1))),   P(p, n + i) = cos of the same
        "marian":        P(p, i)  = sin(p / 10000^(2i / D)),    P(p, n + i)  = cos of the same

    Notation: p is the paper's pos, D its d_model; n = D / 2. Tensor2Tensor, the paper's own code,
    sets sines before cosines, and its last wavelength is 10000 * 2 pi itself. An odd D leaves out
    the last cosine; Tensor2Tensor appends a zero. Values are within 1e-6 of the formula up to
    position 8,191 in float32.

    Args:
        dim: D.
        form: "paper", "tensor2tensor" or "marian".

    Call arguments:
        positions: (...) integers, from 0.

    Returns:
        (..., D).

    Raises:
        ValueError: if dim is under 2, or the form unknown.

    Reference: Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762;
    https://github.com/tensorflow/tensor2tensor (common_attention.get_timing_signal_1d);
    https://github.com/marian-nmt/marian

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.embeddings import SinusoidalPositions
        >>> ops.convert_to_numpy(SinusoidalPositions(4)(np.array([0]))).tolist()
        [[0.0, 1.0, 0.0, 1.0]]
        >>> ops.convert_to_numpy(SinusoidalPositions(4, "tensor2tensor")(np.array([0]))).tolist()
        [[0.0, 0.0, 1.0, 1.0]]
    """

    def __init__(self, dim: int, form: str = "paper", **kwargs):
        super().__init__(**kwargs)
        if dim < 2:
            raise ValueError(f"SinusoidalPositions: dim must be at least 2; received {dim}.")
        if form not in FORMS:
            raise ValueError(
                f"SinusoidalPositions: form must be one of {FORMS}; received {form!r}."
            )
        self.dim = dim
        self.form = form

    def call(self, positions):
        sines, cosines = self._waves(positions)  # (..., n) each
        if self.form == "paper":
            shape = (*ops.shape(positions), 2 * sines.shape[-1])
            waves = ops.reshape(ops.stack([sines, cosines], axis=-1), shape)[..., : self.dim]
        else:
            waves = ops.concatenate([sines, cosines], axis=-1)[..., : self.dim]
            missing = ops.zeros_like(waves[..., : self.dim - waves.shape[-1]])
            waves = ops.concatenate([waves, missing], axis=-1)
        return ops.cast(waves, self.compute_dtype)

    def _waves(self, positions):
        """sin and cos of p f, where f is split in two, f = a + b, and p a is exact."""
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        p = ops.cast(positions, dtype)[..., None]
        f = self._frequencies()
        mantissas, exponents = np.frexp(f)
        a = np.ldexp(np.round(np.ldexp(mantissas, EXACT_BITS)), exponents - EXACT_BITS)
        pa = p * ops.convert_to_tensor(a, dtype)
        pb = p * ops.convert_to_tensor(f - a, dtype)
        sines = ops.sin(pa) * ops.cos(pb) + ops.cos(pa) * ops.sin(pb)
        cosines = ops.cos(pa) * ops.cos(pb) - ops.sin(pa) * ops.sin(pb)
        return sines, cosines

    def _frequencies(self):
        if self.form == "tensor2tensor":
            n = self.dim // 2
            return 10000.0 ** (-np.arange(n) / max(n - 1, 1))
        return 10000.0 ** (-2 * np.arange((self.dim + 1) // 2) / self.dim)

    def compute_output_shape(self, positions_shape):
        return (*positions_shape, self.dim)


@keras.saving.register_keras_serializable("seqkeras")
class LearnedPositions(keras.layers.Layer):
    """A vector for each position, learned.

        y(p) = W_(first + p)

    Notation: W is GPT's position embedding matrix W_p.

    Args:
        max_length: the number of positions there are vectors for.
        dim: D.
        stddev: stddev of the normal numbers that the vectors start as.
        first_position: first, how many rows stand before the one of position 0, as in RoBERTa.

    Call arguments:
        positions: (..., T) integers, from 0.

    Returns:
        (..., T, D).

    Raises:
        ValueError: if a size is not positive, first_position is negative, T is more than
            max_length, or a position that is known before the graph runs is not under it.

    Reference: Gehring et al. 2017, section 3.1, https://arxiv.org/abs/1705.03122; Radford et al.
    2018, section 3.1

    Example:
        >>> import numpy as np
        >>> from seqkeras.embeddings import LearnedPositions
        >>> layer = LearnedPositions(max_length=16, dim=4, first_position=2)  # as RoBERTa
        >>> tuple(layer(np.arange(7)[None]).shape), layer.get_weights()[0].shape
        ((1, 7, 4), (18, 4))
    """

    def __init__(
        self, max_length: int, dim: int, stddev: float = 0.02, first_position: int = 0, **kwargs
    ):
        super().__init__(**kwargs)
        require_positive(self, max_length=max_length, dim=dim)
        require_counts(self, first_position=first_position)
        self.max_length = max_length
        self.dim = dim
        self.stddev = stddev
        self.first_position = first_position

    def build(self, positions_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.first_position + self.max_length, self.dim),
            initializer=keras.initializers.RandomNormal(stddev=self.stddev),
        )

    def call(self, positions):
        self.require_length(positions)
        require_ids(self, "positions", positions, "max_length", self.max_length)
        return ops.take(self.embeddings, positions + self.first_position, axis=0)

    def require_length(self, positions):
        """Raise a ValueError if a sequence has more tokens than there are positions."""
        length = positions.shape[-1]
        if not isinstance(length, int) or length <= self.max_length:  # an open one is a symbol
            return
        if keras.backend.backend() == "torch" and known_numbers(positions) is None:
            return  # Keras infers shapes there from lengths that it makes up
        raise ValueError(
            f"LearnedPositions: a sequence must have at most max_length, {self.max_length}, "
            f"positions; received {length}."
        )

    def compute_output_shape(self, positions_shape):
        return (*positions_shape, self.dim)
