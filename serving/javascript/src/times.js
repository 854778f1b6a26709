// The time of a row: what is read as one, what follows it by a step, and its phases. This is
// `serving/times.py` once more; both are tested by the cases of test/times.json.
//
// A time is a number of microseconds since 1970, in UTC if it was written with an offset. A Date and
// a number are of either kind, with an offset or without.

import { Refusal } from "./refusal.js";
import { quoted, shown } from "./checks.js";
import { narrow } from "./written_numbers.js";

const SECOND = 1e6;
const DAY = 86_400 * SECOND;
const FIXED = { microsecond: 1, millisecond: 1000, second: SECOND };
const NAMED = { day: DAY, hour: 3600 * SECOND, minute: 60 * SECOND, second: SECOND, millisecond: 1000, microsecond: 1 };
const UNITS = [...Object.keys(FIXED), "business day", "month"];
const EPOCHS = new Map([["s", 1e9], ["ms", 1e6], ["us", 1000], ["ns", 1]]); // in nanoseconds
const [LEAST_SECONDS, MOST_SECONDS] = [1e8, 1e10]; // since 1970: 1973 to 2286
const [FIRST, LAST] = [-62_135_596_800 * SECOND, 253_402_300_800 * SECOND]; // of years 1 to 9999
const ISO = new RegExp(
  "^([0-9]{4})(?:(-?)([0-9]{2})(?:\\2([0-9]{2})"
    + "(?:[T ]([0-9]{2})(?:(:?)([0-9]{2})(?:\\6([0-9]{2})(?:[.,]([0-9]+))?)?)?"
    + " ?(?<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2}){0,2})?)?)?)?$",
  "i",
);
const LAST_DAYS = /(?=29|30|31)/g;
const NUMBER = /^([+-]?[0-9]+)(\.[0-9]*)?(?:e[+-]?[0-9]+)?$/i;
const CHANGE_OF_CLOCKS = "where clocks change, times need their zone offset, as 2024-10-27 02:00+01:00";

const MONTHS = [
  "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
  "november", "december",
];
const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const short = (names) => names.map((name) => name.slice(0, 3));
const oneOf = (names) => [...names].sort((a, b) => b.length - a.length).join("|");

// Directives of a format, as Python's `strptime` reads them.
const DIRECTIVES = {
  "%": "%",
  a: oneOf(short(WEEKDAYS)),
  A: oneOf(WEEKDAYS),
  b: oneOf(short(MONTHS)),
  B: oneOf(MONTHS),
  d: "3[01]|[12]\\d|0[1-9]|[1-9]| [1-9]",
  f: "[0-9]{1,6}",
  H: "2[0-3]|[01]\\d|\\d",
  I: "1[0-2]|0[1-9]|[1-9]",
  j: "36[0-6]|3[0-5]\\d|[12]\\d\\d|0[1-9]\\d|00[1-9]|[1-9]\\d|0[1-9]|[1-9]",
  m: "1[0-2]|0[1-9]|[1-9]",
  M: "[0-5]\\d|\\d",
  p: "am|pm",
  S: "6[01]|[0-5]\\d|\\d",
  y: "\\d\\d",
  Y: "\\d\\d\\d\\d",
  z: "[+-]\\d\\d:?[0-5]\\d(?::?[0-5]\\d)?|Z",
};

/** Days since 1970 of a date; months are counted from 0 and may lie beyond a year. */
function daysOf(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  return date.getTime() / 86_400_000;
}

const floorOf = (time, unit) => Math.floor(time / unit);
const inDay = (time) => time - floorOf(time, DAY) * DAY;
const dateOf = (time) => new Date(floorOf(time, DAY) * 86_400_000);
const monthOf = (time) => {
  const date = dateOf(time);
  return 12 * date.getUTCFullYear() + date.getUTCMonth();
};
const dayOf = (month, day) => daysOf(Math.floor(month / 12), month % 12, day);
const daysIn = (month) => dayOf(month + 1, 1) - dayOf(month, 1);
const weekday = (days) => (((days + 3) % 7) + 7) % 7; // 0 on Monday

