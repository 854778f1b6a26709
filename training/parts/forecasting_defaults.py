"""What a forecaster reads where the options do not say: by the step and the length of a series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqkeras.serving.times import FIXED

if TYPE_CHECKING:
    from seqkeras.serving.times import TimeColumn

NO_CYCLE = "none"  # in place of names of cycles
DAY = 86_400.0  # seconds
LENGTHS = {"day": DAY, "week": 7 * DAY, "year": 365.2425 * DAY}  # of `serving.times.CYCLES`
MOST_WAVES = {"day": 4, "week": 3, "year": 5}
OF_DAYS = 2  # waves of a year where a step is under a week
CONTEXTS = (  # the shortest step, in days: how many steps are read
    (300, 24),
    (80, 12),
    (27, 36),
    (6.5, 104),
    (0.9, 120),
)
CAUSAL, WITHOUT_TIMES, OF_HOURS = 96, 96, 336  # steps; the last at most, of a week
SHARE = 3  # of the training rows, the context is at most one of so many parts
MOST_PASSES, MOST_STEPS = 10, 3_000  # of a training, unless one pass has more
SEEN = 2  # how often a cycle must be in the training rows


def step_in_days(time: TimeColumn) -> float:
    """Return the step of a `seqkeras.serving.times.TimeColumn`, in the mean."""
    seconds = {"month": LENGTHS["year"] / 12, "business day": 7 / 5 * DAY}
    seconds |= {name: microseconds * 1e-6 for name, microseconds in FIXED.items()}
    return time.step * seconds[time.unit] / DAY


def context_of(time: TimeColumn | None, rows: int, horizon: int) -> int:
    """Return how many past steps are read: a week of hours, four months of days, two years of
    weeks, three years of months or quarters, 24 years; at least twice what is to come, and at most
    a third of the training rows.

    Args:
        time: the `seqkeras.serving.times.TimeColumn` with its step; None without times.
        rows: training rows of the longest series.
        horizon: steps to come.
    """
    context = WITHOUT_TIMES
    if time is not None:
        days = step_in_days(time)
        of_week = min(round(LENGTHS["week"] / DAY / days), OF_HOURS)
        context = next((steps for shortest, steps in CONTEXTS if days >= shortest), of_week)
    return max(2, min(max(context, 2 * horizon), (rows - horizon) // SHARE))


def held_out_of(rows: int, horizon: int) -> int:
    """Return how many of the rows of a series are held out: a tenth, or as many as hold two
    horizons, but at most three tenths."""
    return max(round(0.1 * rows), min(2 * horizon, round(0.3 * rows)))


def steps_of(batches: int) -> int:
    """Return how many steps to train, of the batches of a pass."""
    return batches * min(MOST_PASSES, -(-MOST_STEPS // batches))


def waves_of(time: TimeColumn, cycle: str) -> int:
    """Return how many waves of a cycle the rows can show; 0 if a step is too long."""
    days = step_in_days(time)
    most = OF_DAYS if cycle == "year" and days < CONTEXTS[-2][0] else MOST_WAVES[cycle]
    return max(0, min(most, (round(LENGTHS[cycle] / DAY / days) - 1) // 2))


def cycles_of(time: TimeColumn, rows: int) -> tuple[str, ...]:
    """Return the cycles that the training rows of the longest series have seen twice."""
    days = rows * step_in_days(time)
    return tuple(
        name
        for name, length in LENGTHS.items()
        if waves_of(time, name) and days >= SEEN * length / DAY
    )
