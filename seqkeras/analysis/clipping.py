"""Clipped gradients, and the error wall that motivates them.

    by norm:   ĝ = g min(1, c / ‖g‖)        by value:   ĝ_i = min(max(g_i, -c), c)

The wall is the error of one sigmoid unit after 50 steps: it has a cliff where the unit's gradient
explodes, and one unclipped step of gradient descent from its foot leaves the region for good.

Reference: Pascanu et al. 2013, sections 2.3 and 3.2, https://arxiv.org/abs/1211.5063; Goodfellow
et al. 2016, section 10.11.1, https://www.deeplearningbook.org/contents/rnn.html
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["clip_by_norm", "clip_by_value", "descend", "wall"]

WALL_STEPS, WALL_START, WALL_TARGET = 50, 0.5, 0.7


def clip_by_norm(gradient: np.ndarray, threshold: float) -> np.ndarray:
    """Return the gradient, scaled to the threshold if it is longer; its direction does not change.

        ĝ = g min(1, c / ‖g‖)

    An infinite entry becomes NaN, and a gradient whose norm overflows becomes zero.

    Args:
        gradient: an array, g.
        threshold: a positive number, c.

    Returns:
        An array of the same shape.

    Reference: Pascanu et al. 2013, section 3.2, https://arxiv.org/abs/1211.5063

    Example:
        >>> import numpy as np
        >>> from seqkeras.analysis.clipping import clip_by_norm
        >>> clip_by_norm(np.array([3.0, 4.0]), threshold=2.5).tolist()  # its norm was 5
        [1.5, 2.0]
    """
    norm = np.sqrt(np.sum(np.square(gradient)))
    return gradient * (threshold / np.maximum(norm, threshold))


def clip_by_value(gradient: np.ndarray, threshold: float) -> np.ndarray:
    """Return the gradient with each entry between -threshold and threshold; its direction may
    change.

        ĝ_i = min(max(g_i, -c), c)

    An infinite entry becomes the threshold; NaN stays.

    Args:
        gradient: an array, g.
        threshold: a positive number, c.

    Returns:
        An array of the same shape.

    Reference: Goodfellow et al. 2016, section 10.11.1,
    https://www.deeplearningbook.org/contents/rnn.html

    Example:
        >>> import numpy as np
        >>> from seqkeras.analysis.clipping import clip_by_value
        >>> clip_by_value(np.array([3.0, 0.5]), threshold=1.0).tolist()  # its direction changes
        [1.0, 0.5]
    """
    return np.clip(gradient, -threshold, threshold)


def wall(w: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return the error of a unit x(t) = w sigmoid(x(t-1)) + b after 50 steps from 0.5, target 0.7.

        E = (sigmoid(x(50)) - 0.7)²
        dx(t)/dw = s + w s' dx(t-1)/dw        dx(t)/db = 1 + w s' dx(t-1)/db

    Notation: s = sigmoid(x(t-1)), s' = s (1 - s).

    Args:
        w, b: numbers, or arrays that broadcast.

    Returns:
        E, dE/dw, dE/db.

    Reference: Pascanu et al. 2013, section 2.3, https://arxiv.org/abs/1211.5063

    Example:
        >>> from seqkeras.analysis.clipping import wall
        >>> error, by_w, by_b = wall(w=0.0, b=0.0)  # the unit stays at 0: sigmoid(0) is 0.5
        >>> round(float(error), 6)  # (0.5 - 0.7)^2
        0.04
    """
    x = np.full(np.broadcast_shapes(np.shape(w), np.shape(b)), WALL_START)
    x_by_w, x_by_b = np.zeros_like(x), np.zeros_like(x)
    for _ in range(WALL_STEPS):
        s = 1 / (1 + np.exp(-x))
        slope = w * s * (1 - s)
        x, x_by_w, x_by_b = w * s + b, s + slope * x_by_w, 1 + slope * x_by_b
    s = 1 / (1 + np.exp(-x))
    error_by_x = 2 * (s - WALL_TARGET) * s * (1 - s)
    return (s - WALL_TARGET) ** 2, error_by_x * x_by_w, error_by_x * x_by_b


def descend(
    clip: Callable[[np.ndarray], np.ndarray],
    start: Sequence[float],
    learning_rate: float,
    steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the path of gradient descent on `wall`.

    Args:
        clip: function: gradient (2,) -> the gradient that is used.
        start: (w, b).
        learning_rate: factor of a gradient.
        steps: number of steps.

    Returns:
        (steps + 1, 2) points (w, b), the start first, and their (steps + 1,) errors.

    Example:
        >>> import numpy as np
        >>> from seqkeras.analysis.clipping import clip_by_norm, descend
        >>> clip = lambda gradient: clip_by_norm(gradient, 0.1)
        >>> points, errors = descend(clip, start=(4.8, -2.2), learning_rate=0.5, steps=10)
        >>> points.shape, bool((np.linalg.norm(np.diff(points, axis=0), axis=1) < 0.051).all())
        ((11, 2), True)
    """
    points, errors = [np.array(start, float)], []
    for _ in range(steps):
        error, *gradient = wall(*points[-1])
        errors.append(error)
        points.append(points[-1] - learning_rate * clip(np.array(gradient)))
    return np.stack(points), np.array([*errors, wall(*points[-1])[0]])
