"""Decoding in plain loops, one row at a time.

`logits(row, prefix)` gives (V,) for the next token; the prefix begins with `start_id`.
"""

import numpy as np


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max()
    return logits - np.log(np.exp(logits).sum())


def greedy(logits, row, start_id, end_id, max_length):
    """Ids, `<eos>` included, and the sum of their log-probabilities."""
    ids, score = [], 0.0
    while len(ids) < max_length and end_id not in ids:
        following = log_softmax(logits(row, [start_id, *ids]))
        ids.append(int(following.argmax()))
        score += following[ids[-1]]
    return ids, score


def length_penalty(length, alpha):
    """Wu et al. 2016, equation 14."""
    return ((5 + length) / 6) ** alpha


def coverage_penalty(attention, beta):
    """Wu et al. 2016, equation 14; `attention` (T, S) of the real source positions."""
    return beta * sum(np.log(min(sum(column), 1.0)) for column in np.transpose(attention))


def all_sequences(logits, row, start_id, end_id, max_length, vocab_size, alpha=0.0):
    """Every result there is, as (score, ids), the best first."""
    found = []
    for length in range(1, max_length + 1):
        for ids in np.ndindex(*[vocab_size] * length):
            if end_id in ids[:-1] or (ids[-1] != end_id and length < max_length):
                continue
            total = sum(
                log_softmax(logits(row, [start_id, *ids[:t]]))[token] for t, token in enumerate(ids)
            )
            found.append((total / length_penalty(length, alpha), list(ids)))
    return sorted(found, key=lambda item: -item[0])


def beam_search(
    logits,
    row,
    start_id,
    end_id,
    max_length,
    num_beams,
    alpha=0.0,
    beta=0.0,
    attention=None,
    early_stopping="never",
    prompt=(),
):
    """Up to `num_beams` hypotheses as (score, ids), the best first.

    "never" runs to the very end. `attention(row, prefix)` gives (S,) of the real positions.
    """

    def score(total, ids):
        value = total / length_penalty(len(ids) - len(prompt), alpha)
        if beta:
            steps = [attention(row, [start_id, *ids[:t]]) for t in range(len(ids))]
            value += coverage_penalty(steps, beta)
        return value

    beams, finished = [(0.0, [])], []
    for length in range(1, max_length + 1):
        continued = []
        for total, ids in beams:
            following = log_softmax(logits(row, [start_id, *ids]))
            if length <= len(prompt):
                continued.append((total, [*ids, prompt[length - 1]]))
            else:
                continued += [(total + each, [*ids, i]) for i, each in enumerate(following)]
        continued.sort(key=lambda item: -item[0])

        def ends(ids, length=length):
            return length > len(prompt) and ids[-1] == end_id or length == max_length

        finished += [(score(*item), item[1]) for item in continued[:num_beams] if ends(item[1])]
        finished = sorted(finished, key=lambda item: -item[0])[:num_beams]
        beams = [item for item in continued if not ends(item[1])][:num_beams]
        if len(finished) == num_beams and early_stopping != "never":
            best = beams[0][0] / length_penalty(length, alpha) if beams else -np.inf
            if early_stopping or best <= finished[-1][0]:
                break
    return finished


def top_k(logits, k):
    """Fan et al. 2018: which tokens stay."""
    return set(np.argsort(-np.asarray(logits), kind="stable")[:k].tolist())


def top_p(logits, p):
    """Holtzman et al. 2020, section 3.1: which tokens stay."""
    probabilities = np.exp(log_softmax(logits))
    nucleus, mass = set(), 0.0
    for token in np.argsort(-probabilities, kind="stable"):
        if mass >= p:
            break
        nucleus.add(int(token))
        mass += probabilities[token]
    return nucleus


def repetition_penalty(logits, prefix, theta):
    """Keskar et al. 2019, section 4.1, as their code has it for negative logits."""
    changed = np.array(logits, np.float64)
    for token in set(prefix):
        changed[token] = changed[token] / theta if changed[token] > 0 else changed[token] * theta
    return changed
