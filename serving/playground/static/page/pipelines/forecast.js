// Forecast: the values that follow a series.

import { element } from "../element.js";
import { short } from "../numbers.js";
import { plot } from "../parts/plot.js";

const SHOWN = 96; // steps of the past in the plot

/** @typedef {import("../types.js").Manifest} Manifest */

/**
 * The names of a row's values, or null where rows are numbers without names.
 *
 * @param {Manifest} manifest
 * @param {(column: {known: boolean}) => boolean} [chosen] which columns.
 * @returns {string[] | null}
 */
function namesOf({ settings: { rows } }, chosen = () => true) {
  if (!rows) return null;
  return [...(rows.time?.columns ?? []), ...rows.columns.filter(chosen).map(({ name }) => name)];
}
/** @param {Manifest} manifest */
const knownNames = (manifest) => namesOf(manifest, ({ known }) => known);
/** @param {Manifest} manifest */
const takesKnown = ({ graphs, settings: { rows } }) =>
  graphs.model.inputs.some(({ name }) => name === "known") && (!rows || rows.columns.some(({ known }) => known));
const asLines = (rows) => rows.map((row) => (Array.isArray(row) ? row : [row]).map((value) => value ?? "").join(", ")).join("\n");

/** Return the rows of lines; values stay texts where columns have names, for these may be categories. */
function parsed(text, names) {
  const rows = text.split("\n").filter((line) => line.trim())
    .map((line) => line.split(names || /[,;]/.test(line) ? /\s*[,;\t]\s*/ : /\s+/).map((value) => value.trim()));
  if (names && rows.length && rows[0].join() === names.join()) rows.shift();
  if (names) return rows;
  return rows.map((row, place) => row.filter(Boolean).map((value) => {
    const number = Number(value);
    if (Number.isFinite(number)) return number;
    throw new Error(`line ${place + 1}: expected numbers; received “${value}”`);
  }));
}

/** @type {import("../types.js").View} */
export const forecast = {
  verb: "Forecast",
  fields: (manifest) => {
    const names = namesOf(manifest);
    const known = takesKnown(manifest);
    return [
      { name: "series", label: "Series", kind: "area", rows: 12, code: true, hint: `a line for each step${names ? `: ${names.join(", ")}` : ", with its numbers"}` },
      ...(known ? [{ name: "known", label: "What is known of the steps to come", kind: /** @type {const} */ ("area"), rows: 6, code: true, hint: knownNames(manifest)?.join(", ") ?? "a line for each step" }] : []),
    ];
  },
  values: (example) => {
    const [series, known] = Array.isArray(example) ? [example, null] : [example.series, example.known];
    return { series: asLines(series), ...(known ? { known: asLines(known) } : {}) };
  },
  question: ({ series, known }, manifest) => {
    const rows = parsed(series, namesOf(manifest));
    if (!rows.length) return null;
    if (!takesKnown(manifest)) return { input: { series: rows }, options: {} };
    return { input: { series: rows, known: parsed(known ?? "", knownNames(manifest)) }, options: {} };
  },
  show: ({ values, quantiles = {}, unknown = {} }, { series }, manifest) => {
    const { rows } = manifest.settings;
    const past = parsed(series, namesOf(manifest)).slice(-SHOWN);
    const first = rows?.time?.columns.length ?? 0;
    const hasHistory = Boolean(rows) || past[0]?.length === values[0].length; // else columns are not targets
    const number = (value) => (value === undefined || value === "" ? NaN : Number(value));
    const plots = values[0].map((_, target) => plot(
      rows?.columns[target].name ?? (values[0].length > 1 ? `Target ${target + 1}` : "Forecast"),
      hasHistory ? past.map((row) => number(row[first + target])) : [],
      values.map((step) => step[target]), bandsOf(quantiles, target),
    ));
    const notes = Object.entries(unknown).map(([column, found]) => element("p", { class: "note" },
      `The model does not know ${Object.keys(found).join(", ")} of ${column}: it reads no category there.`));
    return [...notes, ...plots, element("details", {}, element("summary", {}, "Values"),
      element("div", { class: "scrolls" }, table(values, quantiles)))];
  },
  say: ({ values }) => values.map((step) => step.map(short).join(" and ")).join(", "),
};

/** Return the bands between pairs of quantiles, the widest first. */
function bandsOf(quantiles, target) {
  const levels = Object.keys(quantiles).sort((one, other) => Number(one) - Number(other));
  return levels.slice(0, Math.floor(levels.length / 2)).map((low, place) => {
    const high = levels[levels.length - 1 - place];
    const of = (level) => quantiles[level].map((step) => step[target]);
    return { name: `quantiles ${low} to ${high}`, low: of(low), high: of(high) };
  });
}

function table(values, quantiles) {
  const levels = Object.keys(quantiles);
  const columns = ["Step", ...(levels.length ? levels : ["Value"])];
  const rows = values.map((step, place) => [place + 1,
    ...(levels.length ? levels.map((level) => quantiles[level][place]) : [step]).map((row) => row.map(short).join(", "))]);
  return element("table", { class: "rows" },
    element("thead", {}, element("tr", {}, columns.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((value) => element("td", {}, String(value)))))));
}
