// Forecasts the values that follow a series.

import { BundleError, Refusal } from "../refusal.js";
import { isRecord, shown, withDefaults } from "../checks.js";
import { float32 } from "../arrays.js";
import {
  anything, byDefault, list, number, optional, record, string,
} from "../manifest/fields.js";
import { MANIFEST } from "../manifest/format.js";
import { TOKEN_BUDGET } from "./batching.js";
import { ArrayReader, numbers, padded, PADDING } from "./frames.js";
import { encoded, oneOrAll } from "./inputs.js";
import { Model } from "./model.js";
import { Pipeline } from "./pipeline.js";
import { readSettings, ROLE, wrongOutput } from "./settings.js";

const [WINDOW, KNOWN] = ["window", "known"];
const DEFAULTS = { truncate: false, token_budget: TOKEN_BUDGET };
const SETTINGS = {
  output: byDefault(optional(string), null),
  quantiles: byDefault(list(number), []),
  rows: byDefault(optional(anything), null),
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
    return new Forecast(bundle, model, reader, settings, knownShape);
  }

  /**
   * Answer a series, or each series of a list.
   *
   * @param {any} series {series: rows of numbers}, with `known` where the model reads it; or a typed
   *   array of one feature; or a list of such, in which nested lists are series too.
   * @param {Partial<typeof DEFAULTS>} given see `serving.pipelines.Forecast`.
   * @returns {Promise<Forecasting | Forecasting[]>}
   */
  async answer(series, given) {
    const options = withDefaults("Forecast", given, DEFAULTS);
    const name = "Forecast: series";
    const rows = encoded(series, name, this.encode, options, name);
    const read = (_, output) => this.#forecasting(output);
    return oneOrAll(series, await this.#model.answer(rows, read, options.token_budget));
  }

  encode = (given, name, truncate) => {
    const fields = this.#knownShape ? ["series", KNOWN] : ["series"];
    const isNamed = isRecord(given) && Object.keys(given).sort().join() === [...fields].sort().join();
    if (!isNamed && (isRecord(given) || fields.includes(KNOWN))) {
      throw new Refusal(
        `${name} must be an object of ${fields.join(" and ")}, which this model reads; `
          + `received ${shown(isRecord(given) ? Object.keys(given) : given)}`,
      );
    }
    const window = this.#reader.read(isNamed ? given.series : given, name, truncate, true);
    if (!this.#knownShape) return { window, known: null, length: window.length };
    const known = numbers(given[KNOWN], `${name}, known`);
    if (known.dims.join() !== this.#knownShape.join()) {
      throw new Refusal(
        `${name}, known must have shape (${this.#knownShape.join(", ")}); received `
          + `(${known.dims.join(", ")})`,
      );
    }
    return { window, known, length: window.length };
  };

  /** @returns {Forecasting} */
  #forecasting({ data, dims }) {
    const { quantiles } = this.#settings;
    const depth = quantiles.length || 1;
    const targets = dims.length < (quantiles.length ? 3 : 2) ? 1 : dims[1];
    const valuesOf = (place) => Array.from({ length: dims[0] }, (_, step) =>
      Array.from({ length: targets }, (__, target) =>
        Number(data[(step * targets + target) * depth + place])));
    if (!quantiles.length) return { values: valuesOf(0) };
    const distances = quantiles.map((quantile) => Math.abs(quantile - 0.5));
    return {
      values: valuesOf(distances.indexOf(Math.min(...distances))),
      quantiles: Object.fromEntries(quantiles.map((quantile, place) => [quantile, valuesOf(place)])),
    };
  }
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
