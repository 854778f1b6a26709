"""Recurrent forecaster: a window of a series, then the values that follow it.

It leaves out probabilistic outputs other than quantiles, and attention over the window.
"""

import functools
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from seqkeras.composites import tracing_nodes
from seqkeras.composites.recurrent import keras_rnn
from seqkeras.masks import padding_mask
from seqkeras.models.inputs import require_inputs
from seqkeras.models.recurrent_stack import RecurrentStack, values_dtype
from seqkeras.models.rnn_cells import config_of, is_qrnn, require_cell, with_objects
from seqkeras.shapes import fits, require_counts, require_positive
from seqkeras.values import build_once

DECODERS = ("direct", "recurrent")
EPSILON = 1e-6  # beside the variance of a window, which may be zero


@keras.saving.register_keras_serializable("seqkeras")
class Forecaster(keras.Model):
    """Recurrent layers read the window; a decoder writes all values of the horizon.

        h = final state of RNN(window)
        direct:     y(1..horizon) = V [h; known(1..horizon)] + b
        recurrent:  s(t) = RNN([y(t-1); known(t)], s(t-1)),  s(0) = h,  y(t) = V s(t) + b

    y(0) is the window's last value. In training y(t-1) is the target if there are targets (teacher
    forcing), else, and always at inference, the model's own prediction. With quantiles, the first
    output is the lowest one and each further output, through a softplus, the distance to the next,
    so that they never cross; the one nearest to 1/2 is what the recurrent decoder reads.

    With `scale` a window is brought to mean 0 and variance 1, each feature by itself, over its real
    steps, and the predictions are brought back: a level that training never saw changes nothing. A
    series of values far under 0.001 needs other units first (see `EPSILON`).

    Args:
        horizon: the number of steps to predict.
        units: U, size of each layer's state, in the encoder and in a recurrent decoder.
        num_layers: number of layers of both.
        cell: "gru", "lstm", "simple_rnn", "qrnn", or a `QRNN` or a cell of whatever size, ours,
            Keras's or your own, as a pattern of each layer's (`seqkeras.models.rnn_cells`). A QRNN
            goes with the direct decoder.
        decoder: "direct" or "recurrent".
        num_targets: C, how many of the window's features, the first ones, are predicted.
        num_known: K, the number of covariates whose future is known (calendar, plans).
        quantiles: increasing numbers between 0 and 1; none for one value, as the mean is.
        scale: whether each window is scaled by itself.
        dropout: dropout rate of the inputs of each of the encoder's layers.

    Call arguments (one dictionary):
        window: (B, S, F), the past, padded on the right; the targets are its first C features.
        lengths: (B,) integers, the real steps of each window; without them every step is real.
        known: (B, horizon, K), if num_known is not 0.
        targets: (B, horizon, C) numbers, for teacher forcing; read in training only.

    Returns:
        (B, horizon, C) or, with quantiles, (B, horizon, C, quantiles); in float32 at least.

    Raises:
        ValueError: if a size is not positive, num_known is negative, the cell or the decoder is
            unknown or do not go together, the quantiles do not increase between 0 and 1, window or
            known have another shape or another number of features than before, or an input is
            missing or unknown.

    Train quantiles with `seqkeras.losses.PinballLoss`.

    Reference: encoder-decoder: Sutskever et al. 2014, https://arxiv.org/abs/1409.3215; direct and
    quantiles: Wen et al. 2017, https://arxiv.org/abs/1711.11053; scale: Kim et al. 2022, section 3,
    https://openreview.net/forum?id=cGDAkQo1C0p, without its learned weights

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Forecaster
        >>> model = Forecaster(horizon=3, units=4, num_known=2, quantiles=[0.1, 0.5, 0.9])
        >>> inputs = {"window": np.arange(14.0).reshape(1, 7, 2), "known": np.zeros((1, 3, 2))}
        >>> values = model(inputs)
        >>> tuple(values.shape), bool((np.diff(values, axis=-1) >= 0).all())  # they never cross
        ((1, 3, 1, 3), True)
    """

    def __init__(
        self,
        horizon: int,
        units: int,
        num_layers: int = 1,
        cell: str | keras.layers.Layer = "gru",
        decoder: str = "direct",
        num_targets: int = 1,
        num_known: int = 0,
        quantiles: Sequence[float] = (),
        scale: bool = False,
        dropout: float = 0.0,
        **kwargs,
    ):
        # Levels and scales of a series may be over float16's range: the layers cast, not the model.
        super().__init__(autocast=False, **kwargs)
        self.sizes = {
            "horizon": horizon,
            "units": units,
            "num_layers": num_layers,
            "num_targets": num_targets,
        }
        require_positive(self, **self.sizes)
        require_cell(self, cell)
        require_counts(self, num_known=num_known)
        if decoder not in DECODERS:
            raise ValueError(
                f"Forecaster: decoder must be one of {DECODERS}; received {decoder!r}."
            )
        if decoder == "recurrent" and is_qrnn(cell):
            raise ValueError(
                "Forecaster: a QRNN reads a window and starts no decoder: it goes with "
                'decoder="direct"; received "recurrent".'
            )
        bounds = [0, *quantiles, 1]
        if not all(low < high for low, high in zip(bounds, bounds[1:])):
            raise ValueError(
                f"Forecaster: quantiles must increase between 0 and 1; received {quantiles}."
            )
        self.cell_config = functools.partial(config_of, cell)  # hides it from Keras's tracking
        self.decoder_name = decoder
        self.num_known = num_known
        self.quantiles = list(quantiles)
        self.scale = scale
        policy = self.dtype_policy.name
        self.values_dtype = values_dtype(self)
        self.encoder = RecurrentStack(cell, units, num_layers, dropout, dtype=policy)
        self.decoder = None
        if decoder == "recurrent":
            self.decoder = RecurrentStack(cell, units, num_layers, dtype=policy)
        steps = horizon if decoder == "direct" else 1
        self.output_layer = keras.layers.Dense(
            steps * num_targets * max(1, len(quantiles)), dtype=self.values_dtype
        )

    def _require_inputs(self, inputs):
        known = ["known"] if self.num_known else []
        require_inputs(self, inputs, ["window", *known], ["lengths", "targets"])

    def _require_shapes(self, shapes):
        horizon, targets = self.sizes["horizon"], self.sizes["num_targets"]
        window = tuple(shapes["window"])
        if len(window) != 3 or window[-1] is None or window[-1] < targets:
            raise ValueError(
                f"Forecaster: window must have shape (batch, length, features), {targets} features "
                f"at least; received {window}."
            )
        if self.num_known and not fits(shapes["known"], ("batch", horizon, self.num_known)):
            raise ValueError(
                f"Forecaster: known must have shape (batch, {horizon}, {self.num_known}); received "
                f"{tuple(shapes['known'])}."
            )
        if self.built and window[-1] != self.num_features:
            raise ValueError(
                f"Forecaster: window must have {self.num_features} features, as those that the "
                f"model was built for; received {window}."
            )

    def build(self, inputs_shape):
        self._require_inputs(inputs_shape)
        self._require_shapes(inputs_shape)
        horizon, targets = self.sizes["horizon"], self.sizes["num_targets"]
        self.num_features = inputs_shape["window"][-1]
        build_once(self.encoder, (None, None, self.num_features))
        if self.decoder is None:
            build_once(self.output_layer, (None, self.sizes["units"] + horizon * self.num_known))
        else:
            build_once(self.decoder, (None, None, targets + self.num_known))
            build_once(self.output_layer, (None, self.sizes["units"]))

    def call(self, inputs, training=False):
        self._require_inputs(inputs)
        self._require_shapes({name: np.shape(array) for name, array in inputs.items()})
        window = ops.cast(inputs["window"], self.values_dtype)
        mask = None
        real = ops.ones_like(window[..., 0], dtype="bool")  # (B, S)
        if "lengths" in inputs:
            mask = real = padding_mask(inputs["lengths"], ops.shape(window)[1])
        window, mean, deviation = self._scaled(window, real[..., None])
        _, states = self.encoder(window, mask=mask, training=training)
        if self.num_known:
            known = ops.cast(inputs["known"], self.values_dtype)
        else:
            known = ops.zeros((ops.shape(window)[0], self.sizes["horizon"], 0), self.values_dtype)
        if self.decoder is None:
            outputs = self._direct(states[-self.encoder.num_states], known)
        elif training and "targets" in inputs:
            targets = (ops.cast(inputs["targets"], self.values_dtype) - mean) / deviation
            previous = ops.concatenate([self._last(window, real)[:, None], targets[:, :-1]], axis=1)
            outputs = self._taught(states, known, previous)
        else:
            outputs = self._free(states, known, self._last(window, real))
        values = self._values(outputs)
        if self.quantiles:
            mean, deviation = mean[..., None], deviation[..., None]
        return values * deviation + mean

    def _scaled(self, window, real):
        """Return the window, zero at padded steps; mean and deviation of the targets, (B, 1, C)
        each."""
        window = ops.where(real, window, 0)
        steps = ops.maximum(ops.sum(ops.cast(real, window.dtype), axis=1, keepdims=True), 1)
        mean = ops.sum(window, axis=1, keepdims=True) / steps  # (B, 1, F)
        centred = ops.where(real, window - mean, 0)
        variance = ops.sum(ops.square(centred), axis=1, keepdims=True) / steps
        deviation = ops.sqrt(variance + EPSILON)
        if self.scale:
            window = centred / deviation
        else:
            mean, deviation = ops.zeros_like(mean), ops.ones_like(deviation)
        targets = self.sizes["num_targets"]
        return window, mean[..., :targets], deviation[..., :targets]

    def _last(self, window, real):
        """Return (B, C), the targets at the last real step; zero for a window without one."""
        steps = ops.sum(ops.cast(real, "int32"), axis=1, keepdims=True)
        is_last = ops.arange(ops.shape(window)[1], dtype="int32") == steps - 1  # (B, S)
        last = ops.sum(ops.where(is_last[..., None], window, 0), axis=1)
        return last[:, : self.sizes["num_targets"]]

    def of_state(self, state, known):
        """Return the forecasts of the direct decoder, by the state (B, U) of the highest layer and
        `known` (B, horizon, K), of windows that are not scaled."""
        return self._values(self._direct(state, known))

    def _direct(self, state, known):
        """Return (B, horizon, C quantiles), all steps at once."""
        batch_size, horizon, num_known = ops.shape(known)
        hidden = ops.cast(state, self.values_dtype)
        if num_known:
            known = ops.reshape(known, (batch_size, horizon * num_known))
            hidden = ops.concatenate([hidden, known], axis=-1)
        outputs = self.output_layer(hidden)
        return ops.reshape(outputs, (-1, horizon, self.output_layer.units // horizon))

    def _taught(self, states, known, previous):
        """Return (B, horizon, C quantiles), each step after the true values (B, horizon, C) before
        it."""
        hidden, _ = self.decoder(ops.concatenate([previous, known], axis=-1), initial_state=states)
        return self.output_layer(hidden)

    def _free(self, states, known, last):
        """Return (B, horizon, C quantiles), each step after the predictions before it."""

        def step(known, states):
            previous, *states = states
            inputs = ops.concatenate([previous, known], axis=-1)[:, None]
            hidden, states = self.decoder(inputs, initial_state=states)
            outputs = self.output_layer(hidden[:, 0])
            values = self._values(outputs)
            return outputs, [values[..., self.middle] if self.quantiles else values, *states]

        # A loop for export holds no composite as one node: the steps stand one after the other.
        unroll = tracing_nodes()
        _, outputs, _ = keras_rnn(step, known, [last, *states], unroll=unroll)
        return outputs

    def _values(self, outputs):
        """Map (..., C quantiles) outputs of the last layer to (..., C, quantiles) values that do
        not cross."""
        if not self.quantiles:
            return outputs
        shape = (*ops.shape(outputs)[:-1], self.sizes["num_targets"], len(self.quantiles))
        outputs = ops.reshape(outputs, shape)
        distances = ops.softplus(outputs[..., 1:])
        return ops.cumsum(ops.concatenate([outputs[..., :1], distances], axis=-1), axis=-1)

    @property
    def middle(self):
        """The index of the quantile nearest to 1/2."""
        return min(range(len(self.quantiles)), key=lambda index: abs(self.quantiles[index] - 0.5))

    def get_config(self):
        return {
            **super().get_config(),
            **self.sizes,
            "cell": self.cell_config(),
            "decoder": self.decoder_name,
            "num_known": self.num_known,
            "quantiles": self.quantiles,
            "scale": self.scale,
            "dropout": self.encoder.dropout.rate,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_objects(config, "cell"))
