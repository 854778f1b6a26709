// Tables of characters and of words: an id is an index.

import { Refusal } from "../refusal.js";
import { quoted } from "../checks.js";
import { requireUTF8 } from "./characters.js";
import { Encoding, fit } from "./encoding.js";
import { wordPlaces } from "./words.js";

const SPECIAL_TOKENS = ["<pad>", "<unk>", "<bos>", "<eos>"];
export const [PAD, UNK, BOS, EOS] = [0, 1, 2, 3];
const STANDARDIZE = ["lower_and_strip_punctuation", "lower", "strip_punctuation", null];
const PUNCTUATION = "!\"#$%&()*+,\\-.\\/:;<=>?@[\\\\\\]^_`{|}~'";
const STRIPPED = new RegExp(`[${PUNCTUATION}]`, "g");
const AROUND = new RegExp(`^[${PUNCTUATION}]+|[${PUNCTUATION}]+$`, "g");
const CHUNK = /[^\t\n\v\f\r ]+/gu;

/** Base class of tables: a list of entries, special tokens first. */
class Table {
  #ids;

  /**
   * @param {string[]} entries
   * @param {number} numSpecial how many special tokens stand first.
   * @param {string} kind the name of entries in errors and files.
   * @param {(entry: string) => boolean} isEntry whether a string may be an entry.
   */
  constructor(entries, numSpecial, kind, isEntry) {
    const name = new.target.name;
    const special = SPECIAL_TOKENS.slice(0, numSpecial);
    if (!Array.isArray(entries) || special.some((token, place) => entries[place] !== token)) {
      throw new Refusal(`${name}: the first ${kind} must be ${special.join(", ")}`);
    }
    this.entries = entries;
    this.numSpecial = numSpecial;
    const own = entries.slice(numSpecial);
    this.#ids = new Map(own.map((entry, place) => [entry, numSpecial + place]));
    const wrong = own.find(
      (entry) => typeof entry !== "string" || !isEntry(entry) || /\p{Surrogate}/u.test(entry),
    );
    if (wrong !== undefined) {
      throw new Refusal(`${name}: ${kind} must be strings that UTF-8 can hold, and not be empty; `
        + `received ${typeof wrong === "string" ? quoted(wrong) : wrong}`);
    }
    if (this.#ids.size < own.length) {
      const twice = own.find((entry, place) => this.#ids.get(entry) !== numSpecial + place);
      throw new Refusal(`${name}: ${quoted(twice ?? "")} comes twice`);
    }
  }

  get length() {
    return this.entries.length;
  }

  idOf(token) {
    const special = SPECIAL_TOKENS.slice(0, this.numSpecial).indexOf(token);
    const found = special < 0 ? this.#ids.get(token) : special;
    if (found === undefined) {
      throw new Refusal(
        `${this.constructor.name}: the table must hold ${quoted(token)}; it does not`,
      );
    }
    return found;
  }

  tokenOf(index) {
    if (!(index >= 0 && index < this.length)) {
      throw new Refusal(`${this.constructor.name}: ids must be under ${this.length}; received ${index}`);
    }
    return this.entries[index];
  }

  /** Return the id of an entry of texts, <unk> if it is not in the table. */
  lookup(entry) {
    return this.#ids.get(entry) ?? UNK;
  }
}

/** The characters of a model, in NFC. A lone surrogate is <unk>. */
export class CharacterTable extends Table {
  constructor(entries) {
    super(entries, 4, "characters", (entry) => [...entry].length === 1);
  }

  static of(content) {
    return new CharacterTable(content.characters);
  }

  encode(text) {
    return Array.from(text.normalize("NFC"), (character) => this.lookup(character));
  }

  /** Return the `Encoding` of a text, at most `most` characters, without offsets. */
  analyze(text, most = Infinity) {
    const tokens = [...text.normalize("NFC")].slice(0, most);
    const tokenIds = tokens.map((character) => this.lookup(character));
    return new Encoding({ tokenIds, tokens, offsets: tokens.map(() => null) });
  }

