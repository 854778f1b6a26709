"""What hard attention adds to the loss of an encoder-decoder."""

import keras
from keras import ops

from seqkeras.attention import reinforce_loss


def reinforce_term(targets, logits, log_probabilities, entropies, baseline, sample_weight=None):
    """Zero, with the gradient that the choice of positions has.

        d = (L - b) d sum over t of log p(t) - d sum over t of H(t), averaged over the rows

    where L is the row's share of the cross-entropy, and the sums are over its real steps. Beside
    the gradient through the logits, this makes that of the expected mean over all real tokens.

    Args:
        targets: (B, T) integers, 0 for padding.
        logits: (B, T, V), with the positions that were sampled.
        log_probabilities: (B, T) log p of these positions.
        entropies: (B, T) H of what they were drawn from, times its weight.
        baseline: a `MovingAverageBaseline`, which takes the L in.
        sample_weight: (B,) or (B, T), as in `fit`, or None.

    Reference: Xu et al. 2015, section 4.1, https://arxiv.org/abs/1502.03044
    """
    real = ops.cast(ops.not_equal(targets, 0), logits.dtype)
    losses = ops.stop_gradient(row_losses(targets, logits, sample_weight))
    term = reinforce_loss(
        losses,
        ops.sum(real * ops.cast(log_probabilities, real.dtype), axis=1),
        baseline(losses, training=True),
        ops.sum(real * ops.cast(entropies, real.dtype), axis=1),
    )
    return term - ops.stop_gradient(term)


def row_losses(targets, logits, sample_weight=None):
    """(B,) whose mean over the rows is the mean of the cross-entropy over all real tokens.

        L(b) = B / N sum over t of -log p(y(b, t)),   N the number of real tokens

    Args:
        targets: (B, T) integers, 0 for padding.
        logits: (B, T, V).
        sample_weight: (B,) or (B, T) factors of the tokens, or None.
    """
    losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    real = ops.cast(ops.not_equal(targets, 0), losses.dtype)
    share = ops.cast(ops.shape(targets)[0], real.dtype) / ops.maximum(ops.sum(real), 1)
    if sample_weight is not None:
        weight = ops.cast(sample_weight, real.dtype)
        real = real * (weight[:, None] if len(weight.shape) == 1 else weight)
    return share * ops.sum(real * losses, axis=1)