const CYCLES = {
  day: (time) => inDay(time) / DAY,
  week: (time) => {
    const weeks = (time - 4 * DAY) / (7 * DAY); // from a Monday on
    return weeks - Math.floor(weeks);
  },
  year: (time) => {
    const year = dateOf(time).getUTCFullYear();
    const [begin, end] = [year, year + 1].map((number) => daysOf(number, 0, 1) * DAY);
    return (time - begin) / (end - begin);
  },
};

/** Return a time as ISO 8601 writes it, without a fraction of zero. */
export function inIso(time) {
  const text = new Date(floorOf(time, SECOND) * 1000).toISOString().slice(0, 19);
  const fraction = time - floorOf(time, SECOND) * SECOND;
  return fraction ? `${text}.${String(fraction).padStart(6, "0")}` : text;
}

/** The time of a row, which follows that of the row before by one step. */
export class TimeColumn {
  /**
   * @param {object} settings the fields of `serving.times.TimeColumn`.
   * @param {string[]} settings.columns
   * @param {string | null} [settings.format]
   * @param {number} [settings.step]
   * @param {string} [settings.unit]
   * @param {number | null} [settings.day]
   * @param {string[]} [settings.cycles]
   * @param {boolean | null} [settings.has_offset]
   */
  constructor({
    columns, format = null, step = 1, unit = "second", day = null, cycles = [], has_offset = null,
  }) {
    this.columns = columns;
    this.format = format;
    this.step = step;
    this.unit = unit;
    this.day = day;
    this.cycles = cycles;
    this.hasOffset = has_offset;
  }

  /** Yield what is wrong. */
  * problems() {
    const { columns, format, step, unit, day, cycles } = this;
    if (!columns.length || columns.length > 6) {
      yield `the time must be of 1 to 6 columns; received ${columns.length}`;
    }
    if (!UNITS.includes(unit) || step < 1) {
      yield `the step must be of ${UNITS.join(" or ")}, at least 1; received ${step} ${unit}`;
    }
    if (day !== null && !(unit === "month" && day >= 1 && day <= 31)) {
      yield `the day must be 1 to 31, of steps of months; received ${day}`;
    }
    const unknown = cycles.find((name) => !Object.hasOwn(CYCLES, name));
    if (unknown !== undefined) {
      yield `cycles must be ${Object.keys(CYCLES).join(", ")}; received ${quoted(unknown)}`;
    }
    const directive = [...(format ?? "").matchAll(/%(.?)/gs)]
      .find(([, letter]) => !Object.hasOwn(DIRECTIVES, letter));
    if (directive) {
      yield `the format may not have ${quoted(directive[0])} in JavaScript: serve this bundle by Python`;
    }
  }

  /** The step as a text, as "15 minutes". */
  get stepInWords() {
    let [size, name] = [this.step, this.unit];
    if (Object.hasOwn(FIXED, name)) {
      const whole = size * FIXED[name];
      name = Object.keys(NAMED).find((key) => whole % NAMED[key] === 0) ?? name;
      size = whole / NAMED[name];
    }
    return `${size.toLocaleString("en-US")} ${name}${size > 1 ? "s" : ""}`;
  }

  /**
   * Return the time that the columns of a row hold.
   *
   * @param {any[]} parts the value of each column.
   * @param {string} where the name of the row, for errors.
   * @returns {number}
   * @throws {Refusal} beginning with `where`, if they hold none.
   */
  read(parts, where) {
    const time = this.columns.length > 1 ? ofColumns(parts) : this.#ofValue(parts[0]);
    if (time !== null) return time;
    let expected = "in ISO 8601, as 2024-12-31 23:00, or a number of seconds since 1970";
    if (this.columns.length > 1) expected = "of whole numbers";
    else if (this.format !== null) expected = `as ${quoted(this.format)} writes it`;
    const given = shown(parts.length === 1 ? parts[0] : parts.map(String).join(" "));
    const name = quoted(this.columns.join(" "));
    const about = this.#lacksOnlyItsDay(parts) ? ": there is no such day" : "";
    throw new Refusal(`${where}: ${name} must be a time ${expected}; received ${given}${about}`);
  }

