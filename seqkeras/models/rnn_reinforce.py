"""The gradient that hard attention adds to the loss of an encoder-decoder."""

import keras
from keras import ops


def reinforce_term(
    targets, logits, log_probabilities, entropies, baseline, sample_weight=None, parallel=False
):
    """Return a zero whose gradient is the gradient of the choice of positions.

        d = sum over t of (R(t) - b(t)) d log p(t) - d H(t), over the real steps, mean of the rows
        R(t) = l(t) + l(t+1) + ... + l(T), or l(t) where `parallel`

    where l(t) is the step's share of the cross-entropy, and b(t) what R(t) is with the average loss
    in place of each. What was lost before a choice does not depend on it, and is left out: so is
    what comes after it, where no later step sees it. Beside the gradient through the logits, this
    makes the gradient of the expected mean over all real tokens.

    Args:
        targets: (B, T) integers, 0 for padding.
        logits: (B, T, V), with the positions that were sampled.
        log_probabilities: (B, T) log p of these positions.
        entropies: (B, T) H of what they were drawn from, times its weight.
        baseline: a `MovingAverageBaseline`, which takes the loss in.
        sample_weight: (B,) or (B, T), as in `fit`, or None.
        parallel: whether a position changes the logits of its own step alone.

    Reference: Xu et al. 2015, section 4.1, https://arxiv.org/abs/1502.03044, where R is the loss of
    the whole sequence; losses to come: Sutton et al. 1999, theorem 1,
    https://papers.nips.cc/paper/1713
    """
    real = ops.cast(ops.not_equal(targets, 0), logits.dtype)
    shares = step_shares(real, sample_weight)  # (B, T)
    losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    losses = ops.stop_gradient(losses)
    average = baseline(ops.sum(shares * losses, axis=1), training=True)  # (B,), all the same
    advantages = shares * (losses - average[:, None])
    if not parallel:
        advantages = ops.flip(ops.cumsum(ops.flip(advantages, axis=1), axis=1), axis=1)
    log_probabilities, entropies = (
        ops.cast(tensor, real.dtype) for tensor in (log_probabilities, entropies)
    )
    terms = real * (advantages * log_probabilities - entropies)
    term = ops.mean(ops.sum(terms, axis=1))
    return term - ops.stop_gradient(term)


def step_shares(real, sample_weight=None):
    """Return (B, T) factors of cross-entropies: the mean over rows of their sums is that over all
    tokens.

        share(b, t) = B / N where the token is real, N how many are

    Args:
        real: (B, T), 1 for real tokens and 0 for padding.
        sample_weight: (B,) or (B, T) factors of the tokens, or None.
    """
    share = ops.cast(ops.shape(real)[0], real.dtype) / ops.maximum(ops.sum(real), 1)
    if sample_weight is not None:
        weight = ops.cast(sample_weight, real.dtype)
        real = real * (weight[:, None] if len(weight.shape) == 1 else weight)
    return share * real
