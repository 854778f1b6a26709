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
    """Raise a ValueError unless every named size is a positive integer; a boolean is none."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(
                f"{type(layer).__name__}: {name} must be a positive integer; received {size!r}."
            )
