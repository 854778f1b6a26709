// Arrays by type and shape: what a graph takes and gives.

/**
 * @typedef {object} NumberArray
 * @property {string} type such as "float32".
 * @property {ArrayLike<any>} data in the order of C.
 * @property {readonly number[]} dims
 */

/** Return an int64 array of numbers. @returns {NumberArray} */
export function int64(values, dims) {
  return { type: "int64", data: BigInt64Array.from(values, BigInt), dims };
}

/** Return a float32 array. @returns {NumberArray} */
export function float32(data, dims) {
  return { type: "float32", data: Float32Array.from(data), dims };
}

/** Return an array of true and false. @returns {NumberArray} */
export function bool(values, dims) {
  return { type: "bool", data: Uint8Array.from(values, Number), dims };
}

/** Return the product of sizes. */
export const sizeOf = (dims) => dims.reduce((product, size) => product * size, 1);

/**
 * Return some rows of an array, the slices of its first axis.
 *
 * @param {NumberArray} array
 * @param {number[]} rows
 * @returns {NumberArray}
 */
export function rowsOf(array, rows) {
  const [, ...inner] = array.dims;
  const size = sizeOf(inner);
  const data = /** @type {any} */ (array.data);
  const found = new data.constructor(rows.length * size);
  rows.forEach((row, place) => found.set(data.subarray(row * size, (row + 1) * size), place * size));
  return { type: array.type, data: found, dims: [rows.length, ...inner] };
}

/** Return the slices `start` to `end` of an array's first axis. @returns {NumberArray} */
export function between(array, start, end) {
  const inner = array.dims.slice(1);
  const size = sizeOf(inner);
  const data = /** @type {any} */ (array.data).subarray(start * size, end * size);
  return { type: array.type, data, dims: [end - start, ...inner] };
}

/**
 * Return a copy of the numbers of arrays, one after the other, in one array of this shape.
 *
 * @param {NumberArray[]} arrays of one type, one at least.
 * @param {readonly number[]} dims
 * @returns {NumberArray}
 */
export function joined(arrays, dims) {
  const [first] = arrays;
  const data = new /** @type {any} */ (first.data).constructor(sizeOf(dims));
  let place = 0;
  for (const array of arrays) {
    data.set(array.data, place);
    place += array.data.length;
  }
  return { type: first.type, data, dims };
}

/**
 * Return a copy of an array in which some rows are those of another one.
 *
 * @param {NumberArray} array
 * @param {number[]} rows
 * @param {NumberArray} other its numbers are those of a row for each of `rows`.
 * @returns {NumberArray}
 */
export function withRows(array, rows, other) {
  const size = sizeOf(array.dims.slice(1));
  const data = /** @type {any} */ (array.data).slice();
  const own = /** @type {any} */ (other.data);
  rows.forEach((row, place) => data.set(own.subarray(place * size, (place + 1) * size), row * size));
  return { type: array.type, data, dims: array.dims };
}

/** Return an array of another shape. @returns {NumberArray} */
export const reshaped = (array, dims) => ({ ...array, dims });

/** Return the numbers of an int64 or float32 array. @returns {number[]} */
export const numbersOf = (array) => Array.from(array.data, Number);

/**
 * Pad rows of ids on the right to the length of the longest.
 *
 * @param {ArrayLike<number>[]} rows
 * @param {number} [padId]
 * @returns {{padded: NumberArray, lengths: NumberArray}} (B, T) and (B,) int64.
 */
export function pad(rows, padId = 0) {
  const longest = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const values = rows.flatMap((row) => [
    ...Array.from(row), ...Array(longest - row.length).fill(padId),
  ]);
  return {
    padded: int64(values, [rows.length, longest]),
    lengths: int64(rows.map((row) => row.length), [rows.length]),
  };
}

/**
 * Pad rows of lists, such as the characters of words or the children of nodes.
 *
 * @param {number[][][]} rows
 * @param {object} [options]
 * @param {number} [options.padId]
 * @param {number} [options.width] the least size of the last axis.
 * @returns {NumberArray} (B, T, W) int64, each axis after the first at least 1.
 */
export function padNested(rows, { padId = 0, width = 1 } = {}) {
  const longest = Math.max(1, ...rows.map((row) => row.length));
  const widest = Math.max(width, ...rows.flatMap((row) => row.map((values) => values.length)));
  const values = Array(rows.length * longest * widest).fill(padId);
  rows.forEach((row, place) => row.forEach((list, number) => list.forEach((value, index) => {
    values[(place * longest + number) * widest + index] = value;
  })));
  return int64(values, [rows.length, longest, widest]);
}
