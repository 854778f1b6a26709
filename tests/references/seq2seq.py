"""Recurrent encoder-decoders, one sentence without padding and one step at a time.

'`options` say what the parts do: cell, context, first_state ("bridge", "zeros" or "learned"),
cell_states, decoder_units, decoder_layers, reads_context, attention, attention_place,
input_feeding and reverse_source. `weights` holds lists of what each part has, laid out as Keras
does: E_x, E_y (embeddings); encoder (for each layer the cell that reads forwards, then the other);
decoder (the cells); bridge (for each state its layers, or the state itself); context, score,
position, attentional, readout, output. Hard attention takes the `positions` of the options, one for
each step, or with None the best ones; its weights are what it draws from. Numbers may be complex: a
derivative is the imaginary part of a complex step.
"""

import numpy as np

from tests.references.attention import softmax
from tests.references.recurrent import gru_step, lstm_step, rnn_step, sigmoid

CELLS = {"gru": (gru_step, 1), "lstm": (lstm_step, 2), "simple_rnn": (rnn_step, 1)}
SCORES = {
    "additive": lambda q, k, W, U, v: v[:, 0] @ np.tanh(q @ W + k @ U),
    "concat": lambda q, k, W, v: v[:, 0] @ np.tanh(np.concatenate([q, k]) @ W),
    "dot": lambda q, k: q @ k,
    "general": lambda q, k, W: q @ W @ k,
    "scaled_dot": lambda q, k: q @ k / np.sqrt(len(k)),
}
SCORES |= {"hard": SCORES["additive"]}
SCORES |= dict.fromkeys(("local_monotonic", "local_predictive"), SCORES["general"])


def encoder(token_ids, weights, cell):
    """The highest layer's h(1) ... h(S), and for each layer its last states, h first."""
    step, num_states = CELLS[cell]
    h, last = [weights["E_x"][0][each] for each in token_ids], []
    for directions in weights["encoder"]:
        read = []
        for backwards, cell_weights in enumerate(directions):
            states = [np.zeros(len(cell_weights[1]))] * num_states
            outputs = []
            for x in h[::-1] if backwards else h:
                states = step(x, *states, *cell_weights)
                outputs.append(states[0])
            read.append((outputs[::-1] if backwards else outputs, states))
        h = [np.concatenate(each) for each in zip(*[outputs for outputs, _ in read])]
        last.append([np.concatenate(each) for each in zip(*[states for _, states in read])])
    return h, last


def context(h, last, weights, kind):
    """c, and for each layer of the encoder what the decoder's states may begin from."""
    if kind == "last":  # c = h_N
        return last[-1][0], last
    if kind == "map":  # c = q(h_N), Cho et al. 2014, appendix A.1.1
        V, b = weights["context"]
        c = np.tanh(last[-1][0] @ V + b)
    else:  # c = q(h_1 ... h_N), Yang et al. 2016, section 2.2
        W, b, v = weights["context"]
        alpha = softmax(np.array([v[:, 0] @ np.tanh(each @ W + b) for each in h]))
        c = sum(weight * each for weight, each in zip(alpha, h))
    return c, [[c] * len(last[0])]


def first_states(starts, weights, options):
    """For each layer of the decoder its states s(0)."""
    _, num_states = CELLS[options["cell"]]
    layers = options["decoder_layers"]
    bridges = iter(weights["bridge"])
    states = []
    for level in range(layers):
        from_top = layers - level
        source = starts[max(len(starts) - from_top, 0)]
        states.append([])
        for kind in range(num_states):
            state = source[kind]
            own = kind == 1 and not options["cell_states"]
            if own or options["first_state"] == "zeros":
                state = np.zeros(options["decoder_units"])
            elif options["first_state"] == "learned":
                state = next(bridges)[0]
            else:
                for W, b in next(bridges):
                    state = np.tanh(state @ W + b)
            states[-1].append(state)
    return states


def attend(query, h, t, weights, options):
    """Context (E,) and weights (S,); Luong et al. 2015, section 3.2 where attention is local."""
    name, window = options["attention"], options.get("window")
    center, spread = None, lambda s: 1.0
    if name == "local_monotonic":
        center = t
    if name == "local_predictive":
        W_p, v_p = weights["position"]
        center = len(h) * sigmoid(v_p[:, 0] @ np.tanh(query @ W_p))
        spread = lambda s: np.exp(-((s - center) ** 2) / (2 * (window / 2) ** 2))  # noqa: E731
    seen = [s for s in range(len(h)) if center is None or abs(s - np.real(center)) <= window]
    alpha = np.zeros(len(h), complex)
    if seen:
        scores = [SCORES[name](query, h[s], *weights["score"]) for s in seen]
        for s, weight in zip(seen, softmax(np.array(scores))):
            alpha[s] = weight * spread(s)
    if name == "hard":  # Xu et al. 2015, section 4.1: one position, whatever its weight
        positions = options["positions"]
        best = np.argmax(alpha.real) if positions is None else positions[t]
        return h[best], alpha
    return sum(weight * each for weight, each in zip(alpha, h)), alpha


def run_cells(x, states, weights, cell):
    """One step of the decoder's stack: its output and its new states."""
    step, _ = CELLS[cell]
    new = []
    for layer, cell_weights in zip(states, weights["decoder"], strict=True):
        new.append(step(x, *layer, *cell_weights))
        x = new[-1][0]
    return x, new


def seq2seq(source_ids, target_ids, weights, options):
    """Logits (T, V), and attention weights (T, S) where there is attention."""
    order = -1 if options["reverse_source"] else 1  # Sutskever et al. 2014, section 3.3
    h, last = encoder(source_ids[::order], weights, options["cell"])
    h = h[::order]
    c, starts = context(h, last, weights, options["context"])
    states = first_states(starts, weights, options)
    attentional = np.zeros(options["decoder_units"])
    logits, alphas = [], []
    for t, token in enumerate(target_ids):
        y = weights["E_y"][0][token] if weights["E_y"] else np.ones(1)
        before = options["attention"] and options["attention_place"] == "before"
        after = options["attention"] and options["attention_place"] == "after"
        if before:  # Bahdanau et al. 2015, section 3.1
            c, alpha = attend(states[-1][0], h, t, weights, options)
        reads_context = before or options["reads_context"]
        x = [y] if weights["E_y"] or not reads_context else []
        x += [c] if reads_context else []
        if options["input_feeding"]:  # Luong et al. 2015, section 3.3
            x = [*x, attentional]
        x = np.concatenate(x)
        s, states = run_cells(x, states, weights, options["cell"])
        hidden = s
        if after:  # Luong et al. 2015, equation 5
            c, alpha = attend(s, h, t, weights, options)
            hidden = attentional = np.tanh(np.concatenate([c, s]) @ weights["attentional"][0])
        elif weights["readout"]:
            W, b = weights["readout"]
            hidden = np.tanh(np.concatenate([s, x]) @ W + b)
        W, b = weights["output"]
        logits.append(hidden @ W + b)
        if options["attention"]:
            alphas.append(alpha)
    return np.array(logits), np.array(alphas)
