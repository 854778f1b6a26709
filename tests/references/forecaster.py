"""A recurrent forecaster, one window without padding at a time, and the pinball loss."""

import numpy as np

from tests.references.language_models import recurrent_stack


def statistics(window):
    """Kim et al. 2022, section 3: mean and deviation of each feature over the window."""
    mean = window.mean(axis=0)
    return mean, np.sqrt(np.mean((window - mean) ** 2, axis=0) + 1e-6)


def no_crossing(outputs, num_targets, num_quantiles):
    """(C quantiles,) to (C, quantiles): the lowest, then distances that are positive."""
    rows = outputs.reshape(num_targets, num_quantiles)
    values = np.zeros(rows.shape, rows.dtype)
    for target, row in enumerate(rows):
        values[target, 0] = row[0]
        for place in range(1, num_quantiles):
            values[target, place] = values[target, place - 1] + np.log1p(np.exp(row[place]))
    return values


def forecast(window, known, cell, weights, *, num_targets, quantiles, scale, targets=None):
    """(horizon, C) or (horizon, C, quantiles) for one (S, F) window; known is (horizon, K).

    `weights` are "encoder" and "decoder", each layer's, and "output", (kernel, bias); without a
    decoder all steps leave the output at once. With `targets` the decoder reads those.
    """
    mean, deviation = statistics(window)
    if not scale:
        mean, deviation = np.zeros_like(mean), np.ones_like(deviation)
    window = (window - mean) / deviation
    mean, deviation = mean[:num_targets], deviation[:num_targets]
    _, states = recurrent_stack(window[None], None, cell, weights["encoder"])
    kernel, bias = weights["output"]
    horizon = len(known)

    def values_of(outputs):
        if quantiles:
            return no_crossing(outputs, num_targets, len(quantiles))
        return outputs

    if "decoder" not in weights:
        hidden = states[-2 if cell == "lstm" else -1][0]
        outputs = np.concatenate([hidden, known.ravel()]) @ kernel + bias
        values = [values_of(each) for each in outputs.reshape(horizon, -1)]
    else:
        values, previous = [], window[-1, :num_targets]
        for t in range(horizon):
            x = np.concatenate([previous, known[t]])[None, None]
            hidden, states = recurrent_stack(x, None, cell, weights["decoder"], states)
            values.append(values_of(hidden[0, 0] @ kernel + bias))
            previous = values[-1]
            if quantiles:
                previous = previous[:, np.argmin(np.abs(np.array(quantiles) - 0.5))]
            if targets is not None:
                previous = (targets[t] - mean) / deviation
    if quantiles:
        mean, deviation = mean[:, None], deviation[:, None]
    return np.array(values) * deviation + mean


def pinball(targets, predictions, quantiles):
    """Koenker and Bassett 1978, the mean over targets and quantiles."""
    losses = []
    for target, row in zip(targets.ravel(), predictions.reshape(-1, len(quantiles)), strict=True):
        for q, prediction in zip(quantiles, row, strict=True):
            error = target - prediction
            losses.append(q * error if error >= 0 else (q - 1) * error)
    return np.mean(losses)
