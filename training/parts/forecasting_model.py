"""The model of the task `forecasting`: scaled numbers in, scaled numbers out."""

import math

import keras
import numpy as np
from keras import ops

from seqkeras.embeddings import SinusoidalPositions
from seqkeras.models import Forecaster
from seqkeras.transformer import Encoder, EncoderBlock


def forecasting_model(options, rows):
    """Return a functional model of "window" (B, context, features) and "known" (B, horizon,
    covariates), from `seqkeras.serving.rows.Rows`, to (B, horizon, targets), or (…,
    quantiles).

        y = core(window, known), plus the last value of each target with --from-last

    All numbers are scaled, those that it reads and those that it forecasts: see
    `seqkeras.serving.rows`.

    Args:
        options: `ForecastingOptions`.
        rows: the `Rows`.
    """
    inputs = {"window": keras.Input((options.context, rows.num_features), name="window")}
    if rows.num_known:
        inputs["known"] = keras.Input((options.horizon, rows.num_known), name="known")
    core = _transformer if options.model == "transformer" else _recurrent
    values = core(options, rows, inputs)  # (B, horizon, C) or (B, horizon, C, quantiles)
    if options.from_last:
        last = inputs["window"][:, -1:, : len(options.targets)]  # (B, 1, C)
        values = values + (last[..., None] if options.quantiles else last)
    return keras.Model(inputs, values)


def scale_and_growth(rows, spreads):
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


def _recurrent(options, rows, inputs):
    return Forecaster(
        options.horizon,
        options.units,
        options.num_layers,
        options.model,
        options.decoder,
        num_targets=len(options.targets),
        num_known=rows.num_known,
        quantiles=options.quantiles,
        dropout=options.dropout,
    )(inputs)


def _transformer(options, rows, inputs):
    """Return encoder blocks over the past; all steps come from the state of the last one."""
    shape = (options.horizon, len(options.targets), max(1, len(options.quantiles)))
    hidden = keras.layers.Dense(options.units)(inputs["window"])  # (B, S, D)
    positions = np.arange(options.context, dtype="int32")[None]
    hidden = hidden + SinusoidalPositions(options.units)(positions)
    block = EncoderBlock(
        options.units,
        options.num_heads,
        4 * options.units,
        activation="gelu",
        pre_norm=True,
        dropout=options.dropout,
    )
    hidden = Encoder(block, options.num_layers)(hidden)[:, -1]
    if rows.num_known:
        known = keras.layers.Flatten()(inputs["known"])
        hidden = keras.layers.Concatenate()([hidden, known])
    values = keras.layers.Reshape(shape)(keras.layers.Dense(int(np.prod(shape)))(hidden))
    if not options.quantiles:
        return values[..., 0]
    lowest, distances = values[..., :1], ops.softplus(values[..., 1:])
    return ops.cumsum(ops.concatenate([lowest, distances], axis=-1), axis=-1)
