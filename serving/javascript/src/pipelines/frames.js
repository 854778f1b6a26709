// Inputs of numbers: the frames of a recording or a video, an image, the values of a series.

import { BundleError, Refusal } from "../refusal.js";
import { isRecord, shown } from "../checks.js";
import { float32, int64, sizeOf } from "../arrays.js";
import { MANIFEST } from "../manifest/format.js";
import { refuseUnknown } from "../rows.js";
import { FRAMES } from "../session.js";
import { tooLong } from "./inputs.js";
import { paddingMask } from "./model.js";

export const PADDING = ["lengths", "padding_mask"]; // either input marks the padding

/** @typedef {{data: Float32Array, dims: number[], length: number}} Numbers `length` is the first size. */

/** Whether a bundle's graph reads frames rather than text. */
export function takesFrames(manifest, role) {
  return Boolean(manifest.graphs[role]?.inputs.some((spec) => spec.name === FRAMES));
}

/** Converts values to arrays of a model's input, in float32. */
export class ArrayReader {
  #unit;

  /**
   * @param {(number | string)[]} shape of an array: its length, and fixed sizes.
   * @param {number} limit the greatest length, where it is open.
   * @param {string} unit the name of an array's elements, for errors.
   */
  constructor(shape, limit, unit) {
    const [length, ...sizes] = shape;
    this.sizes = /** @type {number[]} */ (sizes);
    this.fixed = typeof length === "number" ? length : null;
    this.#unit = unit;
    this.limit = this.fixed ?? limit;
  }

  /** Return the reader for an input of a bundle's graph. */
  static ofGraph(bundle, role, name, unit) {
    const { manifest, where } = bundle;
    const spec = manifest.graphs[role].inputs.find((tensor) => tensor.name === name);
    const shape = spec?.shape.slice(1) ?? [];
    if (!shape.length || shape.slice(1).some((size) => typeof size !== "number")) {
      throw new BundleError(
        `${name} must have an axis for the batch, one for the length, and fixed sizes for all `
          + "others",
        { where, subject: MANIFEST },
      );
    }
    return new ArrayReader(shape, manifest.limits.source_length, unit);
  }

  /**
   * Return a value as an array of this shape; a last axis of size 1 is optional.
   *
   * @param {any} value nested lists of numbers, or a typed array.
   * @param {string} name of it, for errors.
   * @param {boolean} truncate cut an array over the limit.
   * @param {boolean} [keepLast] cut at the beginning.
   * @returns {Numbers}
   */
  read(value, name, truncate, keepLast = false) {
    const given = numbers(value, name);
    let { data, dims } = given;
    const sizes = this.sizes;
    if (dims.length === sizes.length && sizes.at(-1) === 1) dims = [...dims, 1];
    else if (dims.length === 2 + sizes.length && dims.at(-1) === 1) dims = dims.slice(0, -1);
    const fits = dims.length === 1 + sizes.length
      && sizes.every((size, axis) => size === dims[axis + 1]);
    if (fits && truncate && dims[0] > this.limit) {
      const size = sizeOf(sizes);
      const start = keepLast ? dims[0] - this.limit : 0;
      data = data.slice(start * size, (start + this.limit) * size);
      dims = [this.limit, ...sizes];
    }
    if (!fits || !dims[0] || (this.fixed ?? dims[0]) !== dims[0]) {
      const expected = [this.fixed ?? "length", ...sizes].join(", ");
      throw new Refusal(
        `${name} must have shape (${expected}); received (${dims.join(", ")})`,
        { advice: "A list is several inputs: give one as an object." },
      );
    }
    if (dims[0] > this.limit) throw tooLong(name, dims[0], this.limit, this.#unit);
    return { data, dims, length: dims[0] };
  }

  /**
   * Return some frames of a stream, (frames, sizes); see `read`.
   *
   * @param {any} value
   * @param {string} name
   * @returns {import("../arrays.js").NumberArray}
   */
  readChunk(value, name) {
    const { data, dims } = numbers(value, name);
    if (!dims[0] || dims.slice(1).join() !== this.sizes.join()) {
      throw new Refusal(
        `${name} must have shape (${["frames", ...this.sizes].join(", ")}), one frame at least; `
          + `received (${dims.join(", ")})`,
      );
    }
    return { type: "float32", data, dims };
  }
}

/** Return arrays as a batch under a name, padded with zeros, with lengths and padding mask. */
export function padded(name, rows) {
  const lengths = rows.map((row) => row.length);
  const longest = Math.max(...lengths);
  const sizes = rows[0].dims.slice(1);
  const size = longest * sizeOf(sizes);
  const data = new Float32Array(rows.length * size);
  rows.forEach((row, place) => data.set(row.data, place * size));
  return {
    [name]: float32(data, [rows.length, longest, ...sizes]),
    lengths: int64(lengths, [rows.length]),
    padding_mask: paddingMask(lengths, longest),
  };
}

/** A model without lengths and padding mask can not recognise padding, so it gets none. */
export const PACKED_FRAMES = {
  arrays: (rows) => padded(FRAMES, rows),
  required: [FRAMES],
  optional: PADDING,
  paddedBy: PADDING,
  labels: (row) => ({ [FRAMES]: Array.from({ length: row.length }, (_, place) => String(place)) }),
};

/**
 * Reads frames: {frames: nested lists, or rows of a table}, or in a list of inputs these themselves; of
 * a table also one row, an object.
 */
export class FrameReader {
  packing = PACKED_FRAMES;
  #reader;
  #rows;

