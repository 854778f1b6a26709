"""Searches in plain Python over log_probs(prefix) -> (V,), straight from their definitions."""

import itertools

from seqkeras.serving.text import EOS


def penalised(total, length, alpha):
    return total / ((5 + length) / 6) ** alpha


def all_targets(log_probs, vocab_size, target_length, alpha=0.0):
    """Every target there is, as (score, ids), the best first."""
    found = []
    for length in range(1, target_length + 1):
        for ids in itertools.product(range(vocab_size), repeat=length):
            if EOS in ids[:-1] or (ids[-1] != EOS and length < target_length):
                continue
            total = sum(log_probs(ids[:t])[token] for t, token in enumerate(ids))
            if total > -float("inf"):
                found.append((penalised(total, length, alpha), ids))
    return sorted(found, reverse=True)


def greedy(log_probs, target_length):
    """The ids and total of taking the most probable token until <eos>."""
    ids, total = (), 0.0
    while len(ids) < target_length and EOS not in ids:
        following = log_probs(ids)
        token = int(following.argmax())
        ids, total = (*ids, token), total + following[token]
    return ids, total


def beam_search(log_probs, num_beams, target_length, alpha=0.0):
    """All hypotheses that a beam search finishes when it runs to the very end, the best first."""
    beams, finished = [(0.0, ())], []
    for length in range(1, target_length + 1):
        continued = [
            (total + log_prob, (*ids, token))
            for total, ids in beams
            for token, log_prob in enumerate(log_probs(ids))
            if log_prob > -float("inf")
        ]
        continued.sort(key=lambda item: -item[0])
        for total, ids in continued[:num_beams]:
            if ids[-1] == EOS or length == target_length:
                finished.append((penalised(total, length, alpha), ids))
        beams = [(total, ids) for total, ids in continued if ids[-1] != EOS][:num_beams]
    return sorted(finished, key=lambda item: -item[0])