  /**
   * Whether parts that are refused are a time but for a day beyond its month's end, as 2024-02-31:
   * they are read with the day 28 in the place of a 29, 30 or 31.
   */
  #lacksOnlyItsDay(parts) {
    const several = this.columns.length > 1;
    const place = several ? 2 : 0; // of the part with the day
    const text = textOf(parts[place]);
    if (text === null) return false;
    return [...text.matchAll(LAST_DAYS)].some(({ index }) => {
      const day = `${text.slice(0, index)}28${text.slice(index + 2)}`;
      const moved = parts.map((part, column) => (column === place ? day : part));
      return (several ? ofColumns(moved) : this.#ofValue(day)) !== null;
    });
  }

  #ofValue(value) {
    if (value instanceof Date) return inRange(value.getTime() * 1000);
    const text = textOf(value);
    if (text === null) return null;
    if (this.format === null) return ISO.test(text) ? ofIso(text) : ofNumber(text);
    const unit = EPOCHS.get(this.format);
    return unit === undefined ? ofFormat(text, narrow(this.format)) : microsecondsOf(text, unit);
  }

  /**
   * Throw a Refusal for the first row whose time is written with an offset where others are not.
   *
   * @param {any[][]} rows the values of the time's columns of each row, which `read` takes.
   * @param {(row: number) => string} where
   */
  requireOffsets(rows, where) {
    let [expected, like] = [this.hasOffset, "in training"];
    rows.forEach((parts, place) => {
      const found = this.#hasOffset(parts);
      if (found === null || found === expected) return;
      if (expected !== null) {
        const name = quoted(this.columns.join(" "));
        throw new Refusal(
          `${where(place)}: ${name} must be a time ${expected ? "with" : "without"} a zone offset, `
            + `as ${like}; received ${shown(parts[0])}`,
        );
      }
      [expected, like] = [found, `in ${where(place)}`];
    });
  }

  /** @param {any[]} parts @returns {boolean | null} */
  #hasOffset([value]) {
    if (this.columns.length > 1) return false;
    if (typeof value !== "string") return null;
    if (this.format !== null) return EPOCHS.has(this.format) ? null : this.format.includes("%z");
    const found = ISO.exec(narrow(value));
    return found && found.groups?.zone !== undefined;
  }

  /** Return the times of 1 to `count` steps behind a time. @returns {number[]} */
  after(time, count) {
    return Array.from({ length: count }, (_, place) => this.#behind(time, place + 1));
  }

  #behind(time, count) {
    const { unit, step } = this;
    if (Object.hasOwn(FIXED, unit)) return time + count * step * FIXED[unit];
    const days = floorOf(time, DAY);
    if (unit === "business day") {
      const before = Math.min(weekday(days), 4); // of a Saturday or Sunday the Friday
      const ahead = before + count * step;
      const monday = days - weekday(days);
      return (monday + 7 * Math.floor(ahead / 5) + (((ahead % 5) + 5) % 5)) * DAY + inDay(time);
    }
    const month = monthOf(time) + count * step;
    const day = Math.min(this.day ?? dateOf(time).getUTCDate(), daysIn(month));
    return dayOf(month, day) * DAY + inDay(time);
  }

  /**
   * Return by how many steps a time is behind the one before, and whether it is as near to that as
   * a time must be.
   *
   * @returns {{count: number, isNear: boolean}}
   */
  stepsBetween(before, time) {
    const { unit, step } = this;
    if (Object.hasOwn(FIXED, unit)) {
      const size = step * FIXED[unit];
      const count = Math.floor((2 * (time - before) + size) / (2 * size));
      return { count, isNear: 4 * Math.abs(time - before - count * size) <= size };
    }
    const units = unit === "month"
      ? monthOf(time) - monthOf(before)
      : businessDays(floorOf(before, DAY), floorOf(time, DAY));
    const count = Math.floor(units / step);
    const off = unit === "month" && this.day === null
      ? inDay(time) - inDay(before)
      : time - this.#behind(before, count);
    return { count, isNear: units % step === 0 && 4 * Math.abs(off) <= DAY };
  }

  /**
   * Throw a Refusal for the first row that does not follow by one step.
   *
   * @param {number[]} times
   * @param {(row: number) => string} where
   */
  requireSteps(times, where, wayOut = "") {
    for (let row = 1; row < times.length; row += 1) {
      const { count, isNear } = this.stepsBetween(times[row - 1], times[row]);
      if (count !== 1 || !isNear) {
        const [expected] = this.after(times[row - 1], 1);
        const isShorter = Object.hasOwn(FIXED, this.unit) && this.step * FIXED[this.unit] < DAY;
        const isAnHour = Math.abs(times[row] - expected) === NAMED.hour;
        throw new Refusal(
          `${where(row)}: expected the time ${inIso(expected)}, ${this.stepInWords} after the row `
            + `before; received ${inIso(times[row])}`
            + (isShorter && isAnHour ? `; ${CHANGE_OF_CLOCKS}` : "")
            + (isNear && count > 1 ? wayOut : ""),
        );
      }
    }
  }

  /** Return the sine and cosine of a time's phase in each cycle. @returns {number[]} */
  phases(time) {
    return this.cycles.flatMap((name) => {
      const angle = 2 * Math.PI * CYCLES[name](time);
      return [Math.sin(angle), Math.cos(angle)];
    });
  }
}

