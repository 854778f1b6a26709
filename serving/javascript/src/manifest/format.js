// The fields of a manifest, with refusals of contradictions.

import { BundleError } from "../refusal.js";
import { quoted } from "../checks.js";
import {
  anything, axis, byDefault, content, flag, integer, list, number, object, optional, record,
  required, string,
} from "./fields.js";

export const MANIFEST = "manifest.json";
export const UPGRADE = "Upgrade seqkeras-serving.";
export const COPY_AGAIN = "Copy or export the bundle again.";
export const MOST_PENALTY = 10; // of GNMT's length penalty, positive or negative
const SCHEMA_VERSION = 3;
const MOST_BYTES = 2 ** 24; // of a manifest
const MOST_NESTED = 100; // levels
const LARGEST_ID = 2 ** 31 - 1;
const LONGEST = 2 ** 24; // tokens

/** @typedef {{name: string, dtype: string, shape: (number | string)[]}} TensorSpec */
/**
 * @typedef {object} GraphFile
 * @property {string} file
 * @property {TensorSpec[]} inputs
 * @property {TensorSpec[]} outputs
 * @property {string[]} weights the files of weights that it reads.
 * @property {number} delay the number of frames by which a stream's answers come late.
 * @property {number} warm_up the number of frames before a stream's first answer.
 */
/**
 * @typedef {object} Decoding
 * @property {number} num_beams
 * @property {number} length_penalty
 * @property {number} start_id
 * @property {number} end_id
 * @property {string | null} regex
 */
/**
 * A bundle's content: see `serving.manifest.Manifest` of the Python package.
 *
 * @typedef {object} Manifest
 * @property {number} schema_version
 * @property {string} name
 * @property {string} task
 * @property {string} pipeline
 * @property {string} created
 * @property {Record<string, string>} versions
 * @property {Record<string, string>} tokenizers
 * @property {{name: string, separator: string, values: string[]} | null} text_prefix
 * @property {{source_length: number, target_length: number}} limits
 * @property {Decoding} decoding
 * @property {Record<string, GraphFile>} graphs
 * @property {{name: string, per: string}[]} state
 * @property {Record<string, any>} saved_models
 * @property {any[]} examples
 * @property {Record<string, any>} scores
 * @property {Record<string, any>} parity
 * @property {Record<string, {bytes: number, sha256: string}>} files
 * @property {Record<string, any>} settings
 * @property {Record<string, {graphs: Record<string, GraphFile>, figures: object}>} precisions
 */

const tensor = object({
  name: required(string),
  dtype: required(string),
  shape: required(list(axis)),
});
const graph = object({
  file: required(string),
  inputs: required(list(tensor)),
  outputs: required(list(tensor)),
  weights: byDefault(list(string), []),
  delay: byDefault(integer, 0),
  warm_up: byDefault(integer, 0),
});
const signature = object({ inputs: required(list(tensor)), outputs: required(list(tensor)) });
const decoding = object({
  num_beams: byDefault(integer, 1),
  length_penalty: byDefault(number, 0),
  start_id: byDefault(integer, 2),
  end_id: byDefault(integer, 3),
  regex: byDefault(optional(string), null),
});
const manifest = object({
  schema_version: required(integer),
  name: required(string),
  task: required(string),
  pipeline: required(string),
  created: required(string),
  versions: required(record(string)),
  tokenizers: required(record(string)),
  text_prefix: required(
    optional(
      object({ name: required(string), separator: required(string), values: required(list(string)) }),
    ),
  ),
  limits: required(
    object({ source_length: required(integer), target_length: byDefault(integer, 1) }),
  ),
  decoding: required(decoding),
  graphs: required(record(graph)),
  state: required(list(object({ name: required(string), per: required(string) }))),
  saved_models: required(record(record(signature))),
  examples: required(list(anything)),
  scores: required(content),
  parity: required(content),
  files: required(record(object({ bytes: required(integer), sha256: required(string) }))),
  settings: byDefault(content, {}),
  precisions: byDefault(
    record(object({ graphs: required(record(graph)), figures: required(content) })),
    {},
  ),
});

/**
 * Return the manifest of JSON.
 *
 * @param {Uint8Array} bytes
 * @param {string} [where] the bundle, for errors.
 * @returns {Manifest}
 * @throws {BundleError} if it is not JSON, has a newer schema, or, with every reason, if fields are
 *   missing, unknown or wrong, or contradict each other.
 */
