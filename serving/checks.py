"""What a caller may give, and how it is shown when it is refused."""

import math
import numbers
import operator


def require_count(name, value, most=None):
    """Return `value` as an int of at least 1 and at most `most`.

    Raises:
        ValueError: if it is none.
    """
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count < 1 or (most is not None and count > most):
        bounds = "of at least 1" if most is None else f"from 1 to {most}"
        raise ValueError(f"{name} must be a whole number {bounds}; received {shown(value)}.")
    return count


def require_flag(name, value):
    """Return `value`, True or False.

    Raises:
        ValueError: if it is anything else, such as "no".
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False; received {shown(value)}.")
    return value


def require_number(name, value, least=-math.inf, most=math.inf):
    """Return `value` as a float from `least` to `most`.

    Raises:
        ValueError: if it is none.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        bounds = "" if math.isinf(least) else f" from {least:g} to {most:g}"
        raise ValueError(f"{name} must be a number{bounds}; received {shown(value)}.")
    return float(value)


def shown(value):
    """Return a value for an error: a short text as it is written, else its type with it."""
    text = " ".join(repr(value).split())
    text = text if len(text) <= 50 else f"{text[:49]}…"
    return text if isinstance(value, str) or value is None else f"{type(value).__name__} {text}"
