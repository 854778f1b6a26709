"""The time of a row: what is read as one, what follows it by a step, and its phases.

A time is one of these; what has none of these forms is refused:

    a datetime, a date, a datetime64 or a pandas Timestamp
    a text in ISO 8601: 2024, 2024-12, 2024-12-31, 2024-12-31 23:00:00.5+01:00, 20241231T230000Z
    a text as the column's `format` writes it, as %d.%m.%Y does 31.12.2024
    a number, or its text, of seconds since 1970 in UTC; of milliseconds from 1e11 on, of
        microseconds from 1e14 on, of nanoseconds from 1e17 on; each with 9 or 10 digits of whole
        seconds, unless `format` says the unit: s, ms, us or ns

Characters of full width count as ASCII. A time with an offset or a zone is read in UTC, one without
is taken as it is; times of both kinds never stand beside each other. A number and a datetime64 are
of either kind. Times are kept to the microsecond. `serving/javascript/src/times.js` is the same in
JavaScript.
"""

import datetime
import math
import numbers
import re
from dataclasses import dataclass

import numpy as np

from .checks import shown
from .written_numbers import narrow

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
FIXED = {"microsecond": 1, "millisecond": 1000, "second": 1_000_000}  # units, in microseconds
UNITS = (*FIXED, "business day", "month")  # of a step
NAMED = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000} | {
    name: FIXED[name] for name in reversed(FIXED)
}
EPOCHS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # formats of numbers, in nanoseconds
LEAST_SECONDS, MOST_SECONDS = 10**8, 10**10  # since 1970: 1973 to 2286
EPOCH = datetime.datetime(1970, 1, 1)
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_800_000_000  # microseconds of years 1 to 9999
ISO = re.compile(
    r"([0-9]{4})(?:(-?)([0-9]{2})(?:\2([0-9]{2})"
    r"(?:[T ]([0-9]{2})(?:(:?)([0-9]{2})(?:\6([0-9]{2})(?:[.,]([0-9]+))?)?)?"
    r" ?(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2}){0,2})?)?)?)?",
    re.IGNORECASE,
)
NUMBER = re.compile(r"([+-]?[0-9]+)(\.[0-9]*)?(?:e[+-]?[0-9]+)?", re.IGNORECASE)
LAST_DAYS = re.compile("(?=29|30|31)")
HOURLY = "%Y%m%d%H"  # numbers of 10 and 12 digits may be this and minutes, too
CHANGE_OF_CLOCKS = "where clocks change, times need their zone offset, as 2024-10-27 02:00+01:00"


