// Forecasts the values that follow a series.

import { BundleError, Refusal } from "../refusal.js";
import { isRecord, requireFlag, shown, withDefaults } from "../checks.js";
import { float32 } from "../arrays.js";
import { byDefault, list, number, optional, record, string } from "../manifest/fields.js";
import { MANIFEST } from "../manifest/format.js";
import { counted, refuseUnknown, ROWS } from "../rows.js";
import { Streaming } from "../streams.js";
import { TOKEN_BUDGET } from "./batching.js";
import { ArrayReader, numbers, padded, PADDING } from "./frames.js";
import { encoded, oneOrAll } from "./inputs.js";
import { Model } from "./model.js";
import { Pipeline } from "./pipeline.js";
import { readSettings, ROLE, wrongOutput } from "./settings.js";

const [WINDOW, KNOWN] = ["window", "known"];
const DEFAULTS = { truncate: false, token_budget: TOKEN_BUDGET, strict: false };
const SETTINGS = {
  output: byDefault(optional(string), null),
  quantiles: byDefault(list(number), []),
  rows: ROWS,
  naive_errors: byDefault(record(list(number)), {}),
};
const PACKING = {
  arrays: (rows) => {
    const known = rows.flatMap((row) => (row.known ? [row.known] : []));
    const all = known.flatMap(({ data }) => Array.from(data));
    return {
      ...padded(WINDOW, rows.map((row) => row.window)),
      ...(known.length ? { [KNOWN]: float32(all, [rows.length, ...known[0].dims]) } : {}),
    };
  },
  required: [WINDOW],
  optional: [...PADDING, KNOWN],
  paddedBy: PADDING,
  mostPadding: Infinity,
};

/**
 * @typedef {object} Forecasting
 * @property {number[][]} values a row for each step, a number for each target; for quantiles, those
 *   of the quantile nearest to 1/2.
 * @property {Record<string, number[][]>} [quantiles] quantile -> its values.
 * @property {Record<string, Record<string, number>>} [unknown] column -> category -> how many rows have
 *   that category, which the model does not know and reads as if it were missing.
 */

/** The values that follow a series, one for each step and target, or quantiles of them. */
export class Forecast extends Pipeline {
  #model;
  #reader;
  #settings;
  #knownShape;

  constructor(bundle, model, reader, settings, knownShape) {
    super(bundle, [model]);
    this.#model = model;
    this.#reader = reader;
    this.#settings = settings;
    this.#knownShape = knownShape;
  }

  static async open(bundle, runtime) {
    const settings = readSettings(bundle, SETTINGS, problemsOf);
    const model = await Model.open(bundle, runtime, [settings.output], PACKING);
    const reader = ArrayReader.ofGraph(bundle, ROLE, WINDOW, "values");
    const { inputs } = runtime.graphsOf(bundle.manifest)[ROLE];
    const knownShape = inputs.find((spec) => spec.name === KNOWN)?.shape.slice(1) ?? null;
    if (knownShape?.some((size) => typeof size !== "number")) {
      const reason = "known must have fixed sizes of steps and covariates";
      throw new BundleError(reason, { where: bundle.where, subject: MANIFEST });
    }
    const { rows } = settings;
    const found = [...reader.sizes, ...(knownShape?.slice(1) ?? [])];
    const expected = rows ? [rows.numFeatures, ...(rows.numKnown ? [rows.numKnown] : [])] : found;
    if (found.join() !== expected.join()) {
      const reason = `settings.rows are of ${rows.numFeatures} numbers a row and ${rows.numKnown} a `
        + `known one; the graph takes ${found.join(" and ")}`;
      throw new BundleError(reason, { where: bundle.where, subject: MANIFEST });
    }
    const pipeline = new Forecast(bundle, model, reader, settings, knownShape);
    pipeline.streaming = new Streaming(bundle, runtime, {
      output: settings.output,
      input: WINDOW,
      optional: [KNOWN],
      read: pipeline.#follow,
      answer: (output, _, unknown) => pipeline.#forecasting(unknown, output),
    });
    return pipeline;
  }

  /**
   * Answer a series, or each series of a list.
   *
   * @param {any} series {series: rows of numbers}, with `known` where the model reads it; or a typed
   *   array of one feature; or a list of such, in which nested lists are series too. With
   *   `settings.rows` a row is an object of values by column, or a list of them in order; null is a
   *   missing value, and a Date a time.
   * @param {Partial<typeof DEFAULTS>} given see `serving.pipelines.Forecast`.
   * @returns {Promise<Forecasting | Forecasting[]>}
   */
  async answer(series, given) {
    const options = withDefaults("Forecast", given, DEFAULTS);
    const name = "Forecast: series";
    const strict = requireFlag("Forecast: strict", options.strict);
    const encode = (given, own, truncate) => this.encode(given, own, truncate, strict);
    const rows = encoded(series, name, encode, options, name);
    const read = (place, output) => this.#forecasting(rows[place].unknown, output);
    const answers = await this.#model.answer(rows, read, options.token_budget);
    return oneOrAll(series, answers, name, name);
  }

