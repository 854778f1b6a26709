"""The time of a row: what is read as one, what follows it by a step, and its phases.

It leaves out time zones: a time with an offset is read in UTC.
"""

import datetime
from dataclasses import dataclass

import numpy as np

from .checks import shown

DAY = np.timedelta64(1, "D")
MONDAY = np.datetime64("1970-01-05")


def _day(times):
    return (times - times.astype("M8[D]")) / DAY


def _week(times):
    return (times - MONDAY) / (7 * DAY) % 1


def _year(times):
    years = times.astype("M8[Y]")
    begin, end = years.astype("M8[s]"), (years + 1).astype("M8[s]")
    return (times - begin) / (end - begin)


CYCLES = {"day": _day, "week": _week, "year": _year}  # times -> phases from 0 to 1
UNITS = {"second": "s", "month": "M"}  # of a step


@dataclass(frozen=True)
class TimeColumn:
    """The time of a row, which follows that of the row before by one step.

    Attributes:
        columns: its name in the header; or up to six: year, month, day, hour, minute, second.
        format: of `datetime.strptime`; None for ISO 8601.
        step: how many units lie between two rows.
        unit: "second" or "month".
        cycles: of `CYCLES`, those whose phases the model reads.
    """

    columns: tuple[str, ...]
    format: str | None = None
    step: int = 1
    unit: str = "second"
    cycles: tuple[str, ...] = ()

    def problems(self):
        """Yield what is wrong."""
        if not 1 <= len(self.columns) <= 6:
            yield f"the time must be of 1 to 6 columns; received {len(self.columns)}"
        if self.unit not in UNITS or self.step < 1:
            yield (
                f"the step must be of {' or '.join(UNITS)}, at least 1; received {self.step} "
                f"{self.unit}"
            )
        if unknown := [name for name in self.cycles if name not in CYCLES]:
            yield f"cycles must be {', '.join(CYCLES)}; received {unknown[0]!r}"

    def read(self, parts, where):
        """Return the time that the columns of a row hold, as a datetime64 of seconds.

        Raises:
            ValueError: beginning with `where`, if they hold none.
        """
        try:
            return np.datetime64(_in_utc(self._read(parts)), "s")
        except (OverflowError, TypeError, ValueError) as error:
            expected = f"as {self.format!r} writes it" if self.format else "in ISO 8601"
            if len(self.columns) > 1:
                expected = "of whole numbers"
            name = " ".join(self.columns)
            given = shown(" ".join(map(str, parts)))
            raise ValueError(
                f"{where}: {name!r} must be a time {expected}; received {given}."
            ) from error

    def _read(self, parts):
        if len(self.columns) > 1:
            numbers = [*map(int, parts), *[1, 1][len(parts) - 1 :]]  # a year alone has a first day
            return datetime.datetime(*numbers)
        [value] = parts
        if isinstance(value, np.datetime64):
            return value.astype("M8[s]").item()
        if isinstance(value, datetime.datetime):
            return value
        if self.format:
            return datetime.datetime.strptime(value, self.format)
        return datetime.datetime.fromisoformat(value.strip())

    def after(self, time, count):
        """Return the times of 1 to `count` steps behind a time, (count,); behind (rows,) times,
        (rows, count)."""
        steps = np.arange(1, count + 1) * np.timedelta64(self.step, UNITS[self.unit])
        time = np.asarray(time)[..., np.newaxis]
        if self.unit == "second":
            return time + steps
        month = time.astype("M8[M]")
        return (month + steps).astype("M8[s]") + (time - month)

    def require_steps(self, times, where):
        """Raise a ValueError for the first row that does not follow by one step."""
        expected = self.after(times[:-1], 1)[:, 0]
        for row in np.flatnonzero(times[1:] != expected):
            raise ValueError(
                f"{where(row + 1)}: expected the time {expected[row]}, {self.step} {self.unit}"
                f"{'s' * (self.step > 1)} behind the row before; received {times[row + 1]}."
            )

    def phases(self, times):
        """Return (rows, 2 cycles) numbers from -1 to 1."""
        angles = [2 * np.pi * CYCLES[name](times) for name in self.cycles]
        pairs = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
        return (
            np.stack(pairs, axis=-1).astype("float32")
            if pairs
            else np.empty((len(times), 0), "float32")
        )


def _in_utc(time):
    if time.tzinfo is None:
        return time
    return time.astimezone(datetime.UTC).replace(tzinfo=None)
