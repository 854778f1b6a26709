"""Numbers of a user's file: what is learned of them, and how the model scales them."""

import dataclasses

import keras
import numpy as np

from seqkeras.runs import RunError
from serving.rows import Column


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What training rows tell of a column of numbers.

    Attributes:
        column: the `serving.rows.Column`; the median stands for a number that is missing.
        mean, deviation: of the numbers as the model reads them.
        scale: their deviation in the file.
    """

    column: Column
    mean: float
    deviation: float
    scale: float


def learned_numbers(path, name, values, log=False, known=False, decimal=None):
    """The `Numbers` of a column.

    Args:
        path: of the file, for errors.
        name: of the column.
        values: (rows,) of the training rows, NaN where one is missing.
        log: whether the model reads log(1 + x).
        known, decimal: see `Column`.

    Raises:
        RunError: if nothing can be learned of them.
    """
    real = values[~np.isnan(values)]
    if not len(real) or np.ptp(real) == 0:
        holds = f"is {real[0]:g} in all" if len(real) else "has no value in its"
        raise RunError(
            f"{path}: {name!r} {holds} {len(values):,} training rows: nothing can be learned of "
            "it; leave it out."
        )
    if log and real.min() < 0:
        raise RunError(
            f"{path}: {name!r} may not be under 0, as it is --log; the training rows have "
            f"{real.min():g}."
        )
    fill, missing = float(np.median(real)), len(real) < len(values)
    scale = float(real.std(dtype="float64"))
    real = np.log1p(real) if log else real
    return Numbers(
        Column(name, (), fill, missing and not known, known, decimal),
        float(real.mean(dtype="float64")),
        float(real.std(dtype="float64")),
        scale,
    )


def scaling(mean, deviation, width):
    """The first features scaled by a mean and a deviation each; the others stay."""
    rest = width - len(mean)
    return keras.layers.Normalization(
        mean=np.concatenate([mean, np.zeros(rest)]),
        variance=np.square(np.concatenate([deviation, np.ones(rest)])),
    )
