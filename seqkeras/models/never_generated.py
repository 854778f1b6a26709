"""Ids that no search may choose: padding, unknown, start.

They are banned when a token is chosen, but keep their logits in a loss: a training text may hold an
unknown word, whose cross-entropy must equal any other token's.
"""

import numpy as np
from keras import ops

from seqkeras.tokenizers.special import end_problem
from seqkeras.values import BANNED_LOGIT, known_numbers


def without(logits, never_generated):
    """Return (..., V) logits, `BANNED_LOGIT` for the ids that are never generated."""
    if not len(never_generated):
        return logits
    allowed = ~np.isin(np.arange(logits.shape[-1]), list(never_generated))
    return ops.where(ops.convert_to_tensor(allowed), logits, ops.cast(BANNED_LOGIT, logits.dtype))


def id_problems(never_generated, vocab_size):
    """Return reasons, as sentences, why these ids can not be banned in a target's vocabulary."""
    if not all(token_id in range(vocab_size) for token_id in never_generated):
        return [
            f"never_generated must be ids of the target, from 0 to {vocab_size - 1}; received "
            f"{never_generated}."
        ]
    if len(set(never_generated)) == vocab_size:
        return ["never_generated must leave one id of the target; received all of them."]
    return []


def require_end(model, targets, sample_weight=None):
    """Raise a ValueError if every target ends with an id that is never generated.

    Args:
        model: an encoder-decoder that is compiled.
        targets: (B, T) integers, an array; of anything else nothing is known.
        sample_weight: (B, T) weights of its tokens, or None. Which tokens are real they say, or
            the loss's `ignore_class`; without both nothing is known.
    """
    generates = bool(getattr(model, "never_generated", ()))
    targets = known_numbers(targets) if generates and hasattr(targets, "dtype") else None
    if targets is None or targets.ndim != 2 or targets.dtype.kind not in "iu":
        return
    padding = getattr(getattr(model, "loss", None), "ignore_class", None)
    if np.ndim(sample_weight) == 2:
        real = np.asarray(sample_weight) > 0
    elif padding is not None:
        real = targets != padding
    else:
        return
    rows = real.any(axis=1)
    places = targets.shape[1] - 1 - np.argmax(real[:, ::-1], axis=1)
    ends = np.unique(np.take_along_axis(targets, places[:, None], axis=1)[rows])
    problem = end_problem(model, int(ends[0])) if len(ends) == 1 else None
    if problem:
        raise ValueError(f"{type(model).__name__}: every target ends with one id; {problem}.")
