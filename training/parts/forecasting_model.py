"""The model of the task `forecasting`: scaled numbers in, scaled numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from seqkeras.models import Forecaster
from seqkeras.training.parts.encoders import RECURRENT, encoder_of, with_positions

if TYPE_CHECKING:
    from seqkeras.serving.rows import Rows

CONVOLVED = 3  # steps


def forecasting_model(options: Any, rows: Rows) -> keras.Model:
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
    length = None if options.causal else options.context
    inputs = {"window": keras.Input((length, rows.num_features), name="window")}
    if rows.num_known:
        inputs["known"] = keras.Input((options.horizon, rows.num_known), name="known")
    core = _transformer if options.model == "transformer" else _recurrent
    core = _causal if options.causal else core
    values = core(options, rows, inputs)  # (B, horizon, C) or (B, horizon, C, quantiles)
    if options.from_last:
        last = inputs["window"][:, -1:, : len(options.targets)]  # (B, 1, C)
        values = values + (last[..., None] if options.quantiles else last)
    return keras.Model(inputs, values)


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
    hidden = keras.layers.Dense(options.units)(inputs["window"])  # (B, S, D)
    hidden = with_positions(options.position_kind, hidden, options.context)
    return _all_at_once(options, rows, inputs, _encoder(options)(hidden)[:, -1])


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


def _causal(options, rows, inputs):
    """Return the same of layers that read no later step, from the start of a series.

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
        return _all_at_once(options, rows, inputs, hidden[:, -1])
    hidden = keras.layers.Dense(options.units)(hidden)
    if options.position_kind is None:
        hidden = hidden + keras.layers.Conv1D(
            options.units, CONVOLVED, padding="causal", activation="gelu"
        )(hidden)
    return _all_at_once(options, rows, inputs, _encoder(options)(hidden)[:, -1])


def _all_at_once(options, rows, inputs, hidden):
    """Return all steps from the vector (B, D) of the past, and what is known of the future."""
    shape = (options.horizon, len(options.targets), max(1, len(options.quantiles)))
    if rows.num_known:
        known = keras.layers.Flatten()(inputs["known"])
        hidden = keras.layers.Concatenate()([hidden, known])
    values = keras.layers.Reshape(shape)(keras.layers.Dense(int(np.prod(shape)))(hidden))
    if not options.quantiles:
        return values[..., 0]
    lowest, distances = values[..., :1], ops.softplus(values[..., 1:])
    return ops.cumsum(ops.concatenate([lowest, distances], axis=-1), axis=-1)
