"""Language models, one row and one step at a time."""

import numpy as np

from tests.references.attention import key_value_attention, softmax
from tests.references.embeddings import character_cnn, highway, relu
from tests.references.recurrent import gru_step, lstm_step, over_steps, rnn_step

STEPS = {"simple_rnn": (rnn_step, 1), "gru": (gru_step, 1), "lstm": (lstm_step, 2)}


def recurrent_stack(x, mask, cell, layers, states=None):
    """Zaremba et al. 2014, section 3.2: the highest layer's outputs, and all final states.

    `layers` are the weights of each cell, the lowest first; `states` likewise, zeros if None.
    """
    step, num_states = STEPS[cell]
    finals = []
    for level, weights in enumerate(layers):
        start = [np.zeros((len(x), weights[1].shape[0]))] * num_states
        if states is not None:
            start = states[level * num_states : (level + 1) * num_states]
        x, final = over_steps(
            lambda row, *each, weights=weights: step(row, *each, *weights), x, mask, start
        )
        finals += final
    return x, finals


def rnn_language_model(
    token_ids, mask, cell, E, layers, output=None, projection=None, attention=None, past=None
):
    """Mikolov et al. 2010; without (kernel, bias) of the output tied, Press and Wolf 2017.

    With `attention`, its weights, and `past`, its window and its number of parts, Daniluk et al.
    2017.
    """
    h, _ = recurrent_stack(E[token_ids], mask, cell, layers)
    if attention is not None:
        window, num_parts = past
        h, _ = key_value_attention(h, window, num_parts, attention, mask)
    if output is not None:
        return h @ output[0] + output[1]
    if projection is not None:
        h = h @ projection
    return h @ E.T


def projected_lstm_step(x, h, c, kernel, recurrent_kernel, bias, projection):
    """Sak et al. 2014, section 2, without peepholes."""
    h, c = lstm_step(x, h, c, kernel, recurrent_kernel, bias)
    return [projection.T @ h, c]


def projected_lstm(x, mask, weights, reverse=False):
    """Outputs (B, T, P)."""
    units, dim = weights[3].shape
    start = [np.zeros((len(x), dim)), np.zeros((len(x), units))]
    outputs, _ = over_steps(
        lambda row, *states: projected_lstm_step(row, *states, *weights), x, mask, start, reverse
    )
    return outputs


def bilm_direction(x, mask, layers, reverse):
    """Peters et al. 2018, sections 3.1 and 3.4: the outputs of each layer of one direction."""
    outputs = [projected_lstm(x, mask, layers[0], reverse)]
    for weights in layers[1:]:
        outputs.append(projected_lstm(outputs[-1], mask, weights, reverse) + outputs[-1])
    return outputs


def bilm(character_ids, lengths, activation, weights):
    """Peters et al. 2018: forward and backward logits, and x and all layers, (B, L + 1, T, 2P).

    `weights` names the layers: "characters" (embeddings, then H and b of each width), "highways"
    (transform and gate), "projection", "forward", "backward" (each layer's) and "output".
    """
    table, *convolutions = weights["characters"]
    pairs = list(zip(convolutions[::2], convolutions[1::2], strict=True))
    x = character_cnn(character_ids, table, pairs, activation)
    for transform, gate in weights["highways"]:
        x = highway(x, transform, gate, relu)
    kernel, bias = weights["projection"]
    x = x @ kernel + bias
    mask = np.arange(character_ids.shape[1]) < np.array(lengths)[:, None]
    forward = bilm_direction(x, mask, weights["forward"], reverse=False)
    backward = bilm_direction(x, mask, weights["backward"], reverse=True)
    kernel, bias = weights["output"]
    layers = zip([x, *forward], [x, *backward], strict=True)
    represented = np.stack([np.concatenate(pair, axis=-1) for pair in layers], axis=1)
    return forward[-1] @ kernel + bias, backward[-1] @ kernel + bias, represented


def layer_mix(layers, scores, gamma, layer_norm):
    """Peters et al. 2018, equation 1; each position is normalised by itself."""
    mix = np.zeros((layers.shape[0], *layers.shape[2:]), np.result_type(layers, scores, gamma))
    for row, t in np.ndindex(mix.shape[:2]):
        for s, h in zip(softmax(scores), layers[row, :, t], strict=True):
            if layer_norm:
                h = h - h.mean()
                h = h / np.sqrt(np.mean(h**2) + 1e-6)
            mix[row, t] += gamma * s * h
    return mix
