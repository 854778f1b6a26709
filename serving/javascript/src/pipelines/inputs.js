// Checks and encoding of pipelines' inputs: one text, or several parts.

import { BundleError, NoFiniteNumber, Refusal } from "../refusal.js";
import { isRecord, quoted, requireCount, requireFlag, shown } from "../checks.js";
import { MANIFEST } from "../manifest/format.js";
import { lengthOf, loneSurrogate, stripped } from "../text/characters.js";
import { readTokenizer } from "../text/files.js";
import { Subwords } from "../text/subwords.js";
import { WordTable } from "../text/tables.js";
import { TOKENS } from "./model.js";

export const MOST_CHARACTERS = 2 ** 22; // of a text, or 1,000 for each token of its limit if more

/** @typedef {import("../text/encoding.js").Encoding} Encoding */

/** Return the inputs as a list, and their names for errors. */
export function namedInputs(inputs, name, plural = `${name.replace(/s$/, "")}s`) {
  return Array.isArray(inputs)
    ? inputs.map((value, place) => ({ value, name: `${plural}[${place}]` }))
    : [{ value: inputs, name }];
}

/**
 * Return the model's input for each input, as a list; options of all pipelines are checked here.
 *
 * @param {any} inputs a list of inputs; anything else is one.
 * @param {string} name of an input, such as "Tag: text".
 * @param {(value: any, name: string, truncate: boolean) => any} encode
 * @param {{truncate: boolean, token_budget: number}} options
 * @param {string} [plural]
 */
export function encoded(inputs, name, encode, options, plural) {
  const [who] = name.split(":");
  requireFlag(`${who}: truncate`, options.truncate);
  requireCount(`${who}: token_budget`, options.token_budget);
  return namedInputs(inputs, name, plural)
    .map(({ value, name: own }) => encode(value, own, options.truncate));
}

/**
 * Return the list of answers to a list of inputs; for one input, its answer.
 *
 * @param {any} inputs
 * @param {any[]} answers null for one that the model does not give.
 * @param {string} name as of `namedInputs`.
 * @param {string} [plural]
 * @throws {NoFiniteNumber} if an answer has a number that is not finite.
 */
export function oneOrAll(inputs, answers, name, plural) {
  const wrong = answers.findIndex((answer) => answer === null || !isFinite(answer));
  if (wrong >= 0) throw new NoFiniteNumber(namedInputs(inputs, name, plural)[wrong].name);
  return Array.isArray(inputs) ? answers : answers[0];
}

/** Whether all numbers of an answer are finite. */
function isFinite(value) {
  if (typeof value === "number") return Number.isFinite(value);
  if (ArrayBuffer.isView(value)) return /** @type {any} */ (value).every(Number.isFinite);
  return typeof value !== "object" || value === null || Object.values(value).every(isFinite);
}

/** Return the parts of an input, an object of `fields`. */
export function partsOf(value, fields, name) {
  if (isRecord(value) && Object.keys(value).sort().join() === [...fields].sort().join()) {
    return fields.map((field) => value[field]);
  }
  throw new Refusal(`${name} must be an object of ${fields.join(" and ")}; received ${shown(value)}`);
}

/** Return the text of an input: a string, or an object of "text". */
export const textOf = (value, name) => (isRecord(value) ? partsOf(value, ["text"], name)[0] : value);

/** Refuse what is no string with visible characters; see `requireText`. */
export function requireWords(text, name, surrogates = false) {
  requireText(text, name, surrogates);
  if (!stripped(text)) {
    throw new Refusal(`${name} is ${text ? "blank" : "empty"}; write something to answer`);
  }
}

/** Refuse what is no string; lone surrogates too, unless a table of characters reads them. */
export function requireText(text, name, surrogates = false) {
  if (typeof text !== "string") {
    throw new Refusal(`${name} must be a string; received ${shown(text)}`);
  }
  const found = surrogates ? null : loneSurrogate(text);
  if (found) {
    throw new Refusal(
      `${name} must hold no lone surrogate; received ${quoted(found.character)} at ${found.place}`,
    );
  }
}

/** Refuse a text far over a limit, before it is split into tokens. */
export function requireLength(text, limit, name) {
  const most = Math.max(MOST_CHARACTERS, 1000 * limit);
  if (text.length > most && lengthOf(text) > most) {
    throw tooLong(name, lengthOf(text), `${limit} tokens`, "characters");
  }
}

