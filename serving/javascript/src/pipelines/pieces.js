// The text of generated tokens, at the end or while they are generated.

import { NoFiniteNumber } from "../refusal.js";

const INCOMPLETE = "\ufffd"; // the replacement of bytes that are no complete character
const WINDOW = 32; // tokens; a new token does not change the text further back

/** Decodes ids to the text that they add to a prompt. */
export class Detokenizer {
  #tokenizer;
  #promptIds;
  #prompt;

  /**
   * @param {any} tokenizer
   * @param {number[]} [promptIds] of the prompt. Its text decides whether what follows begins with a
   *   space.
   */
  constructor(tokenizer, promptIds = []) {
    this.#tokenizer = tokenizer;
    this.#promptIds = promptIds;
    this.#prompt = this.decode(promptIds);
    this.joinsWords = Boolean(tokenizer.isWordPiece);
  }

  /** Return the text of the ids after the prompt. */
  text(tokenIds) {
    const whole = [...this.decode([...this.#promptIds, ...tokenIds])];
    const prompt = [...this.#prompt];
    let common = 0;
    while (common < whole.length && common < prompt.length && whole[common] === prompt[common]) {
      common += 1;
    }
    return whole.slice(common).join("");
  }

  /** Return the text of the ids by themselves; the decoder's vocabulary may be padded. */
  decode(tokenIds) {
    return this.#tokenizer.decode(tokenIds.filter((index) => index < this.#tokenizer.length));
  }
}

/**
 * The text of a growing list of ids. Each step decodes the last ids only: text that is `WINDOW`
 * tokens back is settled and not decoded again.
 */
export class Growing {
  #detokenizer;
  #numSettled = 0;
  #settled = "";
  #seam = ""; // the text of the last settled ids, which are decoded again

  /** @param {Detokenizer} detokenizer */
  constructor(detokenizer) {
    this.#detokenizer = detokenizer;
  }

  /** Return the text of the ids, which begin with those of the previous call. */
  read(tokenIds) {
    const text = this.#joined(tokenIds);
    if (tokenIds.length >= this.#numSettled + 2 * WINDOW) this.#settle(tokenIds, text);
    return text.replace(new RegExp(`${INCOMPLETE}+$`), "");
  }

  /** Return the text that further ids can not change: for WordPiece, whole words. */
  readFinal(tokenIds) {
    const text = this.read(tokenIds);
    if (!this.#detokenizer.joinsWords) return text;
    const bare = text.endsWith(" '") ? text.slice(0, -2) : text;
    return text.slice(0, Math.max(bare.lastIndexOf(" "), 0));
  }

  #joined(tokenIds) {
    if (!this.#numSettled) return this.#detokenizer.text(tokenIds);
    const last = this.#detokenizer.decode(tokenIds.slice(this.#numSettled - WINDOW));
    return this.#settled + last.slice(this.#seam.length);
  }

  /** Settle the text of all ids except the last ones, unless it ends within a character. */
  #settle(tokenIds, text) {
    const before = [this.#numSettled, this.#settled, this.#seam];
    const own = tokenIds.slice(0, -WINDOW);
    const settled = this.#joined(own);
    this.#seam = this.#detokenizer.decode(own.slice(-WINDOW));
    this.#numSettled = own.length;
    this.#settled = settled;
    if (settled.endsWith(INCOMPLETE) || this.#joined(tokenIds) !== text) {
      [this.#numSettled, this.#settled, this.#seam] =
        /** @type {[number, string, string]} */ (before);
    }
  }
}

/** Return a text up to the first stop string, and whether there is one. */
export function cut(text, stop) {
  const places = stop.map((string) => text.indexOf(string)).filter((place) => place >= 0);
  return places.length
    ? { text: text.slice(0, Math.min(...places)), stopped: true }
    : { text, stopped: false };
}

/**
 * Yield the text of a search with one source, in pieces, as soon as they are final.
 *
 * @param {AsyncIterable<import("../decoding/greedy.js").Greedy>} found
 * @param {Detokenizer} detokenizer
 * @param {string} name of the input, for errors.
 * @param {string[]} [stop] strings that end the text, and are not part of it.
 */
export async function* pieces(found, detokenizer, name, stop = []) {
  let given = "";
  let tokenIds = [];
  const growing = new Growing(detokenizer);
  for await (const search of found) {
    if (!Number.isFinite(search.targets[0].total)) throw new NoFiniteNumber(name);
    tokenIds = search.generated(0);
    let { text, stopped } = cut(growing.readFinal(tokenIds), stop);
    if (!stopped) text = text.slice(0, text.length - begun(text, stop));
    if (text.length > given.length) {
      yield text.slice(given.length);
      given = text;
    }
  }
  const { text } = cut(detokenizer.text(tokenIds), stop);
  if (text.length > given.length) yield text.slice(given.length);
}

/** Return how many characters at the end of a text may be the start of a stop string. */
function begun(text, stop) {
  const lengths = stop.flatMap((string) =>
    Array.from({ length: Math.min(string.length, text.length) }, (_, place) => place + 1)
      .filter((length) => length < string.length && text.endsWith(string.slice(0, length))));
  return Math.max(0, ...lengths);
}
