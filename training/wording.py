"""Counts and lists in the words of messages."""

from collections.abc import Sequence
from typing import Any

MOST_LISTED = 20


def counted(count: int, plural: str, singular: str | None = None) -> str:
    """Return a count with its noun: "1 row", "2,000 rows".

    Args:
        count: a number.
        plural: the noun, and what agrees with it: "rows are".
        singular: the words for one, "row is"; None: the plural without its s.
    """
    if count == 1:
        return f"1 {singular or plural.removesuffix('s')}"
    return f"{count:,} {plural}"


def listed(values: Sequence[Any]) -> str:
    """Return values of a file with commas between them, and how many there are more."""
    more = f" and {len(values) - MOST_LISTED:,} more" if len(values) > MOST_LISTED else ""
    return ", ".join(f"{value!r:.40}" for value in values[:MOST_LISTED]) + more
