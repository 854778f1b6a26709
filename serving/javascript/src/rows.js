// Rows of a table as the numbers that a model reads. This is `serving/rows.py` once more: all is
// computed in float64, before the model reads float32.

import { Refusal } from "./refusal.js";
import { isRecord, quoted, shown } from "./checks.js";
import { categoryOf, isMissing } from "./categories.js";
import {
  byDefault, flag, integer, list, number, object, optional, required, string,
} from "./manifest/fields.js";
import { TimeColumn } from "./times.js";
import { decimalSigns, numberOf } from "./written_numbers.js";

const MOST = 3e38; // of float32
const MOST_LISTED = 12; // categories in an error
const WAY_OVER_GAPS = "; rows that are missing may be given without values";

/** The field `rows` of settings. */
export const ROWS = byDefault(optional(object({
  columns: required(list(object({
    name: required(string),
    categories: byDefault(list(string), []),
    fill: byDefault(number, 0),
    may_be_missing: byDefault(flag, false),
    known: byDefault(flag, false),
    decimal: byDefault(optional(string), null),
    mean: byDefault(number, 0),
    deviation: byDefault(number, 1),
    log: byDefault(flag, false),
  }))),
  time: byDefault(optional(object({
    columns: required(list(string)),
    format: byDefault(optional(string), null),
    step: byDefault(integer, 1),
    unit: byDefault(string, "second"),
    day: byDefault(optional(integer), null),
    cycles: byDefault(list(string), []),
    has_offset: byDefault(optional(flag), null),
  })), null),
  series: byDefault(optional(string), null),
})), null);

/**
 * A category that no column has, with the name and the index of its row.
 *
 * @typedef {{where: string, row: number, column: any, category: string}} Unknown
 */
/**
 * What rows remember of those before them.
 *
 * @typedef {object} Memory
 * @property {number[] | null} numbers the last numbers of columns of numbers, with what stands for
 *   missing ones; null before the first row.
 * @property {number | null} time the time of the last row, in microseconds since 1970; null without one.
 * @property {string | null} series the series of the rows, as a category; null where rows name none.
 */

/** @type {Memory} */
export const NOTHING = { numbers: null, time: null, series: null };

/** What a row holds; the targets are the first columns. */
export class Rows {
  /** @param {any} settings as the field `ROWS` gives them. */
  constructor({ columns, time, series }) {
    this.columns = columns;
    this.time = time === null ? null : new TimeColumn(time);
    this.series = series;
    this.known = columns.filter((column) => column.known);
  }

  /** The names of a row's values, in their order. */
  get names() {
    return [...(this.time?.columns ?? []), ...this.columns.map((column) => column.name)];
  }

  /** How many numbers the model reads of a row of the past. */
  get numFeatures() {
    const missing = this.columns.filter((column) => column.may_be_missing).length;
    return widthOf(this.columns) + missing + this.#numPhases;
  }

  /** How many numbers it reads of a row of the future. */
  get numKnown() {
    return widthOf(this.known) + this.#numPhases;
  }

