"""Checks of arguments, and how errors show a value."""

import contextlib
import itertools
import math
import numbers
import operator
import reprlib

MOST_SHOWN = 50  # characters


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
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # a whole number beyond float64
            number = float(value)
    if not least <= number <= most:
        bounds = "" if math.isinf(least) else f" from {least:g} to {most:g}"
        raise ValueError(f"{name} must be a number{bounds}; received {shown(value)}.")
    return number


def shown(value):
    """Return a value for an error: a short text as in source code, else with its type."""
    text = " ".join(_REPR.repr(value).split())
    text = text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"
    return text if isinstance(value, str) or value is None else f"{type(value).__name__} {text}"


class _Repr(reprlib.Repr):
    """`repr` of the start of a value of any size and depth."""

    def __init__(self):
        super().__init__()
        self.maxlevel = 20
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = MOST_SHOWN
        self.maxstring = self.maxother = 4 * MOST_SHOWN

    def repr_dict(self, value, level):
        if level <= 0:
            return "{...}"
        inner = itertools.islice(value.items(), self.maxdict)
        parts = (f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in inner)
        return f"{{{', '.join(parts)}}}"

    def repr_int(self, value, level):  # Python itself refuses to write thousands of digits
        huge = value.bit_length() > 1000
        return f"<{value.bit_length()} bits>" if huge else repr(value)


_REPR = _Repr()