export function parseManifest(bytes, where) {
  const subject = MANIFEST;
  if (bytes.length > MOST_BYTES) {
    const most = MOST_BYTES.toLocaleString("en-US");
    throw new BundleError(`must have at most ${most} bytes; it has more`, {
      where, subject, advice: COPY_AGAIN,
    });
  }
  let found;
  try {
    found = parseJSON(bytes);
  } catch (cause) {
    throw new BundleError(
      `is not valid JSON (${/** @type {Error} */ (cause).message}): it is truncated or altered`,
      { where, subject, advice: COPY_AGAIN, cause },
    );
  }
  const version = found?.schema_version;
  if (Number.isInteger(version) && version !== SCHEMA_VERSION) {
    throw new BundleError(
      `has schema ${version}; this seqkeras-serving reads schema ${SCHEMA_VERSION}`,
      { where, subject, ...(version > SCHEMA_VERSION ? { advice: UPGRADE } : {}) },
    );
  }
  /** @type {string[]} */
  const problems = [];
  const parsed = manifest(found, "", problems);
  if (!problems.length) problems.push(...wrongValues(parsed), ...wrongPaths(parsed));
  if (problems.length) throw new BundleError(problems, { where, subject, advice: "" });
  return parsed;
}

/** Return the content of JSON in UTF-8, of limited depth. */
export function parseJSON(bytes) {
  const found = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  let level = [found];
  for (let depth = 0; depth <= MOST_NESTED; depth += 1) {
    level = level.flatMap((value) =>
      Object.values(value ?? {}).filter((part) => typeof part === "object" && part !== null));
    if (!level.length) return found;
  }
  throw new Error(`it is nested over ${MOST_NESTED} levels deep`);
}

/**
 * Return the settings of a pipeline.
 *
 * @param {Manifest} parsed
 * @param {Record<string, import("./fields.js").Field>} declared the fields.
 * @returns {{settings: Record<string, any>, problems: string[]}}
 */
export function parseSettings(parsed, declared) {
  /** @type {string[]} */
  const problems = [];
  return { settings: object(declared)(parsed.settings, "settings", problems), problems };
}

/** Return the names of the state entries that follow the beams, or stay with their source. */
export function stateOf(parsed, per) {
  return parsed.state.filter((entry) => entry.per === per).map((entry) => entry.name);
}

function* wrongValues(parsed) {
  const { limits, decoding: defaults } = parsed;
  for (const [name, value, least, most] of [
    ["limits.source_length", limits.source_length, 1, LONGEST],
    ["limits.target_length", limits.target_length, 1, LONGEST],
    ["decoding.num_beams", defaults.num_beams, 1, LARGEST_ID],
    ["decoding.start_id", defaults.start_id, 0, LARGEST_ID],
    ["decoding.end_id", defaults.end_id, 0, LARGEST_ID],
  ]) {
    if (value < least || value > most) {
      const bound = value < least ? `at least ${least}` : `at most ${most}`;
      yield `${name} must be ${bound}; received ${value}`;
    }
  }
  if (!(Math.abs(defaults.length_penalty) <= MOST_PENALTY)) {
    yield `decoding.length_penalty must be from -${MOST_PENALTY} to ${MOST_PENALTY}; received `
      + `${defaults.length_penalty}`;
  }
  for (const { name, per } of parsed.state) {
    if (!["beam", "source", "stream"].includes(per)) {
      yield `state ${quoted(name)} must be per 'beam', 'source' or 'stream'; received ${quoted(per)}`;
    }
  }
  const names = parsed.state.map((entry) => entry.name);
  if (new Set(names).size < names.length) {
    yield `state names must be distinct; received ${names.join(", ")}`;
  }
  const prefix = parsed.text_prefix;
  if (prefix && !(prefix.separator && prefix.values.length)) {
    yield "text_prefix must have a separator and values";
  }
  for (const [path, entry] of Object.entries(parsed.files)) {
    if (entry.bytes < 0 || !/^[0-9a-f]{64}$/.test(entry.sha256)) {
      yield `files ${quoted(path)} must have its size and 64 hexadecimal digits of sha256`;
    }
  }
}

function* wrongPaths(parsed) {
  const graphs = [parsed, ...Object.values(parsed.precisions)].flatMap(({ graphs: own }) =>
    Object.values(own));
  const used = new Set([
    ...Object.values(parsed.tokenizers),
    ...graphs.flatMap((own) => [own.file, ...own.weights]),
  ]);
  for (const path of used) {
    if (!Object.hasOwn(parsed.files, path)) yield `files must list ${quoted(path)}, which is used`;
  }
  const all = [...used, ...Object.keys(parsed.files), ...Object.keys(parsed.saved_models)];
  for (const path of new Set(all)) {
    const parts = path.split("/");
    if (parts.some((part) => ["", ".", ".."].includes(part)) || /[\\:*\0]/.test(path)) {
      yield `path ${quoted(path)} must lie inside the bundle`;
    }
  }
}
