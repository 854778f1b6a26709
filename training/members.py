"""Members: models of one task that differ in their seed, and their mean."""

from __future__ import annotations

from collections.abc import Sequence

import keras

__all__ = ["mean_of", "members_of"]

PREFIX = "member_"  # of the names of members within their mean


def mean_of(members: Sequence[keras.Model]) -> keras.Model:
    """Return the functional model of the mean of outputs, such as logits or quantiles.

    Args:
        members: functional models of the same named inputs and of one output, whose name the mean
            has.

    Returns:
        A functional model of the same inputs and output; its members share no weights.

    Example:
        >>> import keras, numpy as np
        >>> from seqkeras.training.members import mean_of
        >>> def member(weight):
        ...     frames = keras.Input((3,), name="frames")
        ...     weights = keras.initializers.Constant(weight)
        ...     dense = keras.layers.Dense(1, kernel_initializer=weights)
        ...     return keras.Model({"frames": frames}, dense(frames))
        >>> mean = mean_of([member(1.0), member(3.0)])
        >>> float(mean({"frames": np.ones((1, 3))})[0, 0])  # of 3 and 9
        6.0
    """
    inputs = {
        name: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=name)
        for name, tensor in members[0].input.items()
    }
    for number, member in enumerate(members, 1):
        member.name = f"{PREFIX}{number}"
    mean = keras.layers.Average(name=members[0].output_names[0])
    return keras.Model(inputs, mean([member(inputs) for member in members]))


def members_of(model: keras.Model) -> list[keras.Model]:
    """Return the members of a model of `mean_of`; the model alone where it is none.

    Args:
        model: a Keras model.

    Returns:
        A list of Keras models, one at least.

    Example:
        >>> import keras
        >>> from seqkeras.training.members import mean_of, members_of
        >>> def member():
        ...     frames = keras.Input((3,), name="frames")
        ...     return keras.Model({"frames": frames}, keras.layers.Dense(1)(frames))
        >>> len(members_of(mean_of([member(), member()]))), len(members_of(member()))
        (2, 1)
    """
    return [layer for layer in model.layers if layer.name.startswith(PREFIX)] or [model]
