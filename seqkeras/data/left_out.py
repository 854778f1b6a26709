"""The usable rows of a file, and what is wrong with the other rows."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from seqkeras.data.texts import DataError


def usable(
    path: Path | str,
    rows: Iterable[tuple[Any, ...]],
    read: Callable[..., Any],
    noun: str,
    skip_bad: bool,
    keep: Callable[[Iterable[Any]], Any] = list,
) -> tuple[Any, list[str]]:
    """Read the rows of a file, one by one.

    Args:
        path: path of the file.
        rows: iterable of tuples, the arguments of `read`.
        read: a function that returns the value of a row, or raises a `DataError`.
        noun: noun of a row, for errors.
        skip_bad: leave out the rows that can not be used; without it the first is an error.
        keep: what makes the result of an iterable of values, such as
            `seqkeras.data.stored.Stored`.

    Returns:
        The values, one at least, and the errors of the rows that are left out, as texts.

    Raises:
        DataError: if a row can not be used, or none is left.
    """
    left_out: list[str] = []

    def values():
        for row in rows:
            try:
                value = read(*row)
            except DataError as error:
                if not skip_bad:
                    raise DataError(f"{error} With --skip-bad true it is left out.") from error
                left_out.append(str(error))
            else:
                yield value

    examples = keep(values())
    if not examples:
        raise DataError(
            f"{path}: there is no {noun} in it"
            + (f" that can be used; the first: {left_out[0]}" if left_out else ".")
        )
    return examples, left_out
