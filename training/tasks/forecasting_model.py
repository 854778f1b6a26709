"""The model of the task `forecasting`: raw numbers in, raw numbers out, the scaling between."""

import keras
import numpy as np
from keras import ops

from seqkeras.embeddings import SinusoidalPositions
from seqkeras.models import Forecaster
from seqkeras.transformer import Encoder, EncoderBlock
from training.tasks.scaling import scaling


def forecasting_model(options, rows, mean, deviation):
    """A functional model of "window" (B, context, features) and "known" (B, horizon, covariates),
    as `serving.rows.Rows` makes them, to (B, horizon, targets), or (…, quantiles).

        y = g^-1(base + deviation core((g(window) - mean) / deviation, known))
        base: g(the last value) of each target, or its mean
        g(x) = log(1 + x) of columns that are so named, else x

    Numbers that are known are scaled as those of the past; 0 or 1 and cycles stay as they are.

    Args:
        options: `ForecastingOptions`.
        rows: the `Rows`.
        mean, deviation: of g of each column of numbers, in the training part.
    """
    targets = len(options.targets)
    window = keras.Input((options.context, rows.num_features), name="window")
    inputs = {"window": window}
    numbers = [column.name in options.log for column in rows.columns if not column.categories]
    read = _logarithm(window, numbers)
    scaled = {"window": scaling(mean, deviation, rows.num_features)(read)}
    if rows.num_known:
        inputs["known"] = keras.Input((options.horizon, rows.num_known), name="known")
        logs = [bool(log) for log in _of_known(rows, numbers, False)]
        own = _of_known(rows, mean, 0.0), _of_known(rows, deviation, 1.0)
        known = _logarithm(inputs["known"], logs)
        scaled["known"] = scaling(*own, rows.num_known)(known)
    core = _transformer if options.model == "transformer" else _recurrent
    change = core(options, rows, scaled)  # (B, horizon, C) or (B, horizon, C, quantiles)
    base = np.zeros(targets) if options.from_last else mean[:targets]
    variance = np.square(deviation[:targets])
    back = keras.layers.Normalization(axis=2, mean=base, variance=variance, invert=True)
    values = back(change)
    if options.from_last:
        last = read[:, -1:, :targets]  # (B, 1, C)
        values = values + (last[..., None] if options.quantiles else last)
    if any(numbers[:targets]):
        own = np.array(numbers[:targets])
        values = ops.where(own[:, None] if options.quantiles else own, ops.exp(values) - 1, values)
    return keras.Model(inputs, values)


def _logarithm(features, of):
    """Features of which the first are log(1 + x) where `of` says so; what is under 0 is as 0."""
    if not any(of):
        return features
    of = np.array([*of, *[False] * (features.shape[-1] - len(of))])
    return ops.where(of, ops.log(1 + ops.maximum(features, 0)), features)


def _of_known(rows, numbers, other):
    """A number of each known feature, of numbers of the columns of numbers."""
    of_column = iter(numbers)
    by_name = {column.name: next(of_column) for column in rows.columns if not column.categories}
    return [by_name.get(column.name, other) for column in rows.known for _ in range(column.width)]


def _recurrent(options, rows, scaled):
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
    )(scaled)


def _transformer(options, rows, scaled):
    """Encoder blocks over the past; all steps from the state of the last one."""
    shape = (options.horizon, len(options.targets), max(1, len(options.quantiles)))
    hidden = keras.layers.Dense(options.units)(scaled["window"])  # (B, S, D)
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
        known = keras.layers.Flatten()(scaled["known"])
        hidden = keras.layers.Concatenate()([hidden, known])
    values = keras.layers.Reshape(shape)(keras.layers.Dense(int(np.prod(shape)))(hidden))
    if not options.quantiles:
        return values[..., 0]
    lowest, distances = values[..., :1], ops.softplus(values[..., 1:])
    return ops.cumsum(ops.concatenate([lowest, distances], axis=-1), axis=-1)