@dataclass(frozen=True)
class TimeColumn:
    """The time of a row, one step after the time of the row before.

    A time follows if it is nearer than a quarter of a step to the expected one; nearer than a
    quarter of a day where steps are months or business days.

    Attributes:
        columns: its name in the header; or up to six: year, month, day, hour, minute, second.
        format: format of `datetime.strptime`, or a unit of `EPOCHS`; None for ISO 8601 and numbers.
        step: how many units lie between two rows.
        unit: unit of `UNITS`; business days are Monday to Friday.
        day: where the unit is the month: the day of the month of all rows; one beyond a month's end
            is its last day, so 31 stands for month ends. None where rows have no common day.
        cycles: of `CYCLES`, those whose phases the model reads.
        has_offset: whether times are written with an offset or a zone; None if either may be.
    """

    columns: tuple[str, ...]
    format: str | None = None
    step: int = 1
    unit: str = "second"
    day: int | None = None
    cycles: tuple[str, ...] = ()
    has_offset: bool | None = None

    def problems(self):
        """Yield what is wrong."""
        if not 1 <= len(self.columns) <= 6:
            yield f"the time must be of 1 to 6 columns; received {len(self.columns)}"
        if self.unit not in UNITS or self.step < 1:
            yield (
                f"the step must be of {' or '.join(UNITS)}, at least 1; received {self.step} "
                f"{self.unit}"
            )
        if self.day is not None and not (self.unit == "month" and 1 <= self.day <= 31):
            yield f"the day must be 1 to 31, of steps of months; received {self.day}"
        if unknown := [name for name in self.cycles if name not in CYCLES]:
            yield f"cycles must be {', '.join(CYCLES)}; received {unknown[0]!r}"

    @property
    def step_in_words(self):
        """The step as a text, as "15 minutes"."""
        name, size = self.unit, self.step
        if name in FIXED:
            whole = size * FIXED[name]
            name = next(name for name, unit in NAMED.items() if whole % unit == 0)
            size = whole // NAMED[name]
        return f"{size:,} {name}{'s' * (size > 1)}"

    def read(self, parts, where, way_out=""):
        """Return the time that the columns of a row hold, as a datetime64 of microseconds.

        Args:
            parts: the value of each column.
            where: the name of the row, for errors.
            way_out: what ends an error of a time in ISO 8601, as an option's name.

        Raises:
            ValueError: beginning with `where`, if they hold none.
        """
        try:
            return np.datetime64(self._microseconds(parts), "us")
        except (OverflowError, TypeError, ValueError) as error:
            expected = "in ISO 8601, as 2024-12-31 23:00, or a number of seconds since 1970"
            if len(self.columns) > 1:
                expected, way_out = "of whole numbers", ""
            elif self.format:
                expected, way_out = f"as {self.format!r} writes it", ""
            name = " ".join(self.columns)
            received = shown(parts[0] if len(parts) == 1 else " ".join(map(str, parts)))
            if self._lacks_only_its_day(parts):
                way_out = ": there is no such day"
            raise ValueError(
                f"{where}: {name!r} must be a time {expected}; received {received}{way_out}."
            ) from error

    def _lacks_only_its_day(self, parts):
        """Return whether parts that are refused are a time but for a day beyond its month's end, as
        2024-02-31: they are read with the day 28 in the place of a 29, 30 or 31."""
        index = 2 if len(self.columns) > 1 else 0  # of the part with the day
        try:
            text = _text_of(parts[index])
        except (IndexError, TypeError, OverflowError, ValueError):
            return False
        for match in LAST_DAYS.finditer(text):
            day = f"{text[: match.start()]}28{text[match.start() + 2 :]}"
            try:
                self._microseconds([*parts[:index], day, *parts[index + 1 :]])
                return True
            except (OverflowError, TypeError, ValueError):
                continue
        return False

    def _microseconds(self, parts):
        """Return the microseconds since 1970 of a row's columns."""
        if len(self.columns) > 1:
            *whole, last = parts
            seconds = 0
            if len(parts) == 6:
                whole, seconds = [*whole, 0], _microseconds_of(_text_of(last), EPOCHS["s"])
                if not 0 <= seconds < 60_000_000:
                    raise ValueError(last)
            else:
                whole.append(last)
            first = [1, 1][len(parts) - 1 :]  # a year alone has a first day
            return _since_1970(datetime.datetime(*map(_whole, whole), *first)) + seconds
        [value] = parts
        if isinstance(value, np.datetime64):
            return _in_range(value)
        if value is None or value != value:
            raise ValueError(value)
        if isinstance(value, datetime.datetime):
            return _since_1970(value)
        if isinstance(value, datetime.date):
            return _since_1970(datetime.datetime(value.year, value.month, value.day))
        text = _text_of(value)
        if self.format in EPOCHS:
            return _microseconds_of(text, EPOCHS[self.format])
        if self.format:
            return _since_1970(datetime.datetime.strptime(text, narrow(self.format)))
        return _of_iso(text) if ISO.fullmatch(text) else _of_number(text)

    def offsets(self, rows, where, like="in training"):
        """Return whether times have an offset, None if either may be.

        Args:
            rows: the values of the time's columns of each row, which `read` takes.
            where: index of a row -> its name, for errors.
            like: where times are as `has_offset` says, for errors.

        Raises:
            ValueError: beginning with the name of a row whose time is of the other kind.
        """
        expected = self.has_offset
        for row, parts in enumerate(rows):
            has_offset = self._has_offset(parts)
            if None not in (has_offset, expected) and has_offset != expected:
                with_or_not = "with a zone offset" if expected else "without a zone offset"
                raise ValueError(
                    f"{where(row)}: {' '.join(self.columns)!r} must be a time {with_or_not}, as "
                    f"{like}; received {shown(parts[0])}."
                )
            if expected is None and has_offset is not None:
                expected, like = has_offset, f"in {where(row)}"
        return expected

    def _has_offset(self, parts):
        if len(self.columns) > 1:
            return False
        [value] = parts
        if isinstance(value, datetime.datetime):
            return value.utcoffset() is not None
        if isinstance(value, datetime.date):
            return False
        if not isinstance(value, str) or self.format in EPOCHS:
            return None
        if self.format:
            return "%z" in self.format
        match = ISO.fullmatch(narrow(value))
        return None if match is None else match["zone"] is not None

    def written(self, time):
        """Return a time as texts that the columns of a row may hold."""
        time = np.datetime64(time, "us")
        moment = time.item()
        if len(self.columns) > 1:
            return [str(part) for part in moment.timetuple()[: len(self.columns)]]
        if self.format in EPOCHS:
            nanoseconds, unit = int(time.astype("int64")) * 1000, EPOCHS[self.format]
            whole = nanoseconds % unit == 0
            return [str(nanoseconds // unit if whole else nanoseconds / unit)]
        if self.format:
            return [moment.replace(tzinfo=datetime.UTC).strftime(self.format)]
        return [f"{moment.isoformat()}{'+00:00' if self.has_offset else ''}"]

    def after(self, time, count):
        """Return the times of 1 to `count` steps behind a time, (count,); behind (rows,) times,
        (rows, count)."""
        return self._behind(np.asarray(time)[..., np.newaxis], np.arange(1, count + 1))

    def _behind(self, times, count):
        """Return the times `count` steps behind each time."""
        times = times.astype("M8[us]")
        if self.unit in FIXED:
            return times + count * self.step * FIXED[self.unit]
        days = times.astype("M8[D]")
        in_day = times - days
        if self.unit == "business day":
            return np.busday_offset(days, count * self.step, roll="backward") + in_day
        number = (days - days.astype("M8[M]")).astype(int) + 1
        months = days.astype("M8[M]") + count * self.step
        last = ((months + 1).astype("M8[D]") - months.astype("M8[D]")).astype(int)
        day = np.minimum(number if self.day is None else self.day, last)
        return months.astype("M8[D]") + (day - 1) + in_day

    def steps_between(self, times):
        """Return by how many steps each of (rows,) times is behind the one before, and whether it
        is as near to that as a time must be: two arrays of (rows - 1,)."""
        times = times.astype("M8[us]")
        if self.unit in FIXED:
            size = self.step * FIXED[self.unit]
            between = np.diff(times).astype("int64")
            count = (2 * between + size) // (2 * size)  # the nearest
            return count, 4 * abs(between - count * size) <= size
        days = times.astype("M8[D]")
        if self.unit == "business day":
            units = np.busday_count(days[:-1], days[1:])
        else:
            units = np.diff(days.astype("M8[M]")).astype(int)
        count = units // self.step
        expected = self._behind(times[:-1], count)
        off = abs(times[1:] - expected)
        if self.unit == "month" and self.day is None:  # any day of the month
            off = abs((times - days)[1:] - (times - days)[:-1])
        return count, (units % self.step == 0) & (4 * off <= DAY)

    def without_gaps(self, rows, times, where, empty):
        """Return [row, time, name of the row] of each row, and of each that is missing by the times
        between two rows: one without values.

        Args:
            rows: lists, the values of the time's columns and of others.
            times: (rows,) datetime64, see `read`.
            where: the name of each row.
            empty: a list, what stands for the values of the other columns.
        """
        counts, are_near = self.steps_between(times)
        filled = []
        for row, time, name, count in zip(rows, times, where, [*np.where(are_near, counts, 1), 1]):
            filled.append([row, time, name])
            filled += [
                [[*self.written(missing), *empty], missing, f"the row of {in_words(missing)}"]
                for missing in (self.after(time, count - 1) if count > 1 else ())
            ]
        return filled

    def require_steps(self, times, where, way_out=""):
        """Raise a ValueError, which ends in a way out of a gap, for the first row that does not
        follow by one step."""
        count, is_near = self.steps_between(times)
        for row in np.flatnonzero((count != 1) | ~is_near):
            expected = self.after(times[row], 1)[0]
            raise ValueError(
                f"{where(row + 1)}: expected the time {in_iso(expected)}, {self.step_in_words} "
                f"after the row before; received {in_iso(times[row + 1])}"
                f"{self.about_clocks(expected, times[row + 1])}"
                f"{way_out if is_near[row] and count[row] > 1 else ''}."
            )

    def about_clocks(self, expected, actual):
        """Return what is to be done about a time that is one hour off; "" about another."""
        is_shorter = self.unit in FIXED and self.step * FIXED[self.unit] < NAMED["day"]
        is_an_hour = abs(actual - expected) == np.timedelta64(1, "h")
        return f"; {CHANGE_OF_CLOCKS}" if is_shorter and is_an_hour else ""

    def phases(self, times):
        """Return (rows, 2 cycles) numbers from -1 to 1."""
        angles = [2 * np.pi * CYCLES[name](times) for name in self.cycles]
        pairs = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
        return (
            np.stack(pairs, axis=-1).astype("float32")
            if pairs
            else np.empty((len(times), 0), "float32")
        )


def in_iso(time):
    """Return a datetime64 as ISO 8601 writes it, without a fraction of zero."""
    return str(np.datetime64(time, "us")).removesuffix(".000000")


def in_words(time):
    """Return a datetime64 as people write it: "2024-12-31 23:00"."""
    return in_iso(time).replace("T", " ").removesuffix(":00").removesuffix(" 00:00")


def _since_1970(moment):
    """Return the microseconds from 1970 to a datetime, in UTC if it has a zone."""
    if (offset := moment.utcoffset()) is not None:
        moment = moment.replace(tzinfo=None) - offset
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


def _text_of(value):
    """Return a text, or a number as a text; a whole one without a point."""
    if isinstance(value, str):
        return narrow(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{type(value).__name__} is no time")
    if isinstance(value, numbers.Integral) or float(value).is_integer():
        return str(int(value))
    return repr(float(value))


def _whole(part):
    """Return a whole number, or raise a ValueError."""
    number = float(_text_of(part))
    if not number.is_integer():
        raise ValueError(part)
    return int(number)


def _of_iso(text):
    """Return the microseconds since 1970 of a text that `ISO` matches."""
    year, dash, month, day, hour, _, minute, second, fraction, zone = ISO.fullmatch(text).groups()
    if month and not day and not dash:
        raise ValueError(f"{text} is no date")
    parts = (int(part or least) for part, least in ((month, 1), (day, 1), (hour, 0), (minute, 0)))
    moment = datetime.datetime(int(year), *parts, int(second or 0))
    return _since_1970(moment) + int((fraction or "")[:6].ljust(6, "0")) - _offset(zone)


def _offset(zone):
    """Return the microseconds of "+01:00"; 0 of "Z", "UTC" or None."""
    if not zone or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[start : start + 2]) for start in (0, 2, 4))
    if max(minutes, seconds) > 59 or hours > 23:
        raise ValueError(f"{zone} is no offset")
    return int(f"{zone[0]}1") * (hours * 3600 + minutes * 60 + seconds) * 1_000_000


def _of_number(text):
    """Return the microseconds since 1970 of the text of a number, its unit told by its size."""
    match = NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no number")
    number = float(text)
    if number.is_integer() and ISO.fullmatch(whole := str(int(number))):
        return _of_iso(whole)  # 20241231.0, of a column that had gaps
    for unit in EPOCHS.values():
        size = abs(number) * unit / 10**9  # in seconds
        if LEAST_SECONDS <= size < MOST_SECONDS and not _is_of_hours(text):
            return _microseconds_of(text, unit)
    raise ValueError(f"{text} has no unit")


def _is_of_hours(text):
    """Return whether a number may be a date and its hour, as 2024123123, or its minute."""
    digits = str(int(float(text)))
    if len(digits) not in (10, 12) or not "1900" <= digits[:4] < "2100":
        return False
    try:
        datetime.datetime.strptime(digits[:10], HOURLY)
    except ValueError:
        return False
    return len(digits) == 10 or digits[10:] < "60"


def _microseconds_of(text, unit):
    """Return the microseconds of a text's number, in units of `unit` nanoseconds."""
    match = NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no number")
    if match[1] == text:
        microseconds = int(text) * unit // 1000
    else:
        microseconds = math.floor(float(text) * (unit / 1000) + 0.5)
    if not FIRST <= microseconds < LAST:
        raise ValueError(f"{text} is of no year from 1 to 9999")
    return microseconds


def _in_range(time):
    """Return the microseconds since 1970 of a datetime64."""
    if np.isnat(time) or not 1 <= time.astype("M8[Y]").astype(int) + 1970 <= 9999:
        raise ValueError(f"{time} is of no year from 1 to 9999")
    return int(time.astype("M8[us]").astype("int64"))
