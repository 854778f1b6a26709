"""Checks of tensor shapes and sizes, with one wording of the error."""


def require_sequence(layer, **shapes):
    """Raise a ValueError unless every named shape is (batch, length, dim) with a known dim."""
    for name, shape in shapes.items():
        if len(shape) != 3 or shape[-1] is None:
            raise ValueError(
                f"{type(layer).__name__}: {name} must have shape (batch, length, dim); "
                f"received {tuple(shape)}."
            )


def require_positive(layer, /, **sizes):
    """Raise a ValueError with every named size that is no positive integer.

    It is one of Python's own, as Keras wants it: neither a boolean nor a number of NumPy.
    """
    _require_none(layer, size_problems(**sizes))


def require_counts(layer, /, **counts):
    """Raise a ValueError with every named count that is no integer from 0 on."""
    _require_none(layer, _problems(counts, "an integer, at least 0", 0))


def size_problems(**sizes):
    """Return a list of what is wrong with sizes, a sentence each."""
    return _problems(sizes, "a positive integer", 1)


def _problems(values, expected, least):
    return [
        f"{name} must be {expected}; received {value!r}."
        for name, value in values.items()
        if not isinstance(value, int) or isinstance(value, bool) or value < least
    ]


def _require_none(layer, problems):
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


def require_mask(layer, mask, sequence_shape, name="mask", sequence="sequence"):
    """Raise a ValueError unless a mask, or None, is (batch, length) of the sequence.

    One of length 1 would be taken for every step.

    Args:
        layer: the layer that errors name.
        mask: an array or a tensor, or None.
        sequence_shape: (batch, length, ...).
        name, sequence: what the mask and the sequence are called.
    """
    if mask is None:
        return
    expected = tuple(sequence_shape[:2])
    if not fits(shape_of(mask), expected):
        raise ValueError(
            f"{type(layer).__name__}: {name} must have the shape (batch, length) of the "
            f"{sequence}, {expected}; received {what_is(mask)}."
        )


def require_states(layer, states, shapes, batch_size=None):
    """Raise a ValueError unless there is an initial state of each shape.

    Args:
        layer: the layer that errors name.
        states: a list of arrays or tensors.
        shapes: a list of as many; what is no integer stands for any size, as "batch".
        batch_size: the first size of every shape, or None for any.
    """
    who = type(layer).__name__
    if batch_size is not None:
        shapes = [(batch_size, *shape[1:]) for shape in shapes]
    if len(states) != len(shapes):
        raise ValueError(
            f"{who}: initial_state must hold {len(shapes)} tensors; received {len(states)}."
        )
    if not all(fits(shape_of(state), shape) for state, shape in zip(states, shapes, strict=True)):
        raise ValueError(
            f"{who}: initial_state must hold tensors of shapes {shapes}; "
            f"received {[what_is(state) for state in states]}."
        )


def fits(shape, expected):
    """Return whether two shapes may be one; what is no integer is any size."""
    return len(shape) == len(expected) and all(
        size == other
        for size, other in zip(shape, expected, strict=True)
        if isinstance(size, int) and isinstance(other, int)
    )


def shape_of(tensor):
    """Return the shape of a value; a list, no array or tensor, has a shape that fits no other."""
    return tuple(getattr(tensor, "shape", ()))


def what_is(tensor):
    """Return the shape of a value, or what else it is, as an error shows it."""
    return tuple(tensor.shape) if hasattr(tensor, "shape") else f"a {type(tensor).__name__}"
