"""The tags of a linear-chain conditional random field.

potential(t, i, j) belongs to tag j of word t after the tag i, or i = K at the first word:

    p(y) = exp(sum over t of potential(t, y(t-1), y(t))) / Z

Reference: Lafferty et al. 2001, section 3; Rabiner 1989, section III,
https://doi.org/10.1109/5.18626 (forward, backward, Viterbi)
"""

import numpy as np


def most_probable(potentials):
    """Return the (T,) tags of the most probable sequence, by Viterbi's algorithm.

    Args:
        potentials: (T, K + 1, K).
    """
    tags = np.zeros(len(potentials), int)
    if not len(potentials):
        return tags
    best, last = potentials[0, -1], []  # (K,) of the best sequence that ends with each tag
    for potential in potentials[1:, :-1]:
        energies = best[:, None] + potential
        last.append(energies.argmax(axis=0))
        best = energies.max(axis=0)
    tags[-1] = best.argmax()
    for index, before in reversed([*enumerate(last)]):
        tags[index] = before[tags[index + 1]]
    return tags


def marginals(potentials):
    """Return the (..., T, K) probabilities of each tag of each word, over all sequences, in
    float64.

    Args:
        potentials: (..., T, K + 1, K).
    """
    potentials = np.moveaxis(np.asarray(potentials, "float64"), -3, 0)  # (T, ..., K + 1, K)
    shape = (*potentials.shape[:-2], potentials.shape[-1])
    forward, backward = np.zeros(shape), np.zeros(shape)
    for index, potential in enumerate(potentials):
        forward[index] = (
            _log_sum(forward[index - 1][..., None] + potential[..., :-1, :], -2)
            if index
            else potential[..., -1, :]
        )
    for index in range(len(potentials) - 2, -1, -1):
        behind = potentials[index + 1][..., :-1, :] + backward[index + 1][..., None, :]
        backward[index] = _log_sum(behind, -1)
    log_probs = forward + backward - _log_sum(forward + backward, -1)[..., None]
    return np.moveaxis(np.exp(log_probs), 0, -2)


def _log_sum(values, axis):
    most = values.max(axis=axis, keepdims=True)
    return (np.log(np.exp(values - most).sum(axis=axis, keepdims=True)) + most).squeeze(axis)