  encode = (given, name, truncate, strict = false) => {
    const { rows } = this.#settings;
    let { series, following } = this.#parts(given, name);
    let unknown = [];
    if (rows) ({ series, following, unknown } = this.#ofRows(series, following, name, truncate));
    if (strict) refuseUnknown(unknown);
    const window = this.#reader.read(series, name, truncate, true);
    if (!this.#knownShape) return { window, known: null, unknown, length: window.length };
    const known = knownOf(following, this.#knownShape, `${name}, known`);
    return { window, known, unknown, length: window.length };
  };

  /** Return a series, and what is known of the future or null. */
  #parts(given, name) {
    const { rows } = this.#settings;
    const asksKnown = this.#knownShape && (!rows || rows.known.length);
    const fields = asksKnown ? ["series", KNOWN] : ["series"];
    const isNamed = isRecord(given) && Object.keys(given).sort().join() === [...fields].sort().join();
    if (!isNamed && (isRecord(given) || asksKnown)) {
      throw new Refusal(
        `${name} must be an object of ${fields.join(" and ")}, which this model reads; `
          + `received ${shown(isRecord(given) ? Object.keys(given) : given)}`,
      );
    }
    return isNamed
      ? { series: given.series, following: given[KNOWN] }
      : { series: given, following: null };
  }

  /** Return the `Chunk` of rows of a stream. @type {import("../streams.js").ReadChunk} */
  #follow = (given, name, memory) => {
    const { rows } = this.#settings;
    const { series, following } = this.#parts(given, name);
    const read = rows?.following(series, name, memory);
    const window = this.#reader.readChunk(read?.table ?? series, name);
    const chunk = { arrays: { [WINDOW]: window }, memory: read?.memory ?? memory };
    const about = Array.from({ length: window.dims[0] }, () => /** @type {any[]} */ ([]));
    for (const unknown of read?.unknown ?? []) about[unknown.row].push(unknown);
    if (!this.#knownShape) return { ...chunk, about };
    const ofKnown = `${name}, known`;
    const known = read
      ? this.#knownOfRows(following, read.times, about.length, ofKnown)
      : following;
    const { data, dims } = knownOf(known, [about.length, ...this.#knownShape], ofKnown);
    return { ...chunk, about, arrays: { ...chunk.arrays, [KNOWN]: { type: "float32", data, dims } } };
  };

  /** Return what is known after each of some rows, as numbers. */
  #knownOfRows(following, times, length, name) {
    const { rows } = this.#settings;
    const [horizon] = this.#knownShape;
    if (rows.known.length && !(Array.isArray(following) && following.length === length)) {
      throw new Refusal(
        `${name} must be a list of ${length}, for each row the ${horizon} rows that follow it; `
          + `received ${shown(following)}`,
      );
    }
    return Array.from({ length }, (_, row) => rows.future(
      following?.[row], times[row] ?? null, horizon, `${name}, row ${row + 1}`,
    ).table);
  }

  /** Return the numbers of rows, and of what is known, and the categories that are unknown. */
  #ofRows(series, following, name, truncate) {
    const { rows } = this.#settings;
    const { fixed, limit } = this.#reader;
    const given = Array.isArray(series) ? series.length : 0;
    const taken = given && truncate ? series.slice(-limit) : series;
    if (given && fixed !== null && taken.length !== fixed) {
      const more = given < fixed ? ", or more and truncate" : "; truncate keeps the last ones";
      const horizon = rows.known.length ? this.#knownShape?.[0] : 0;
      const beside = horizon
        ? `, beside the ${horizon} rows that are read as the steps to forecast` : "";
      throw new Refusal(`${name} must have ${fixed} rows${more}; received ${given}${beside}`);
    }
    const window = rows.window(taken, name);
    if (!this.#knownShape) return { series: window.table, following: null, unknown: window.unknown };
    const future = rows.future(following, window.last, this.#knownShape[0], `${name}, known`);
    const unknown = [...window.unknown, ...future.unknown];
    return { series: window.table, following: future.table, unknown };
  }

  /** @returns {Forecasting} */
  #forecasting(given, { data, dims }) {
    const unknown = given.length ? { unknown: counted(given) } : {};
    const { quantiles, rows } = this.#settings;
    const valueOf = (answer, target) => (rows ? rows.unscaled(answer, target) : answer);
    const depth = quantiles.length || 1;
    const targets = dims.length < (quantiles.length ? 3 : 2) ? 1 : dims[1];
    const valuesOf = (place) => Array.from({ length: dims[0] }, (_, step) =>
      Array.from({ length: targets }, (__, target) =>
        valueOf(Number(data[(step * targets + target) * depth + place]), target)));
    if (!quantiles.length) return { values: valuesOf(0), ...unknown };
    const distances = quantiles.map((quantile) => Math.abs(quantile - 0.5));
    return {
      values: valuesOf(distances.indexOf(Math.min(...distances))),
      quantiles: Object.fromEntries(quantiles.map((quantile, place) => [quantile, valuesOf(place)])),
      ...unknown,
    };
  }
}

/** Return what is known of the future as numbers of this shape. */
function knownOf(value, shape, name) {
  const known = numbers(value, name);
  if (known.dims.join() === shape.join()) return known;
  throw new Refusal(
    `${name} must have shape (${shape.join(", ")}); received (${known.dims.join(", ")})`,
  );
}

function* problemsOf(settings, outputs) {
  const { quantiles, output } = settings;
  const own = quantiles.length ? [quantiles.length] : [];
  const shape = outputs.get(output)?.shape ?? [];
  const isOfOne = shape.length === 2 + own.length && shape.slice(2).join() === own.join();
  if (shape.length === 4 && !quantiles.length) {
    yield `settings.quantiles is missing: the model's output (${shape.join(", ")}) has a fourth axis, `
      + "of quantiles";
  } else {
    yield* wrongOutput(outputs, output, ["batch", "horizon", ...(isOfOne ? [] : ["targets"]), ...own]);
  }
  const bounds = [0, ...quantiles, 1];
  if (bounds.some((bound, place) => place && !(bounds[place - 1] < bound))) {
    yield `settings.quantiles must increase between 0 and 1; received ${quantiles.join(", ")}`;
  }
}