  get #numPhases() {
    return 2 * (this.time?.cycles.length ?? 0);
  }

  /** Yield what is wrong. */
  * problems() {
    const { names } = this;
    if (!this.columns.length || new Set(names).size < names.length) {
      yield `rows must have columns of different names; received ${names.join(", ")}`;
    }
    for (const column of this.columns) {
      const name = quoted(column.name);
      if (column.categories.length && column.may_be_missing) {
        yield `a category that is missing is no number: ${name} may not be both`;
      }
      const wrong = column.categories.find((category) => categoryOf(category) !== category);
      if (wrong !== undefined) {
        yield `categories must be written as they are read: ${quoted(wrong)} of ${name} is read as `
          + quoted(String(categoryOf(wrong)));
      }
      if (column.decimal !== null && !decimalSigns.includes(column.decimal)) {
        yield `decimal of ${name} must be ${decimalSigns.join(" or ")}, or null; received `
          + quoted(column.decimal);
      }
      if (column.deviation <= 0) {
        yield `deviation of ${name} must be over 0; received ${column.deviation}`;
      }
      if (column.categories.length && (column.mean || column.deviation !== 1 || column.log)) {
        yield `categories are not scaled: ${name} may have no mean, deviation or log`;
      }
    }
    yield* this.time?.problems() ?? [];
  }

  /**
   * Return the numbers of rows, the time of the last row or null, and categories that are unknown.
   *
   * @param {any} rows a list of rows; each an object by name, which may hold more, or the values in
   *   the order of `names`.
   * @param {string} name of them, for errors.
   * @returns {{table: Float32Array[], last: number | null, unknown: Unknown[]}}
   */
  window(rows, name) {
    const { table, times, unknown } = this.following(rows, name, NOTHING);
    return { table, last: times.at(-1) ?? null, unknown };
  }

  /**
   * Return the numbers of rows that follow others, the time of each row (none without a column of
   * time), the memory after them, and categories that are unknown; see `window`.
   *
   * @param {any} rows
   * @param {string} name
   * @param {Memory} memory
   * @returns {{table: Float32Array[], times: number[], memory: Memory, unknown: Unknown[]}}
   */
  following(rows, name, memory) {
    const fields = fieldsOf(rows, name, this.names);
    const where = whereOf(name, fields);
    const series = this.#seriesOf(rows, where, memory.series);
    const size = this.time?.columns.length ?? 0;
    const parts = fields.map((field) => field.slice(0, size));
    const { time } = this;
    const times = time ? parts.map((part, row) => time.read(part, where(row))) : [];
    time?.requireOffsets(parts, where);
    if (memory.time === null) time?.requireSteps(times, where, WAY_OVER_GAPS);
    else time?.requireSteps([memory.time, ...times], (row) => where(row - 1), WAY_OVER_GAPS);
    const { values, unknown } = valuesOf(fields, this.columns, where, size);
    const told = this.columns.filter((column) => column.may_be_missing);
    const numbers = this.columns.filter((column) => !column.categories.length);
    const last = new Map(
      numbers.map((column, place) => [column, memory.numbers?.[place] ?? column.fill]),
    );
    const others = this.columns.filter((column) => column.categories.length);
    const table = values.map((given, row) => {
      for (const column of numbers) {
        const [value] = given.get(column);
        if (!Number.isNaN(value)) last.set(column, value);
      }
      return Float32Array.from([
        ...numbers.map((column) => scaled(column, last.get(column))),
        ...told.map((column) => Number(Number.isNaN(given.get(column)[0]))),
        ...others.flatMap((column) => given.get(column)),
        ...(time?.phases(times[row]) ?? []),
      ]);
    });
    const after = { numbers: [...last.values()], time: times.at(-1) ?? null, series };
    return { table, times, memory: after, unknown };
  }

  /** Return the series of rows that follow those of a series; null where rows name none. */
  #seriesOf(rows, where, series) {
    if (this.series === null) return series;
    let found = series;
    rows.forEach((row, place) => {
      const name = isRecord(row) ? categoryOf(row[this.series] ?? null) : null;
      if (name === null || name === found) return;
      if (found !== null) {
        throw new Refusal(`${where(place)}: ${quoted(this.series)} must be ${quoted(found)}, as before, `
          + `for a series is read alone; received ${shown(name)}`);
      }
      found = name;
    });
    return found;
  }

  /**
   * Return the numbers of what is known of the steps to come, and categories that are unknown.
   *
   * @param {any} rows of the columns that are known; anything where there are none. Rows that are
   *   objects with the time follow the past and each other by a step.
   * @param {number | null} last the time of the last row of the past.
   * @param {number} horizon how many steps.
   * @param {string} name of the rows, for errors.
   * @returns {{table: Float32Array[], unknown: Unknown[]}}
   */
  future(rows, last, horizon, name) {
    const names = this.known.map((column) => column.name);
    const fields = names.length ? fieldsOf(rows, name, names) : Array.from({ length: horizon }, () => []);
    const where = whereOf(name, fields);
    if (fields.length !== horizon) {
      throw new Refusal(`${name} must have ${horizon} rows; received ${fields.length}`);
    }
    const { values, unknown } = valuesOf(fields, this.known, where, 0);
    for (const column of this.known) {
      const row = values.findIndex((given) => given.get(column).some(Number.isNaN));
      if (row >= 0) throw new Refusal(`${where(row)}: ${quoted(column.name)} must be known`);
    }
    if (names.length) this.#requireFollowing(rows, last, where);
    const times = last === null || this.time === null ? [] : this.time.after(last, horizon);
    const table = values.map((given, row) => Float32Array.from([
      ...this.known.flatMap((column) => (
        column.categories.length ? given.get(column) : [scaled(column, given.get(column)[0])])),
      ...(this.time?.phases(times[row]) ?? []),
    ]));
    return { table, unknown };
  }

  /** Throw a Refusal if rows have times, and these do not follow the last one by steps. */
  #requireFollowing(rows, last, where) {
    const { time } = this;
    if (time === null || !rows.every(isRecord)) return;
    const parts = rows.map((row) => time.columns.map((column) => row[column] ?? null));
    if (parts.some((row) => row.some(isMissing))) return;
    const times = parts.map((row, place) => time.read(row, where(place)));
    time.requireOffsets(parts, where);
    time.requireSteps([last, ...times], (row) => where(row - 1));
  }

  /** Return the value of a target, by its place, of a model's answer. */
  unscaled(answer, target) {
    const column = this.columns[target]; // the targets are the first columns
    if (!column || column.categories.length) return answer;
    const read = column.mean + column.deviation * answer;
    return column.log ? Math.expm1(read) : read;
  }
}

