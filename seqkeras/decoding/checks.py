"""One way to refuse arguments."""


def require(who, *demands):
    """Raise one error that names every demand which does not hold.

    Args:
        who: the function or class that demands.
        demands: (holds, what must hold and what was received) pairs.

    Raises:
        ValueError: if any does not hold.
    """
    broken = [f"{demand}." for holds, demand in demands if not holds]
    if broken:
        raise ValueError(f"{who}: {' '.join(broken)}")
