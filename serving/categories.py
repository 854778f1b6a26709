"""Cells of a table as categories and labels: one text for a value, whoever wrote it.

JSON, CSV files and pandas write a value in several ways, which `category_text` gives one text:

    a boolean      True, "true", "True", "TRUE"                        true
    a number       1, 1.0, "1.0", "1.00"; 1e16, "1e+16", "1E+16"       1; 10000000000000000
    a day          datetime.date, or a time at midnight                2024-02-29
    a time         "2024-02-29 23:00", "2024-02-29T23:00:00.0"         2024-02-29T23:00:00
    another text   " night ", "007", "+1", "1e5"                       night, 007, +1, 1e5

Numbers are told apart by their values, also where a text writes them: "1.10" is "1.1". A text with
a leading zero or plus, or with an exponent without a sign, is a code and stays as it is. A time
keeps its offset. `serving/javascript/src/categories.js` is this function once more.
"""

import datetime
import functools
import numbers
import re
from decimal import Decimal
from typing import Any

import numpy as np

from .checks import shown

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # as texts, in small letters
BOOLEANS = {form: name for name in ("true", "false") for form in (name, name.title(), name.upper())}
NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-][0-9]{1,3}))?")
TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing: None, NaN, NaT, pandas.NA, or a text that says so."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    try:
        return value is None or bool(value != value)
    except (ArithmeticError, TypeError, ValueError):  # of an array; pandas.NA is neither
        return type(value).__name__ == "NAType"


def category_of(value: Any) -> str | None:
    """Return the category of a cell; None if the cell is missing.

    Raises:
        ValueError: see `category_text`.
    """
    return None if is_missing(value) else category_text(value)


def category_text(value: Any) -> str:
    """Return the text of a value; see the head of this module.

    Raises:
        ValueError: if the value is no text, boolean, number, date or time.
    """
    if isinstance(value, str):
        return _of_text(str(value))
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, np.floating):  # of float32 as many digits as tell it apart
        return _of_text(np.format_float_positional(value, trim="-"))
    if isinstance(value, (numbers.Real, Decimal)) and _is_short(value):
        return _of_text(str(value))
    if isinstance(value, np.datetime64):
        return _of_text(str(value.astype("M8[s]") if _is_coarse(value) else value))
    if isinstance(value, datetime.date):
        return _of_text(value.isoformat())
    raise ValueError(f"must be a text, a number, true or false, or a date; received {shown(value)}")


def _is_short(value):
    """Return whether Python writes a number, which it does not with thousands of digits."""
    return not isinstance(value, int) or value.bit_length() < 10_000


def _is_coarse(value):
    return np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D", "h", "m")


@functools.lru_cache(2**12)
def _of_text(text):
    text = text.strip()
    if text in BOOLEANS:
        return BOOLEANS[text]
    if number := NUMBER.fullmatch(text):
        return _number(*number.groups())
    if time := TIME.fullmatch(text):
        return _time(*time.groups())
    return text


def _number(sign, whole, fraction, exponent):
    """Return a decimal number without exponent and without zeros at its end."""
    digits = whole + (fraction or "")
    point = len(whole) + int(exponent or 0)
    digits = "0" * max(1 - point, 0) + digits
    point = max(point, 1)
    digits = digits.ljust(point, "0")
    whole, fraction = digits[:point].lstrip("0") or "0", digits[point:].rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return number if number == "0" else sign + number


def _time(day, minute, second, fraction, offset):
    fraction = (fraction or "").rstrip("0")
    time = f"{minute}:{second or '00'}" + (f".{fraction}" if fraction else "")
    if offset is None:
        return day if time == "00:00:00" else f"{day}T{time}"
    return f"{day}T{time}{'+00:00' if offset == 'Z' else offset}"
