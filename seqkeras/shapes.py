"""Checks of tensor shapes and sizes, with one wording of the error."""


def require_sequence(layer, **shapes):
    """Raise a ValueError unless every named shape is (batch, length, dim) with a known dim."""
    for name, shape in shapes.items():
        if len(shape) != 3 or shape[-1] is None:
            raise ValueError(
                f"{type(layer).__name__}: {name} must have shape (batch, length, dim); "
                f"received {tuple(shape)}."
            )


def require_positive(layer, **sizes):
    """Raise a ValueError with every named size that is no positive integer.

    It is one of Python's own, as Keras wants it: neither a boolean nor a number of NumPy.
    """
    problems = [
        f"{name} must be a positive integer; received {size!r}."
        for name, size in sizes.items()
        if not isinstance(size, int) or isinstance(size, bool) or size < 1
    ]
    if problems:
        raise ValueError(f"{type(layer).__name__}: {' '.join(problems)}")


def require_steps(layer, **sequences):
    """Raise a ValueError if a named tensor (batch, length, ...) is known to have no step."""
    for name, sequence in sequences.items():
        if sequence.shape[1] == 0:
            raise ValueError(
                f"{type(layer).__name__}: {name} must have at least one step; "
                f"received shape {tuple(sequence.shape)}."
            )


def require_mask(layer, mask, sequence_shape):
    """Raise a ValueError unless a mask, or None, is (batch, length) of the sequence.

    One of length 1 would be taken for every step.
    """
    if mask is None:
        return
    expected = tuple(sequence_shape[:2])
    if not fits(mask.shape, expected):
        raise ValueError(
            f"{type(layer).__name__}: mask must have the shape (batch, length) of the sequence, "
            f"{expected}; received {tuple(mask.shape)}."
        )


def require_states(layer, states, shapes):
    """Raise a ValueError unless there is an initial state of each shape.

    Args:
        layer: for its name.
        states: a list of tensors.
        shapes: a list of as many; what is no integer stands for any size, as "batch".
    """
    who = type(layer).__name__
    if len(states) != len(shapes):
        raise ValueError(
            f"{who}: initial_state must hold {len(shapes)} tensors; received {len(states)}."
        )
    if not all(fits(state.shape, shape) for state, shape in zip(states, shapes, strict=True)):
        raise ValueError(
            f"{who}: initial_state must hold tensors of shapes {shapes}; "
            f"received {[tuple(state.shape) for state in states]}."
        )


def fits(shape, expected):
    """Whether two shapes may be one; what is no integer is any size."""
    return len(shape) == len(expected) and all(
        size == other
        for size, other in zip(shape, expected, strict=True)
        if isinstance(size, int) and isinstance(other, int)
    )
