"""The encoder and one decoder step of Bahdanau et al. 2015, for one sentence without padding.

`weights` names what the paper names: embeddings E_x, E_y; W_a, U_a, v_a (transposed where Keras
does); (kernel, bias) of the bridge W_s, the readout W_o, the output V; the cells' weights.
"""

import numpy as np

from tests.references.attention import softmax
from tests.references.recurrent import bidirectional, gru, gru_step, lstm, lstm_step

LAYERS = {"gru": (gru, gru_step, 1), "lstm": (lstm, lstm_step, 2)}


def bahdanau_encoder(token_ids, weights, cell):
    """Annotations h (S, 2U), and the decoder's first states."""
    layer, _, num_states = LAYERS[cell]
    units = weights["forward"][1].shape[0]
    embedded = weights["E_x"][token_ids][None]
    zeros = [np.zeros((1, units))] * (2 * num_states)
    h, _ = bidirectional(layer, embedded, None, zeros, weights["forward"], weights["backward"])
    h = h[0]
    last = np.concatenate([h[-1, :units], h[0, units:]])
    kernel, bias = weights["bridge"]
    s = np.tanh(last @ kernel + bias)
    return h, [s, np.zeros_like(s)][:num_states]


def bahdanau_decoder_step(token_id, states, h, weights, cell):
    """Logits (V,), attention weights (S,), and the new states."""
    _, step, _ = LAYERS[cell]
    y = weights["E_y"][token_id]
    e = [weights["v_a"] @ np.tanh(states[0] @ weights["W_a"] + h_j @ weights["U_a"]) for h_j in h]
    alpha = softmax(np.array(e))
    c = sum(alpha_j * h_j for alpha_j, h_j in zip(alpha, h, strict=True))
    states = step(np.concatenate([y, c]), *states, *weights["decoder"])
    kernel, bias = weights["readout"]
    t = np.tanh(np.concatenate([states[0], y, c]) @ kernel + bias)
    kernel, bias = weights["output"]
    return t @ kernel + bias, alpha, states
