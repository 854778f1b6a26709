"""The answer, or none, from the logits of a span."""

from keras import ops

from seqkeras.decoding import best_spans
from seqkeras.tensors import Tensor
from seqkeras.values import BANNED_LOGIT


def best_answers(
    start_logits: Tensor,
    end_logits: Tensor,
    context_mask: Tensor,
    max_length: int,
    threshold: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best answer of each row, or none where the question has none.

        null = start(0) + end(0)
        best = max of start(i) + end(j) over i <= j < i + max_length in the context
        (i, j) is the answer where best > null + threshold; else (0, 0), no answer

    Notation: threshold is the paper's tau.

    Args:
        start_logits, end_logits: (B, T), as a `SpanHead` returns them.
        context_mask: (B, T) booleans, True where an answer may stand: in the text, and neither in
            the question nor at position 0.
        max_length: the most positions in an answer.
        threshold: how much better than none an answer must be.

    Returns:
        starts, ends: (B,) int32, both within the answer; 0 where there is none.
        scores: (B,) float32, best - null.

    Raises:
        ValueError: if max_length is under 1.

    Reference: Devlin et al. 2019, section 4.3, https://arxiv.org/abs/1810.04805

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.models import best_answers
        >>> start, end = np.array([[1.0, 0.0, 5.0, 0.0]]), np.array([[1.0, 0.0, 0.0, 4.0]])
        >>> context_mask = np.array([[False, False, True, True]])
        >>> answers = best_answers(start, end, context_mask, max_length=2)
        >>> [ops.convert_to_numpy(values).tolist() for values in answers]  # 5 + 4 against 1 + 1
        [[2], [3], [7.0]]
    """
    start_logits, end_logits = (
        ops.cast(logits, "float32") for logits in (start_logits, end_logits)
    )
    null = start_logits[:, 0] + end_logits[:, 0]
    starts, ends, _ = best_spans(
        ops.where(context_mask, start_logits, BANNED_LOGIT),
        ops.where(context_mask, end_logits, BANNED_LOGIT),
        max_length,
    )

    def at(logits, positions):
        return ops.take_along_axis(logits, positions[:, None], axis=1)[:, 0]

    scores = at(start_logits, starts) + at(end_logits, ends) - null
    answered = ops.logical_and(scores > threshold, ops.any(context_mask, axis=1))
    return ops.where(answered, starts, 0), ops.where(answered, ends, 0), scores
