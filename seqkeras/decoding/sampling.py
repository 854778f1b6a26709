"""Sampling: every token drawn at random, as probable as the decoder says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from seqkeras.decoding.checks import count, require
from seqkeras.decoding.loop import batch_size_of, generate
from seqkeras.decoding.processors import Temperature, TopK, TopP

if TYPE_CHECKING:
    from seqkeras.decoding.processors import Prefix
    from seqkeras.tensors import Tensor


def sample(
    step: Callable[..., Any],
    state: Mapping[str, Tensor],
    *,
    start_id: int | Tensor,
    end_id: int,
    max_length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: Any = None,
    processors: Sequence[Callable[[Tensor, Prefix], Tensor]] = (),
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Generate like `seqkeras.decoding.generate`, with each token drawn.

        u(t) ~ uniform on [0, 1),   y(t) = the first i with  p(1) + ... + p(i) > u(t)

    All u are drawn before the first step: nothing in the loop is random, so one seed gives one
    answer in eager mode, in a graph and in `ops.while_loop` of every backend.

    Args:
        step, state, start_id, max_length, options: see `seqkeras.decoding.decode`.
        end_id: the id of `<eos>`.
        temperature, top_k, top_p: after the other processors and in this order, see `Temperature`,
            `TopK` (None: all), `TopP`.
        seed: an integer (the same answer at every call), a `keras.random.SeedGenerator` (other
            answers at the next call) or None (Keras's own generator). In a function of
            `seqkeras.decoding.compiled` use a SeedGenerator made outside: a seed can not be an
            argument of such a function.
        processors: other functions of logits, see `seqkeras.decoding.processors`.

    Returns:
        token_ids (B, T), lengths (B,), scores (B,), like `seqkeras.decoding.generate`.

    Raises:
        ValueError: if temperature, top_k, top_p or max_length is out of range; see also
            `seqkeras.decoding.decode`.

    Reference: Holtzman et al. 2020, https://arxiv.org/abs/1904.09751

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import sample
        >>> step = lambda token_ids, state: ((ops.one_hot(token_ids + 1, 6),), state)
        >>> options = {"start_id": 1, "end_id": 5, "max_length": 7}
        >>> token_ids, _, _ = sample(step, {"source": np.zeros((2, 1))}, top_k=1, seed=3, **options)
        >>> ops.convert_to_numpy(token_ids).tolist()
        [[2, 3, 4, 5, 0, 0, 0], [2, 3, 4, 5, 0, 0, 0]]
    """
    require("sample", count("max_length", max_length))
    processors = [*processors, Temperature(temperature)]
    if top_k is not None:
        processors.append(TopK(top_k))
    processors.append(TopP(top_p))
    uniform = keras.random.uniform((batch_size_of(state), max_length), seed=seed)  # (B, T)

    def drawn(log_probs, position):
        return inverse_cdf(log_probs, ops.take(uniform, position, axis=1))

    return generate(
        step,
        state,
        drawn,
        start_id=start_id,
        end_id=end_id,
        max_length=max_length,
        processors=processors,
        **options,
    )


def inverse_cdf(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Map (B, V) log-probabilities and (B,) numbers in [0, 1) to (B,) token ids.

    A token of probability zero is never chosen, though sums that are computed side by side (as XLA
    does) rise and fall by rounding there too.
    """
    probabilities = ops.exp(log_probs)
    sums = ops.where(probabilities > 0, ops.cumsum(probabilities, axis=-1), 0.0)
    reached = sums > uniform[:, None] * ops.max(sums, axis=-1, keepdims=True)
    return ops.argmax(ops.cast(reached, "int32"), axis=-1)
