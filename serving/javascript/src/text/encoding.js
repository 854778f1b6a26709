// The encoding of a text, and how texts are cut.

import { Refusal } from "../refusal.js";
import { stripped } from "./characters.js";
import { mayEndWord } from "./words.js";

/**
 * The model's input for a text, or a pair of texts; all lists have one length.
 *
 * Offsets count code points, as in Python.
 */
export class Encoding {
  /**
   * @param {object} fields
   * @param {number[]} fields.tokenIds with those of special tokens.
   * @param {string[]} fields.tokens
   * @param {([number, number] | null)[]} fields.offsets of each token in its own text; null for
   *   special tokens.
   * @param {number[]} [fields.segmentIds] the text of each token, by the tokenizer's template.
   * @param {(number | null)[]} [fields.wordIds] the index of each token's word in its own text.
   * @param {string[]} [fields.texts] the given texts.
   */
  constructor({ tokenIds, tokens, offsets, segmentIds, wordIds, texts = [] }) {
    this.tokenIds = tokenIds;
    this.tokens = tokens;
    this.offsets = offsets;
    this.segmentIds = segmentIds ?? tokenIds.map(() => 0);
    this.wordIds = wordIds ?? tokenIds.map(() => null);
    this.texts = texts;
  }

  get length() {
    return this.tokenIds.length;
  }

  /**
   * Return the words as written in the text, with their numbers of tokens. A special token, or a
   * token without a word, is a word of its own. So is a token of a script without spaces, as
   * Chinese, Japanese and Thai, unless it cuts a character.
   *
   * @returns {{label: string, count: number}[]}
   */
  words() {
    /** @type {{text: number, word: number | null, places: number[]}[]} */
    const runs = [];
    const texts = this.texts.map((text) => [...text]);
    let text = -1;
    this.offsets.forEach((offset, place) => {
      if (offset && !this.offsets[place - 1]) text += 1; // special tokens stand around each text
      const word = offset ? this.wordIds[place] : null;
      const last = runs.at(-1);
      const same = word !== null && last && last.text === text && last.word === word;
      if (same && !this.#beginsWord(texts[text], last.places, place)) last.places.push(place);
      else runs.push({ text, word, places: [place] });
    });
    return runs.map((run) => ({ label: this.#written(texts, run), count: run.places.length }));
  }

  /** Whether a token begins a word of a script without spaces, behind tokens of one word. */
  #beginsWord(characters, places, place) {
    const offsets = /** @type {[number, number][]} */ (this.offsets); // those of words
    const [[start], [, end]] = [offsets[places[0]], offsets[places[places.length - 1]]];
    const [begin] = offsets[place];
    if (!characters || begin < end || !stripped(characters.slice(start, begin).join(""))) return false;
    return begin < characters.length && mayEndWord(characters, begin);
  }

  #written(texts, { text, places }) {
    const first = this.offsets[places[0]];
    const last = this.offsets[places[places.length - 1]];
    if (!first || !last || text >= texts.length) {
      return places.map((place) => this.tokens[place]).join("");
    }
    const written = texts[text].slice(first[0], last[1]).join("");
    return stripped(written) || this.tokens[places[0]];
  }
}

/**
 * Return how many tokens to keep of each text.
 *
 * The longer text loses its last token until both fit; of two equal ones the second.
 *
 * @param {string} who the caller, for errors.
 * @param {number[]} lengths the number of tokens of each text.
 * @param {number} numSpecial the number of special tokens around them.
 * @param {number} maxLength the most tokens in all.
 * @returns {number[]}
 */
export function fit(who, lengths, numSpecial, maxLength) {
  const total = lengths.reduce((sum, length) => sum + length, numSpecial);
  if (total <= maxLength) return lengths;
  if (maxLength < numSpecial) {
    throw new Refusal(
      `${who}: max_length must leave room for ${numSpecial} special tokens; received ${maxLength}`,
    );
  }
  const room = maxLength - numSpecial;
  if (lengths.length === 1) return [room];
  const [first, second] = lengths;
  if (Math.min(first, second) <= Math.floor(room / 2)) {
    return second > first ? [first, room - first] : [room - second, second];
  }
  return [room - Math.floor(room / 2), Math.floor(room / 2)];
}