/** Refuse a text that is not blank and yet has no token. */
export function requireToken(found, name) {
  if (!found) throw new Refusal(`${name} has no token; write something to answer`);
}

/** Return the error for an input over the limit. */
export function tooLong(name, length, limit, unit = "tokens") {
  return new Refusal(`${name} has ${length} ${unit}; the limit is ${limit}`, {
    advice: "Nothing was truncated: shorten it, or ask for truncate=true.",
  });
}

/**
 * Return the tokenizer of a role.
 *
 * @param {import("../manifest/files.js").Bundle} bundle
 * @param {string} role
 * @param {Function} [kind] the class that it must have.
 * @throws {BundleError} if it is missing, can not be read, or is of another kind.
 */
export async function openTokenizer(bundle, role, kind) {
  const { where } = bundle;
  const subject = bundle.manifest.tokenizers[role];
  if (subject === undefined) {
    throw new BundleError(`no ${role} tokenizer is named`, { where, subject: MANIFEST });
  }
  const [bytes] = await bundle.files([subject]);
  let tokenizer;
  try {
    tokenizer = await readTokenizer(bytes, bundle.tokenizers);
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    throw new BundleError(cause.reasons, { where, subject, advice: "", cause });
  }
  if (kind && !(tokenizer instanceof kind)) {
    const reason = `must be a ${kind.name}; it is a ${tokenizer.constructor.name}`;
    throw new BundleError(reason, { where, subject });
  }
  return /** @type {any} */ (tokenizer);
}

/** Texts, or pairs of texts, to token ids. */
export class TextReader {
  packing = TOKENS;

  constructor(tokenizer, limit) {
    this.tokenizer = tokenizer;
    this.limit = limit;
    this.readsWords = tokenizer instanceof WordTable;
    this.takesPairs = tokenizer instanceof Subwords;
  }

  /** @param {import("../manifest/files.js").Bundle} bundle */
  static async open(bundle) {
    const tokenizer = await openTokenizer(bundle, "text");
    if (!(tokenizer instanceof Subwords) && !(tokenizer instanceof WordTable)) {
      throw new BundleError(
        "the text tokenizer must be one of subwords or a table of words; it is a "
          + tokenizer.constructor.name,
        { where: bundle.where },
      );
    }
    return new TextReader(tokenizer, bundle.manifest.limits.source_length);
  }

  /**
   * Return the `Encoding` of a text.
   *
   * @param {any} text
   * @param {string} name of it, for errors.
   * @param {boolean} truncate cut what is over the limit.
   * @param {[number, number][]} [places] of words, for a table of words.
   */
  read(text, name, truncate, places) {
    requireWords(text, name);
    return this.#fitted([name], truncate, [text], places);
  }

  /** Return the `Encoding` of a pair of texts. */
  readPair(texts, names, truncate) {
    texts.forEach((text, place) => requireWords(text, names[place]));
    if (!this.takesPairs) {
      throw new Refusal(`${names[1]} is one too many: the bundle's tokenizer takes no pairs`);
    }
    return this.#fitted(names, truncate, texts);
  }

  /** Return the `Encoding`s of the windows of a text, which may have any length. */
  readWindows(text, name, stride) {
    requireWords(text, name);
    const encodings = this.tokenizer.windows(null, text, this.limit, stride);
    requireToken(encodings[0].offsets.some(Boolean), name);
    return encodings;
  }

  #fitted(names, truncate, texts, places) {
    if (!truncate) texts.forEach((text, place) => requireLength(text, this.limit, names[place]));
    const analyze = (maxLength) => (this.readsWords
      ? this.tokenizer.analyze(texts[0], { places, maxLength })
      : this.tokenizer.analyze(texts, { maxLength }));
    /** @type {Encoding} */
    const encoding = analyze(Infinity);
    if (runs(encoding.offsets) < texts.length) {
      texts.forEach((text, place) => requireToken(this.tokenizer.encode(text).length, names[place]));
    }
    if (encoding.length <= this.limit) return encoding;
    if (truncate) return analyze(this.limit);
    throw tooLong(names[0], encoding.length, this.limit, this.readsWords ? "words" : "tokens");
  }
}

/** Return the number of runs of text tokens between special tokens. */
const runs = (offsets) => offsets.filter((own, place) => own && !offsets[place - 1]).length;
