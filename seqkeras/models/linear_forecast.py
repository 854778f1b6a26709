"""Linear forecaster: a season by regression, and a linear map of what is left of a window."""

from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.models.found_weights import add_found_weight
from seqkeras.models.recurrent_stack import values_dtype
from seqkeras.shapes import fits, require_positive

EPSILON = 1e-12  # beside the variance of a window, which may be zero


def waves(sine, cosine, order):
    """Return the list sin(x), cos(x), sin(2 x), cos(2 x), … up to an order, of the sine and the
    cosine of x, NumPy's or Keras's.

        sin(k x) = 2 cos(x) sin((k - 1) x) - sin((k - 2) x), and so the cosine
    """
    sines, cosines = [0 * sine, sine], [0 * cosine + 1, cosine]
    for _ in range(order - 1):
        sines.append(2 * cosine * sines[-1] - sines[-2])
        cosines.append(2 * cosine * cosines[-1] - cosines[-2])
    return [wave for pair in zip(sines[1 : order + 1], cosines[1 : order + 1]) for wave in pair]


@keras.saving.register_keras_serializable("seqkeras")
class LinearForecast(keras.layers.Layer):
    """Forecasts that are linear in the past, about a season that is linear in what is known.

        r(t) = [x(t); sin(k p(t)); cos(k p(t))]      known covariates x, and k = 1 … order waves of
                                                     each cycle's phase p
        e(t) = y(t) - W^T r(t)                       t in the past
        y(h) = W^T r(h) + sum over s of K(s, h) e(s) + b(h)      h to come

    Each target has its own W, K and b. They are not trained: `seqkeras.training` finds them by
    regression, and whoever holds others sets them by `set_weights`.

    Args:
        horizon: H, the number of steps to come.
        num_targets: C, how many of the window's features, the first ones, are forecast.
        known: places in the window of the features that are known of the steps to come, in the
            order of `known`; the sine and cosine of each cycle stand last.
        orders: for each cycle how many waves it has, 0 for none.

    Call arguments:
        window: (B, S, F), the past; S is fixed.
        known: (B, H, K), the known features of the steps to come; None without any.

    Returns:
        (B, H, C), in float32 at least.

    Raises:
        ValueError: if a size is not positive, there are more cycles than known features hold, or
            window or known have another shape.

    Reference: lags: Zeng et al. 2023, section 4, https://arxiv.org/abs/2205.13504; season: Hyndman
    and Athanasopoulos 2021, section 7.4, https://otexts.com/fpp3/useful-predictors.html

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import LinearForecast
        >>> layer = LinearForecast(horizon=3, num_targets=1)
        >>> tuple(layer(np.ones((2, 7, 4))).shape)
        (2, 3, 1)
    """

    def __init__(
        self,
        horizon: int,
        num_targets: int = 1,
        known: Sequence[int] = (),
        orders: Sequence[int] = (),
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        require_positive(self, horizon=horizon, num_targets=num_targets)
        self.values_dtype = values_dtype(self)
        self.horizon, self.num_targets = horizon, num_targets
        self.known, self.orders = [*known], [*orders]
        if 2 * len(self.orders) > len(self.known) or min(self.orders, default=0) < 0:
            raise ValueError(
                "LinearForecast: orders must be numbers of waves of cycles, whose sine and cosine "
                f"are known; received orders={self.orders} and known={self.known}."
            )

    @property
    def _num_covariates(self):
        return len(self.known) - 2 * len(self.orders)

    def build(self, window_shape, known_shape=None):
        self._require_shapes(window_shape, known_shape)
        regressors = self._num_covariates + 2 * sum(self.orders)
        length = window_shape[1]
        self.season = self._weight("season", (self.num_targets, regressors))
        self.kernel = self._weight("kernel", (self.num_targets, length, self.horizon))
        self.bias = self._weight("bias", (self.num_targets, self.horizon))

    def _weight(self, name, shape):
        return add_found_weight(self, name, shape, self.values_dtype)

    def _require_shapes(self, window, known):
        window = tuple(window)
        if len(window) != 3 or window[1] is None or window[-1] < self.num_targets:
            raise ValueError(
                "LinearForecast: window must have shape (batch, length, features), of a fixed "
                f"length and {self.num_targets} features at least; received {window}."
            )
        expected = ("batch", self.horizon, len(self.known))
        if self.known and (known is None or not fits(known, expected)):
            raise ValueError(
                f"LinearForecast: known must have shape (batch, {self.horizon}, "
                f"{len(self.known)}); received {known if known is None else tuple(known)}."
            )

    def call(self, window, known=None):
        window = ops.cast(window, self.values_dtype)
        past = ops.transpose(window[..., : self.num_targets], (2, 0, 1))  # (C, B, S)
        season = 0.0
        if sum(self.season.shape[1:]):
            before = self._regressors(ops.take(window, self.known, axis=-1))
            past = past - self._of_season(before)
            season = self._of_season(self._regressors(ops.cast(known, self.values_dtype)))
        values = season + ops.matmul(past, self.kernel) + self.bias[:, None]  # (C, B, H)
        return ops.transpose(values, (1, 2, 0))

    def _of_season(self, regressors):
        """Return (C, B, T) of (B, T, regressors)."""
        return ops.transpose(ops.matmul(regressors, ops.transpose(self.season)), (2, 0, 1))

    def _regressors(self, known):
        """Return (B, T, regressors) of the known features (B, T, K)."""
        parts = [known[..., : self._num_covariates]]
        for cycle, order in enumerate(self.orders):
            sine = self._num_covariates + 2 * cycle
            parts += waves(known[..., sine : sine + 1], known[..., sine + 1 : sine + 2], order)
        return ops.concatenate(parts, axis=-1)

    def compute_output_shape(self, window_shape, known_shape=None):
        return (window_shape[0], self.horizon, self.num_targets)

    def get_config(self):
        return {
            **super().get_config(),
            "horizon": self.horizon,
            "num_targets": self.num_targets,
            "known": self.known,
            "orders": self.orders,
        }
