"""The step between the rows of a series, told by their times.

months          one row a month, or every few months, on one day of it, on its last or on any
business days   Monday to Friday, over weekends
fixed           the most common distance; where distances spread by less than a quarter about it
                without a common one, their median, rounded by at most a hundredth
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.serving.times import DAY, FIXED, NAMED

if TYPE_CHECKING:
    from seqkeras.serving.times import TimeColumn

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
STEPS = {
    "microsecond": (1, "microsecond"),
    "millisecond": (1, "millisecond"),
    **{name: (seconds, "second") for name, seconds in SECONDS.items()},
    "business-day": (1, "business day"),
    "month": (1, "month"),
    "quarter": (3, "month"),
    "year": (12, "month"),
}
NAMED_STEP = re.compile(rf"(?:([1-9][0-9]{{0,8}}) )?({'|'.join(STEPS)})s?")
ROUND = (*NAMED.values(), 100_000, 10_000, 1000, 100, 10, 1)  # microseconds


def named_step(text: str) -> tuple[int, str] | None:
    """Return (step, unit) of a step in words, as "month", "business-day" or "15 minutes"; None of
    other texts."""
    match = NAMED_STEP.fullmatch(text)
    if match is None:
        return None
    size, unit = STEPS[match[2]]
    return int(match[1] or 1) * size, unit


def with_step(
    time: TimeColumn, times: Sequence[np.ndarray], step: tuple[int, str] | None = None
) -> TimeColumn:
    """Return a `seqkeras.serving.times.TimeColumn` with the step of its rows.

    Args:
        time: the `TimeColumn`.
        times: (rows,) datetime64 of each series, ascending; two rows at least in one of them.
        step: (step, unit), where the user says them.
    """
    between = np.concatenate([np.diff(series) for series in times]).astype("int64")
    size, unit = step or _of_months(times, between) or _of_business_days(times) or _fixed(between)
    day = _common_day(times) if unit == "month" else None
    return dataclasses.replace(time, step=size, unit=unit, day=day)


def _of_months(times, between):
    months = [np.diff(series.astype("M8[M]")).astype(int) for series in times]
    months = np.concatenate(months)
    if months.min() < 1 or not _at_one_hour(times):
        return None
    if _common_day(times) is None and np.ptp(between) == 0:
        return None  # a fixed step of weeks
    return _most_common(months), "month"


def _of_business_days(times):
    days = [series.astype("M8[D]") for series in times]
    if not all(np.is_busday(series).all() for series in days) or not _at_one_hour(times):
        return None
    steps = np.concatenate([np.busday_count(series[:-1], series[1:]) for series in days])
    in_days = np.concatenate([np.diff(series).astype(int) for series in days])
    is_daily = steps.min() >= 1 and _most_common(steps) == 1
    return (1, "business day") if is_daily and (in_days > steps).any() else None


def _fixed(between):
    step = _most_common(between)
    near = between[4 * abs(between - step) <= step]
    if 2 * (near == step).sum() < len(near):
        middle = float(np.median(near))
        rounded = ((unit, round(middle / unit) * unit) for unit in ROUND)
        step = next(size for unit, size in rounded if size and abs(size - middle) <= middle / 100)
    unit = next(name for name in reversed(FIXED) if step % FIXED[name] == 0)
    return step // FIXED[unit], unit


def _at_one_hour(times):
    """Return whether all rows of a series are within a quarter of a day of the hour of the first
    one."""
    in_day = [series - series.astype("M8[D]") for series in times if len(series)]
    return all((4 * abs(hours - hours[0]) <= DAY).all() for hours in in_day)


def _common_day(times):
    """Return the day of the month of all rows, see `serving.times.TimeColumn`; None if they
    differ."""
    days = np.concatenate(times).astype("M8[D]")
    months = days.astype("M8[M]")
    day = (days - months.astype("M8[D]")).astype(int) + 1
    last = ((months + 1).astype("M8[D]") - months.astype("M8[D]")).astype(int)
    if (day == last).all():
        return 31
    return int(day.max()) if (day == np.minimum(day.max(), last)).all() else None


def _most_common(numbers):
    sizes, counts = np.unique(numbers, return_counts=True)
    return int(sizes[counts.argmax()])
