// Cells of a table as categories: one text for a value, whoever wrote it. This is the function of
// `serving/categories.py` once more; both are tested by the cases of test/categories.json.

import { Refusal } from "./refusal.js";
import { shown } from "./checks.js";
import { stripped } from "./text/characters.js";

const MISSING = new Set(["", "na", "n/a", "nan", "null", "none", "?"]); // in small letters
const BOOLEANS = new Map(["true", "false"].flatMap((name) =>
  [name, name[0].toUpperCase() + name.slice(1), name.toUpperCase()].map((form) => [form, name])));
const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-][0-9]{1,3}))?$/;
const TIME = new RegExp(
  "^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\\.([0-9]+))?)?"
    + "(Z|[+-][0-9]{2}:[0-9]{2})?$",
);

/** Whether a cell is missing: null, undefined, NaN, or a text that says so. */
export function isMissing(value) {
  if (typeof value === "string") return MISSING.has(stripped(value).toLowerCase());
  return value === null || value === undefined || Number.isNaN(value);
}

/**
 * Return the category of a cell; null if the cell is missing.
 *
 * @param {any} value
 * @returns {string | null}
 * @throws {Refusal} if the value is no text, boolean, number or date.
 */
export function categoryOf(value) {
  if (isMissing(value)) return null;
  if (typeof value === "string") return ofText(stripped(value));
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return ofText(String(value).replace("Infinity", "inf"));
  if (value instanceof Date) return ofText(value.toISOString());
  throw new Refusal(`must be a text, a number, true or false, or a date; received ${shown(value)}`);
}

function ofText(text) {
  if (BOOLEANS.has(text)) return BOOLEANS.get(text);
  const number = NUMBER.exec(text);
  if (number) return numberOf(...number.slice(1));
  const time = TIME.exec(text);
  return time ? timeOf(...time.slice(1)) : text;
}

/** Return a decimal number without exponent and without zeros at its end. */
function numberOf(sign, integer, decimals = "", exponent = "0") {
  const place = integer.length + Number(exponent);
  const point = Math.max(place, 1);
  const digits = ("0".repeat(Math.max(1 - place, 0)) + integer + decimals).padEnd(point, "0");
  const whole = digits.slice(0, point).replace(/^0+(?=.)/, "");
  const fraction = digits.slice(point).replace(/0+$/, "");
  const number = fraction ? `${whole}.${fraction}` : whole;
  return number === "0" ? number : sign + number;
}

function timeOf(day, minute, second = "00", decimals = "", offset = undefined) {
  const fraction = decimals.replace(/0+$/, "");
  const time = `${minute}:${second}${fraction && `.${fraction}`}`;
  if (offset === undefined) return time === "00:00:00" ? day : `${day}T${time}`;
  return `${day}T${time}${offset === "Z" ? "+00:00" : offset}`;
}