/** Return what the model reads of a number. */
function scaled({ mean, deviation, log }, value) {
  return ((log ? Math.log1p(Math.max(value, 0)) : value) - mean) / deviation;
}

/** Throw a Refusal for the first of these categories, if there is one. @param {Unknown[]} unknown */
export function refuseUnknown(unknown) {
  const [first] = unknown;
  if (!first) return;
  const { categories, name } = first.column;
  const more = categories.length - MOST_LISTED;
  throw new Refusal(
    `${first.where}: ${quoted(name)} must be one of `
      + `${categories.slice(0, MOST_LISTED).map(quoted).join(", ")}`
      + `${more > 0 ? ` and ${more} more` : ""}; received ${shown(first.category)}`,
  );
}

/** Return column -> category -> how many rows have it. @param {Unknown[]} unknown */
export function counted(unknown) {
  /** @type {Map<string, Map<string, number>>} */
  const found = new Map();
  for (const { column, category } of unknown) {
    const ofColumn = found.get(column.name) ?? new Map();
    found.set(column.name, ofColumn.set(category, (ofColumn.get(category) ?? 0) + 1));
  }
  return Object.fromEntries([...found].map(([name, counts]) => [name, Object.fromEntries(counts)]));
}

/** Return index of a row -> its name; a single row has the name of all. */
const whereOf = (name, rows) => (row) => (rows.length === 1 ? name : `${name}, row ${row + 1}`);
const widthOf = (columns) => columns.reduce((sum, column) => sum + (column.categories.length || 1), 0);

/** Return the values of every row, in the order of `names`. */
function fieldsOf(rows, name, names) {
  if (!Array.isArray(rows) || !rows.length) {
    throw new Refusal(`${name} must be rows of ${names.join(", ")}; received ${shown(rows)}`);
  }
  return rows.map((row, place) => {
    const where = whereOf(name, rows)(place);
    if (isRecord(row)) {
      const missing = names.find((column) => !Object.hasOwn(row, column));
      if (missing === undefined) return names.map((column) => row[column]);
      throw new Refusal(`${where} has no ${quoted(missing)}; it has ${Object.keys(row).join(", ")}`);
    }
    if (!Array.isArray(row) || row.length !== names.length) {
      throw new Refusal(
        `${where} must hold ${names.join(", ")}, or be an object of them; received ${shown(row)}`,
      );
    }
    return row;
  });
}

/** Return a Map of each row, column -> its numbers, NaN where one is missing; and what is unknown. */
function valuesOf(fields, columns, where, first) {
  const unknown = /** @type {Unknown[]} */ ([]);
  const values = fields.map(() => new Map());
  columns.forEach((column, place) => fields.forEach((field, row) => {
    const value = field[first + place];
    if (!column.categories.length) values[row].set(column, [numberIn(column, value, where(row))]);
    else {
      const category = categoryIn(column, value, where(row));
      if (category !== null && !column.categories.includes(category)) {
        unknown.push({ where: where(row), row, column, category });
      }
      values[row].set(column, column.categories.map((own) => Number(own === category)));
    }
  }));
  return { values, unknown };
}

function categoryIn(column, value, where) {
  try {
    return categoryOf(value);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(`${where}: ${quoted(column.name)} ${error.reasons[0]}`);
  }
}

function numberIn(column, value, where) {
  if (isMissing(value)) return NaN;
  let found = /** @type {number | null} */ (null);
  if (typeof value === "string") found = numberOf(value, column.decimal);
  else if (typeof value === "number" || typeof value === "bigint") found = Number(value);
  if (found === null || !(Math.abs(found) < MOST)) {
    const expected = found !== null && Number.isFinite(found) ? "a number of float32, under 3e38" : "a number";
    throw new Refusal(`${where}: ${quoted(column.name)} must be ${expected}; received ${shown(value)}`);
  }
  return found;
}
