"""Numbers of a user's file: what is learned of them, and how the model scales them."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqkeras.runs import RunError
from seqkeras.serving.categories import category_of
from seqkeras.serving.rows import Column
from seqkeras.training.console import say_merged

LEAST = 1e-5  # deviation beside the mean of numbers that float32 tells apart
SMALLEST, LARGEST = 1e-30, 1e30  # deviation by which float32 divides


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Statistics of a column of numbers in the training rows.

    Attributes:
        column: the `seqkeras.serving.rows.Column`, with mean and deviation of the numbers as the
            model reads them; the median stands for a number that is missing.
        spread: their deviation in the file.
    """

    column: Column
    spread: float


def learned_numbers(
    path: Path | str,
    name: str,
    values: np.ndarray,
    log: bool = False,
    known: bool = False,
    decimal: str | None = None,
) -> Numbers:
    """Return the `Numbers` of a column.

    Args:
        path: path of the file, for errors.
        name: name of the column.
        values: (rows,) float64 of the training rows, NaN where one is missing.
        log: whether the model reads log(1 + x).
        known, decimal: see `Column`.

    Raises:
        RunError: if nothing can be learned of them.
    """
    real = values[~np.isnan(values)]
    if log and len(real) and real.min() < 0:
        raise RunError(
            f"{path}: {name!r} may not be under 0, as it is --log; the training rows have "
            f"{real.min():g}."
        )
    read = np.log1p(real) if log else real
    if not len(real) or np.ptp(read) == 0:
        holds = f"is {real[0]:.15g} in all" if len(real) else "has no value in its"
        raise RunError(
            f"{path}: {name!r} {holds} {len(values):,} training rows: nothing can be learned of "
            "it; leave it out."
        )
    fill, missing = float(np.median(real)), len(real) < len(values)
    mean, deviation, marks = float(read.mean()), deviation_of(read), missing and not known
    column = Column(name, (), fill, marks, known, decimal, mean, deviation, log)
    return Numbers(column, deviation_of(real))


def learned_categories(
    path: Path | str, name: str, values: Sequence[Any], known: bool = False
) -> Column:
    """Return the `Column` of categories that the training rows have.

    Args:
        path: path of the file, for errors.
        name: name of the column.
        values: value of each row.
        known: see `Column`.

    Raises:
        RunError: if all rows have one category.
    """
    say_merged(path, name, values)
    distinct = {*map(category_of, values)}
    categories = tuple(sorted(category for category in distinct if category is not None))
    if len(distinct) < 2:
        raise RunError(
            f"{path}: {name!r} must hold two categories at least in its training rows, of which a "
            f"missing one is one; received {', '.join(map(repr, categories)) or 'none'}."
        )
    return Column(name, categories, known=known)


def deviation_of(numbers: np.ndarray) -> float:
    """Return the standard deviation of numbers, of which the squares may be under what float64
    holds."""
    numbers = numbers.astype("float64")
    size = np.ptp(numbers)
    return float(size * ((numbers - numbers.mean()) / size).std())


def learned_scaling(
    path: Path | str, frames: list[np.ndarray], way_out: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the deviation of each number of frames; 1 of a number that never varies.

    Args:
        path: path of the file, for errors.
        frames: list of (frames, numbers), of the training part.
        way_out: see `require_float32`.

    Raises:
        RunError: if float32 does not tell the numbers apart.
    """
    numbers = np.concatenate(frames)
    mean, varies = numbers.mean(axis=0, dtype="float64"), np.ptp(numbers, axis=0) > 0
    deviation = np.ones_like(mean)
    deviation[varies] = [deviation_of(column) for column in numbers.T[varies]]
    for index in np.flatnonzero(varies):
        name = f"{path}: the numbers {index} of frames"
        require_float32(name, mean[index], deviation[index], way_out)
    return mean, deviation


def require_float32(name: str, mean: Any, deviation: Any, way_out: str = "") -> None:
    """Raise a `RunError` unless a graph can scale numbers in float32.

    Args:
        name: name of the numbers, for the error.
        mean, deviation: mean and deviation of the numbers.
        way_out: other than to write the numbers in another way.
    """
    if deviation < LEAST * abs(mean):
        raise RunError(
            f"{name} vary by {deviation:.3g} about {mean:.15g}: the model reads float32, which "
            f"hardly tells them apart; subtract {mean:.3g} from them{way_out}."
        )
    if not SMALLEST < deviation < LARGEST:
        raise RunError(
            f"{name} vary by {deviation:.3g}, which float32 does not hold; write them in other "
            f"units, as multiples of {10.0 ** math.floor(math.log10(deviation)):g}{way_out}."
        )
