"""Widths of the bands of a forecaster's quantiles."""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.models.found_weights import add_found_weight
from seqkeras.models.recurrent_stack import values_dtype
from seqkeras.shapes import fits, require_positive

FACTORS = "factors"  # name of the weight


@keras.saving.register_keras_serializable("seqkeras")
class BandWidths(keras.layers.Layer):
    """Quantiles whose distances are multiplied by factors, about a centre that stays.

        z(q) = sum over r < q of f(r) (y(r + 1) - y(r))
        y'(q) = c(y) + z(q) - c(z)          c, the mean of the quantiles nearest to 1/2

    Each target has its own factors f, of every pair of neighbours. They are not trained:
    `seqkeras.training` chooses them on rows held out; at first they are 1.

    Args:
        quantiles: increasing numbers between 0 and 1, Q of them.
        num_targets: C.

    Call arguments:
        values: (B, H, C, Q), the quantiles of each target and step.

    Returns:
        (B, H, C, Q), in float32 at least.

    Raises:
        ValueError: if the quantiles do not increase between 0 and 1, num_targets is not positive,
            or values have another shape.

    Reference: a factor in place of the summand of Romano et al. 2019, section 3,
    https://arxiv.org/abs/1905.03222

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import BandWidths
        >>> layer, values = BandWidths([0.1, 0.5, 0.9]), np.array([[[[1.0, 3.0, 4.0]]]])
        >>> layer.build(values.shape)
        >>> layer.set_weights([np.array([[2.0, 1.0]])])
        >>> ops.convert_to_numpy(layer(values)).tolist()  # the lower half is twice as wide
        [[[[-1.0, 3.0, 4.0]]]]
    """

    def __init__(self, quantiles: Sequence[float], num_targets: int = 1, **kwargs):
        super().__init__(autocast=False, **kwargs)
        require_positive(self, num_targets=num_targets)
        bounds = [0, *quantiles, 1]
        if not all(low < high for low, high in zip(bounds, bounds[1:])):
            raise ValueError(
                f"BandWidths: quantiles must increase between 0 and 1; received {quantiles}."
            )
        self.values_dtype = values_dtype(self)
        self.quantiles, self.num_targets = [*quantiles], num_targets

    def build(self, values_shape):
        if not fits(values_shape, ("batch", "steps", self.num_targets, len(self.quantiles))):
            raise ValueError(
                f"BandWidths: values must have shape (batch, steps, {self.num_targets}, "
                f"{len(self.quantiles)}); received {tuple(values_shape)}."
            )
        shape = (self.num_targets, len(self.quantiles) - 1)
        self.factors = add_found_weight(self, FACTORS, shape, self.values_dtype, "ones")

    def call(self, values):
        values = ops.cast(values, self.values_dtype)
        distances = (values[..., 1:] - values[..., :-1]) * self.factors
        scaled = ops.cumsum(ops.pad(distances, [(0, 0)] * 3 + [(1, 0)]), axis=-1)
        return scaled + (self._centre(values) - self._centre(scaled))

    def _centre(self, values):
        """Return (..., 1), the mean of the quantiles nearest to 1/2, one or two."""
        first, *others = centre_of(self.quantiles)
        centre = values[..., first : first + 1]
        for other in others:
            centre = (centre + values[..., other : other + 1]) / 2
        return centre

    def compute_output_shape(self, values_shape):
        return values_shape

    def get_config(self):
        return {
            **super().get_config(),
            "quantiles": self.quantiles,
            "num_targets": self.num_targets,
        }


def centre_of(quantiles):
    """Return the indices of the quantiles nearest to 1/2: one, or two that are equally near."""
    distances = [round(abs(quantile - 0.5), 9) for quantile in quantiles]
    return [index for index, distance in enumerate(distances) if distance == min(distances)]
