"""Checks of arguments."""

import numbers
from typing import Any


def require(who: str, *demands: tuple[bool, str]) -> None:
    """Raise one error that names every violated demand.

    Args:
        who: the function or class, for the error.
        demands: pairs of a boolean and the message for False.

    Raises:
        ValueError: if a demand is violated.
    """
    broken = [f"{demand}." for holds, demand in demands if not holds]
    if broken:
        raise ValueError(f"{who}: {' '.join(broken)}")


def count(name: str, number: Any) -> tuple[bool, str]:
    """Return a demand on a number of tokens, beams or the like."""
    holds = (
        isinstance(number, numbers.Integral) and not isinstance(number, bool) and int(number) >= 1
    )
    return holds, f"{name} must be a positive integer; received {number!r}"
