"""The targets that count in losses and metrics."""


def counts(targets, ignore_class):
    """Return which targets count: all but `ignore_class`, which may be NaN.

    Args:
        targets: an array or a tensor of any backend.

    Returns:
        Booleans of the same shape.
    """
    is_nan = ignore_class != ignore_class
    return targets == targets if is_nan else targets != ignore_class
