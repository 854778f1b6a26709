"""One way to refuse arguments."""

import numbers


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


def count(name, number):
    """A demand on a number of tokens, beams or the like."""
    holds = isinstance(number, numbers.Integral) and not isinstance(number, bool) and number >= 1
    return holds, f"{name} must be a positive integer; received {number!r}"