  /**
   * @param {ArrayReader} reader
   * @param {import("../rows.js").Rows | null} [rows] of a table whose rows are frames.
   */
  constructor(reader, rows = null) {
    this.#reader = reader;
    this.#rows = rows;
    this.unit = FRAMES;
  }

  /** Return the reader for the graph of a role; `rows` are those of the settings. */
  static ofGraph(bundle, role, rows = /** @type {any} */ (null)) {
    const reader = ArrayReader.ofGraph(bundle, role, FRAMES, FRAMES);
    if (rows && reader.sizes.join() !== String(rows.numFeatures)) {
      throw new BundleError(
        `settings.rows are of ${rows.numFeatures} numbers a row; the graph takes frames of `
          + `${reader.sizes.join(" x ")}`,
        { where: bundle.where, subject: MANIFEST },
      );
    }
    return new FrameReader(reader, rows);
  }

  read(value, name, truncate) {
    let own = isRecord(value) && Object.keys(value).join() === FRAMES ? value[FRAMES] : value;
    if (this.#rows) {
      if (isRecord(own)) own = [own]; // one row
      const { table, unknown } = this.#rows.window(own, name);
      refuseUnknown(unknown); // the answer has no field that could tell of it
      own = table;
    }
    return this.#reader.read(own, name, truncate);
  }

  /** Return the `Chunk` of some frames that follow others. @type {import("../streams.js").ReadChunk} */
  follow = (value, name, memory) => {
    if (!this.#rows) return { arrays: { [FRAMES]: this.#reader.readChunk(value, name) }, memory };
    const { table, unknown, memory: after } = this.#rows.following(value, name, memory);
    refuseUnknown(unknown);
    return { arrays: { [FRAMES]: this.#reader.readChunk(table, name) }, memory: after };
  };
}

/**
 * Return numbers as a float32 array.
 *
 * @param {any} value nested lists of one shape, or a typed array.
 * @param {string} name of it, for errors.
 * @returns {{data: Float32Array, dims: number[]}}
 */
export function numbers(value, name) {
  const wrong = () => new Refusal(`${name} must be numbers; received ${shown(value)}`);
  const isList = (part) => Array.isArray(part) || (ArrayBuffer.isView(part) && "length" in part);
  const dims = [];
  for (let part = value; isList(part); part = part[0]) dims.push(part.length);
  if (!dims.length) throw wrong();
  let parts = [value];
  for (const size of dims) {
    if (parts.some((part) => !isList(part) || part.length !== size)) throw wrong();
    parts = parts.flatMap((part) => Array.from(part));
  }
  if (parts.some((part) => typeof part !== "number" && typeof part !== "boolean")) throw wrong();
  const data = Float32Array.from(parts, Number);
  if (data.some((number) => !Number.isFinite(number))) {
    throw new Refusal(`${name} must be finite numbers in float32; received ${shown(value)}`);
  }
  return { data, dims };
}