/** Days from Monday to Friday from a day on, before another one. */
function businessDays(begin, end) {
  const before = (days) => 5 * Math.floor((days + 3) / 7) + Math.min(weekday(days), 5);
  return before(end) - before(begin);
}

/** Return a text, or a number as a text, a whole one without a point; null of what is neither. */
function textOf(value) {
  if (typeof value === "string") return narrow(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  return String(Number.isInteger(value) ? BigInt(value) : value);
}

/** Return a time if it is one of years 1 to 9999, else null. */
const inRange = (time) => (time >= FIRST && time < LAST ? time : null);

/**
 * Return the time of year, month, day, and hour, minute and second, or null; months are counted from
 * 1.
 *
 * @param {number[]} parts
 * @param {number} [microseconds]
 */
function ofParts(parts, microseconds = 0) {
  const [year, month, day, hour = 0, minute = 0, second = 0] = parts;
  const fits = year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1
    && day <= daysIn(12 * year + month - 1) && hour >= 0 && hour < 24 && minute >= 0 && minute < 60
    && second >= 0 && second < 60;
  if (!fits) return null;
  const seconds = hour * 3600 + minute * 60 + second;
  return daysOf(year, month - 1, day) * DAY + seconds * SECOND + microseconds;
}

function ofColumns(parts) {
  const texts = parts.map(textOf);
  if (texts.some((text) => text === null || !NUMBER.test(text))) return null;
  const whole = texts.slice(0, 5).map(Number);
  if (!whole.every(Number.isInteger)) return null;
  let seconds = 0;
  if (parts.length === 6) {
    seconds = Math.floor(Number(texts[5]) * SECOND + 0.5);
    if (seconds < 0 || seconds >= 60 * SECOND) return null;
  }
  while (whole.length < 3) whole.push(1); // a year alone has a first day
  return ofParts(whole, seconds);
}

function ofIso(text) {
  const [, year, dash, month, day, hour, , minute, second, fraction, zone] = ISO.exec(text) ?? [];
  if (month && !day && !dash) return null;
  const offset = offsetOf(zone);
  const time = ofParts(
    [year, month ?? 1, day ?? 1, hour ?? 0, minute ?? 0, second ?? 0].map(Number),
    Number((fraction ?? "").slice(0, 6).padEnd(6, "0")),
  );
  return time === null || offset === null ? null : time - offset;
}

/** Return the microseconds of "+01:00"; 0 of "Z", "UTC" or nothing; null of what is none. */
function offsetOf(zone) {
  if (!zone || !"+-".includes(zone[0])) return 0;
  const digits = zone.slice(1).replaceAll(":", "").padEnd(6, "0");
  const [hours, minutes, seconds] = [0, 2, 4].map((start) => Number(digits.slice(start, start + 2)));
  if (hours > 23 || minutes > 59 || seconds > 59) return null;
  return (zone[0] === "-" ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds) * SECOND;
}

/** Return the time of the text of a number, its unit told by its size. */
function ofNumber(text) {
  if (!NUMBER.test(text)) return null;
  const number = Number(text);
  if (Number.isInteger(number) && ISO.test(String(BigInt(number)))) return ofIso(String(number));
  for (const unit of EPOCHS.values()) {
    const size = Math.abs(number) * (unit / 1e9); // in seconds
    if (size >= LEAST_SECONDS && size < MOST_SECONDS && !isOfHours(number)) {
      return microsecondsOf(text, unit);
    }
  }
  return null;
}

/** Whether a number may be a date and its hour, as 2024123123, or its minute. */
function isOfHours(number) {
  const digits = String(Math.trunc(number));
  if (![10, 12].includes(digits.length) || !(digits >= "1900" && digits < "2100")) return false;
  const part = (start) => Number(digits.slice(start, start + 2));
  const [minute, ...others] = [part(10), Number(digits.slice(0, 4)), part(4), part(6), part(8)];
  return ofParts(others) !== null && (digits.length === 10 || minute < 60);
}

/** Return the time of the text of a number of so many nanoseconds. */
function microsecondsOf(text, unit) {
  const found = NUMBER.exec(text);
  if (!found) return null;
  const number = Number(text);
  if (!Number.isFinite(number)) return null;
  if (found[1] !== text) return inRange(Math.floor(number * (unit / 1000) + 0.5));
  const nanoseconds = BigInt(text.replace("+", "")) * BigInt(unit);
  const over = ((nanoseconds % 1000n) + 1000n) % 1000n; // of whole microseconds
  return inRange(Number((nanoseconds - over) / 1000n));
}

/** Return the time of a text that a format of `strptime` reads, else null. */
function ofFormat(text, format) {
  const letters = [];
  const pattern = format.replace(/\s+|%.|[\\^$.*+?()[\]{}|]/gs, (part) => {
    if (!part.trim()) return "\\s+";
    if (part[0] !== "%" || part.length === 1) return `\\${part}`;
    if (part[1] !== "%") letters.push(part[1]);
    return part[1] === "%" ? "%" : `(${DIRECTIVES[part[1]]})`;
  });
  const found = new RegExp(`^${pattern}$`, "i").exec(text);
  if (!found) return null;
  const given = Object.fromEntries(letters.map((letter, place) => [letter, found[place + 1]]));
  const number = (letter, other) => (letter in given ? Number(given[letter]) : other);
  const name = (letter, names) => names.indexOf(given[letter].toLowerCase());
  let year = number("Y", 1900);
  if ("y" in given) year = number("y", 0) + (number("y", 0) <= 68 ? 2000 : 1900);
  let month = number("m", 1);
  if ("b" in given) month = name("b", short(MONTHS)) + 1;
  if ("B" in given) month = name("B", MONTHS) + 1;
  let hour = number("H", 0);
  if ("I" in given) {
    hour = (number("I", 0) % 12) + (given.p?.toLowerCase() === "pm" ? 12 : 0);
  }
  const parts = [year, month, number("d", 1), hour, number("M", 0), number("S", 0)];
  const time = ofParts(parts, Number((given.f ?? "").padEnd(6, "0")));
  if (time === null) return null;
  const days = "j" in given ? daysOf(year, 0, number("j", 1)) : floorOf(time, DAY);
  return inRange(days * DAY + inDay(time) - (offsetOf(given.z) ?? 0));
}