  /** Return the text of ids up to the first <eos>; special tokens have no text. */
  decode(tokenIds) {
    const text = [];
    for (const index of tokenIds) {
      const character = this.tokenOf(index);
      if (index === EOS) break;
      if (index >= this.numSpecial) text.push(character);
    }
    return text.join("");
  }
}

/**
 * The words of a model, looked up in NFC; any word that is not in the table is <unk>, and so is one
 * that is written like a special token.
 */
export class WordTable extends Table {
  constructor(entries, lowercase = false, special = SPECIAL_TOKENS.slice(0, 2), kind = "words") {
    const expected = SPECIAL_TOKENS.slice(0, special.length === 4 ? 4 : 2);
    if (String(special) !== String(expected)) {
      throw new Refusal(`${new.target.name}: special_tokens must be ${SPECIAL_TOKENS.join(", ")}, or `
        + `the first two; received ${special}`);
    }
    super(entries, special.length, kind, (entry) => entry !== "");
    this.lowercase = Boolean(lowercase);
  }

  static of(content) {
    return new WordTable(content.words, content.lowercase, content.special_tokens);
  }

  lookup(entry) {
    const word = entry.normalize("NFC");
    return super.lookup(this.lowercase ? word.toLowerCase() : word);
  }

  encode(text) {
    const characters = [...text];
    return this.places(text).map(([start, end]) =>
      this.lookup(characters.slice(start, end).join("")));
  }

  /** Return [start, end] of each word of a text, in code points. */
  places(text) {
    return wordPlaces(text);
  }

  /**
   * Return the `Encoding` of a text, a token for each word.
   *
   * @param {string} text
   * @param {object} [options]
   * @param {[number, number][]} [options.places] of its words; without them it is split here.
   * @param {number} [options.maxLength] the most words; a longer text is cut.
   */
  analyze(text, { places, maxLength = Infinity } = {}) {
    const found = places ?? this.places(text);
    const [kept] = fit(this.constructor.name, [found.length], 0, maxLength);
    const offsets = found.slice(0, kept);
    const characters = [...text];
    const tokenIds = offsets.map(([start, end]) =>
      this.lookup(characters.slice(start, end).join("")));
    const tokens = tokenIds.map((index) => this.tokenOf(index));
    return new Encoding({
      tokenIds, tokens, offsets, wordIds: offsets.map((_, place) => place), texts: [text],
    });
  }

  /** Return the words of ids, joined by spaces, without padding. */
  decode(tokenIds) {
    return tokenIds.filter((index) => index !== PAD).map((index) => this.tokenOf(index)).join(" ");
  }
}

/**
 * The table of words of a Keras `TextVectorization`, split like TensorFlow's operators do: lower
 * case applies to ASCII letters only, and ASCII punctuation is stripped.
 */
export class VectorizedWords extends WordTable {
  constructor(entries, standardize = STANDARDIZE[0], special = undefined) {
    if (!STANDARDIZE.includes(standardize)) {
      throw new Refusal(`VectorizedWords: standardize must be one of ${STANDARDIZE.join(", ")}`);
    }
    super(entries, standardize?.startsWith("lower"), special, "vectorized_words");
    this.strips = Boolean(standardize?.includes("strip_punctuation"));
  }

  static of(content) {
    return new VectorizedWords(
      content.vectorized_words, content.standardize, content.special_tokens,
    );
  }

  lookup(entry) {
    const word = this.lowercase
      ? entry.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
      : entry;
    return Table.prototype.lookup.call(this, this.strips ? word.replace(STRIPPED, "") : word);
  }

  places(text) {
    requireUTF8("VectorizedWords", text);
    const found = [];
    let seen = 0;
    let place = 0;
    for (const chunk of text.matchAll(CHUNK)) {
      const word = this.strips ? chunk[0].replace(AROUND, "") : chunk[0];
      if (!word) continue;
      const index = chunk.index + chunk[0].indexOf(word);
      place += [...text.slice(seen, index)].length;
      const end = place + [...word].length;
      found.push(/** @type {[number, number]} */ ([place, end]));
      seen = index + word.length;
      place = end;
    }
    return found;
  }
}
