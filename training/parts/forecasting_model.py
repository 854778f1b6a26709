"""The model of the task `forecasting`: scaled numbers in, scaled numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from seqkeras.data.series import known_places
from seqkeras.models import BandWidths, Forecaster, LinearForecast
from seqkeras.models.linear_forecast import EPSILON
from seqkeras.training.parts.encoders import RECURRENT, encoder_of, with_positions

if TYPE_CHECKING:
    from seqkeras.serving.rows import Rows

CONVOLVED = 3  # steps
STEP = 0.25  # of the network's outputs: what it adds to a linear part grows slowly
BANDS = "bands"  # name of the layer that calibration sets
LEAST_DISTANCE = 1e-3  # of two quantiles at first, of a deviation


def forecasting_model(options: Any, reading: Any) -> keras.Model:
    """Return a functional model of "window" (B, context, features) and "known" (B, horizon,
    covariates), from `seqkeras.serving.rows.Rows`, to (B, horizon, targets), or (…,
    quantiles).

        y = linear(window, known) + 1/4 network(window, known)
        y = network(window, known), plus the last value of each target with --from-last

    The quantiles pass through `BandWidths`, which calibration sets behind the training.
    All numbers are scaled, those that it reads and those that it forecasts: see
    `seqkeras.serving.rows`; with `by_window` the targets of each window once more, by its own mean
    and deviation. The network begins at 0 beside a linear part, and reads the targets less their
    last value if they drift.

    Args:
        options: `ForecastingOptions`.
        reading: the `ForecastingReading`, with its `rows`, `context`, `by_window` and
            `linear_parts`.
    """
    rows, parts, targets = reading.rows, reading.linear_parts, len(options.targets)
    length = None if options.causal else reading.context
    inputs = {"window": keras.Input((length, rows.num_features), name="window")}
    if rows.num_known:
        inputs["known"] = keras.Input((options.horizon, rows.num_known), name="known")
    window, read = inputs["window"], dict(inputs)
    if reading.by_window:
        past = window[..., :targets]
        level = ops.mean(past, axis=1, keepdims=True)  # (B, 1, C)
        size = ops.sqrt(ops.mean(ops.square(past - level), axis=1, keepdims=True) + EPSILON)
        window = ops.concatenate([(past - level) / size, window[..., targets:]], axis=-1)
        read["window"] = window
    last = window[:, -1:, :targets]
    linear = None
    if parts:
        linear = _linear(options, reading, window, inputs.get("known"))
        if not reading.by_window and all(part.drifts for part in parts):
            past = window[..., :targets] - last
            read["window"] = ops.concatenate([past, window[..., targets:]], axis=-1)
    elif options.from_last:
        linear = last
    core = _transformer if options.model == "transformer" else _recurrent
    values, output = (_causal if options.causal else core)(options, reading, read)
    if parts:
        values = values * STEP
        output.kernel.assign(ops.zeros_like(output.kernel))
        if options.quantiles:
            output.bias.assign(_of_errors(parts, options.quantiles, output))
    if linear is not None:  # values (B, horizon, C) or (B, horizon, C, quantiles)
        values = values + (linear[..., None] if options.quantiles else linear)
    if reading.by_window:
        size, level = (
            (number[..., None] if options.quantiles else number) for number in (size, level)
        )
        values = values * size + level
    model = keras.Model(inputs, values)
    return with_bands(options, model) if options.has_bands() else model


def with_bands(options: Any, model: keras.Model) -> keras.Model:
    """Return a model of the same inputs whose quantiles pass through `BandWidths`."""
    layer = BandWidths(options.quantiles, len(options.targets), name=BANDS)
    return keras.Model(model.input, layer(model.output))


def known_features(rows: Rows) -> list[int]:
    """Return the indices of the known features in a row of the past."""
    missing = sum(column.may_be_missing for column in rows.columns)
    return known_places(rows, len(rows.numbers) + missing)


def _linear(options, reading, window, known):
    """Return (B, horizon, C) of a `LinearForecast` with the weights that were found."""
    rows, parts = reading.rows, reading.linear_parts
    orders = [max(part.orders[cycle] for part in parts) for cycle in range(len(parts[0].orders))]
    layer = LinearForecast(options.horizon, len(parts), known_features(rows), orders)
    values = layer(window, known)
    num_covariates = rows.num_known - 2 * len(orders)
    seasons = [part.season_of(orders, num_covariates) for part in parts]
    kernels, biases = ([getattr(part, name) for part in parts] for name in ("kernel", "bias"))
    layer.set_weights([np.stack(weights) for weights in (seasons, kernels, biases)])
    return values


def _of_errors(parts, quantiles, output):
    """Return the bias with which the last layer of a network gives the quantiles of the errors that
    the linear parts make in the folds."""
    errors = [np.quantile(part.errors, quantiles, axis=0) for part in parts]  # (quantiles, horizon)
    values = np.stack(errors, axis=-1) / STEP
    lowest, distances = values[:1], np.maximum(np.diff(values, axis=0), LEAST_DISTANCE)
    of_softplus = distances + np.log(-np.expm1(-distances))  # its inverse
    bias = np.moveaxis(np.concatenate([lowest, of_softplus]), 0, -1)
    if output.units < bias.size:  # of one step after the other
        bias = bias.mean(axis=0)
    return bias.reshape(-1)


def scale_and_growth(rows: Rows, spreads: Sequence[float]) -> tuple[Any, Any]:
    """Return the scale and the growth of `seqkeras.losses.ForecastLoss` by which the loss of scaled
    numbers is the loss of the file's numbers, in units of their spread.

        z = (x - m) / d          (x - x') / s = (z - z') / (s / d)
        z = (log(1 + x) - m) / d (x - x') / s = (exp(d z) - exp(d z')) / (s / exp(m))

    Args:
        rows: the `seqkeras.serving.rows.Rows`, with mean m and deviation d of each target.
        spreads: s, of each target.
    """
    targets = rows.columns[: len(spreads)]
    scale = [
        spread / (math.exp(column.mean) if column.log else column.deviation)
        for column, spread in zip(targets, spreads)
    ]
    return scale, [column.deviation if column.log else 0.0 for column in targets]


def _recurrent(options, reading, inputs):
    network = Forecaster(
        options.horizon,
        options.units,
        options.num_layers,
        options.model,
        options.decoder,
        num_targets=len(options.targets),
        num_known=reading.rows.num_known,
        quantiles=options.quantiles,
        dropout=options.dropout,
    )
    return network(inputs), network.output_layer


def _transformer(options, reading, inputs):
    """Return encoder blocks over the past; all steps come from the state of the last one. See
    `_all_at_once`."""
    hidden = keras.layers.Dense(options.units)(inputs["window"])  # (B, S, D)
    hidden = with_positions(options.position_kind, hidden, reading.context)
    return _all_at_once(options, reading, inputs, _encoder(options)(hidden)[:, -1])


def _encoder(options):
    return encoder_of(
        options.position_kind,
        options.num_layers,
        options.units,
        options.num_heads,
        4 * options.units,
        activation="gelu",
        pre_norm=True,
        dropout=options.dropout,
        attention_window=options.attention_window,
        causal=options.causal,
    )


def _causal(options, reading, inputs):
    """Return values and their layer, of a network whose layers read no later step, from the start
    of a series. See `_all_at_once`.

        h = cells over the past; or blocks over x + gelu(W [x(t - 2); x(t - 1); x(t)]), x = W z + b;
            or blocks that know distances over x

    Reference: Baevski et al. 2020, section 2, https://arxiv.org/abs/2006.11477 (convolution in
    place of positions)
    """
    hidden = inputs["window"]
    if options.model != "transformer":
        for _ in range(options.num_layers):
            hidden = keras.layers.Dropout(options.dropout)(hidden)
            hidden = RECURRENT[options.model](options.units, return_sequences=True)(hidden)
        return _all_at_once(options, reading, inputs, hidden[:, -1])
    hidden = keras.layers.Dense(options.units)(hidden)
    if options.position_kind is None:
        hidden = hidden + keras.layers.Conv1D(
            options.units, CONVOLVED, padding="causal", activation="gelu"
        )(hidden)
    return _all_at_once(options, reading, inputs, _encoder(options)(hidden)[:, -1])


def _all_at_once(options, reading, inputs, hidden):
    """Return all steps from the vector (B, D) of the past, and what is known of the future; and the
    layer whose outputs they are."""
    shape = (options.horizon, len(options.targets), max(1, len(options.quantiles)))
    if reading.rows.num_known:
        known = keras.layers.Flatten()(inputs["known"])
        hidden = keras.layers.Concatenate()([hidden, known])
    output = keras.layers.Dense(int(np.prod(shape)))
    values = keras.layers.Reshape(shape)(output(hidden))
    if not options.quantiles:
        return values[..., 0], output
    lowest, distances = values[..., :1], ops.softplus(values[..., 1:])
    return ops.cumsum(ops.concatenate([lowest, distances], axis=-1), axis=-1), output
