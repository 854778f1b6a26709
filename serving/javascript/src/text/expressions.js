// Reads Python's regular expressions: classes, \d \w \s, groups, alternatives, repetitions, and the
// flags a, s, u and x. Not read are back references, lookahead, lookbehind, atomic groups, possessive
// repetitions, named characters, the flag i, and anchors, except ^ at the start and $ at the end,
// which have no effect here.

import { SPACES, lengthOf } from "./characters.js";

const LAST = 0x10ffff;
const SURROGATES = [0xd800, 0xdfff];
const ESCAPED = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11, b: 8 };
/** Runs of the characters of categories, in Unicode and in ASCII. */
const CATEGORIES = {
  d: [/\p{Nd}+/gu, /[0-9]+/gu],
  w: [/[\p{L}\p{N}_]+/gu, /[a-zA-Z0-9_]+/gu],
  s: [new RegExp(`[${SPACES}]+`, "gu"), /[\t-\r ]+/gu],
};
const FLAGS = "asux";
const [MOST_CHARACTERS, MOST_NESTED] = [10_000, 100]; // of an expression, and groups inside each other
const MOST_RANGES = 50_000; // of all classes together
const MOST_REPEATED = 2 ** 32 - 2; // as in Python

/** @typedef {[number, number]} Range of code points, the last one included. */
/**
 * @typedef {{kind: "ranges", ranges: Range[]} | {kind: "all", items: Item[]}
 *   | {kind: "any", branches: Item[]} | {kind: "repeat", least: number, most: number, item: Item}} Item
 */

/** The reason why an expression is not read. */
export class Unread extends Error {}

/** Return an expression as nested items. @returns {Item} */
export function parseExpression(source) {
  return new Parser(source).whole();
}

class Parser {
  #characters;
  #place = 0;
  #level = 0;
  #ranges = 0;
  /** @type {Map<string, Item>} */
  #classes = new Map();
  #flags = new Set();

  constructor(source) {
    this.#characters = [...source];
  }

  whole() {
    if (this.#characters.length > MOST_CHARACTERS) {
      throw new Unread(`has more than ${MOST_CHARACTERS.toLocaleString("en")} characters`);
    }
    this.#takeGlobalFlags();
    const branches = this.#branches(true);
    if (this.#next() !== undefined) throw new Unread("can not be read: unbalanced parenthesis");
    return branches;
  }

  #next(ahead = 0) {
    return this.#characters[this.#place + ahead];
  }

  #take() {
    const character = this.#next();
    if (character === undefined) throw new Unread("can not be read: it ends too early");
    this.#place += 1;
    return character;
  }

  #takes(text) {
    const found = [...text].every((character, ahead) => this.#next(ahead) === character);
    if (found) this.#place += [...text].length;
    return found;
  }

  #takeGlobalFlags() {
    const found = /^\(\?([a-zA-Z]+)\)/.exec(this.#characters.join(""));
    if (!found) return;
    this.#set(found[1]);
    this.#place = found[0].length;
  }

  #set(letters) {
    for (const letter of letters) {
      if (!FLAGS.includes(letter)) throw new Unread("has other flags than a, s, u and x");
      this.#flags.add(letter);
    }
  }

  /** @returns {Item} */
  #branches(isWhole = false) {
    const starts = isWhole && this.#takes("^");
    const branches = [this.#sequence(isWhole)];
    while (this.#takes("|")) branches.push(this.#sequence(false));
    if (starts && branches.length > 1) throw new Unread("holds at, which no finite automaton knows");
    return branches.length === 1 ? branches[0] : { kind: "any", branches };
  }

  /** @returns {Item} */
  #sequence(isWhole) {
    /** @type {Item[]} */
    const items = [];
    while (this.#next() !== undefined && this.#next() !== "|" && this.#next() !== ")") {
      if (this.#flags.has("x") && this.#skipsSpace()) continue;
      if (isWhole && this.#next() === "$" && this.#next(1) === undefined) {
        this.#take();
        break;
      }
      const item = this.#atom();
      if (item) items.push(this.#repeated(item));
    }
    return { kind: "all", items };
  }

  #skipsSpace() {
    if (/^[ \t-\r]$/.test(this.#next() ?? "")) return Boolean(this.#take());
    if (this.#next() !== "#") return false;
    while (this.#next() !== undefined && this.#take() !== "\n");
    return true;
  }

  /** @returns {Item | null} */
  #atom() {
    const character = this.#take();
    if (character === "(") return this.#group();
    if (character === "[") return this.#known(() => this.#class());
    if (character === "\\") return this.#known(() => this.#escape(false));
    if (character === ".") {
      return ranges(this.#flags.has("s") ? [[0, LAST]] : complement([[10, 10]]));
    }
    if ("^$".includes(character)) throw new Unread("holds at, which no finite automaton knows");
    if ("*+?".includes(character) || (character === "{" && this.#bounds(true))) {
      throw new Unread("can not be read: nothing to repeat");
    }
    return ranges(single(character));
  }

  /** Return the item of a class, which is counted and made once. @param {() => Range[]} read */
  #known(read) {
    const begin = this.#place;
    const found = read();
    const source = [...this.#flags, ...this.#characters.slice(begin - 1, this.#place)].join("");
    const known = this.#classes.get(source);
    if (known) return known;
    this.#ranges += found.length;
    if (this.#ranges > MOST_RANGES) throw new Unread("is too large: have fewer classes");
    const item = ranges(found);
    this.#classes.set(source, item);
    return item;
  }

  /** @returns {Item | null} */
  #group() {
    if (!this.#takes("?")) return this.#inGroup();
    if (this.#takes("#")) {
      while (this.#take() !== ")");
      return null;
    }
    if (this.#takes(":")) return this.#inGroup();
    if (this.#takes("P<")) {
      while (this.#take() !== ">");
      return this.#inGroup();
    }
    const before = new Set(this.#flags);
    let letters = "";
    while (/^[a-zA-Z-]$/.test(this.#next() ?? "")) letters += this.#take();
    if (!letters || !this.#takes(":")) {
      throw new Unread("holds a group that no finite automaton knows");
    }
    const [added, dropped = ""] = letters.split("-");
    this.#set(added);
    for (const letter of dropped) this.#flags.delete(letter);
    const found = this.#inGroup();
    this.#flags = before;
    return found;
  }

  #inGroup() {
    this.#level += 1;
    if (this.#level > MOST_NESTED) {
      throw new Unread(`has more than ${MOST_NESTED} groups inside each other`);
    }
    const found = this.#branches();
    this.#level -= 1;
    if (!this.#takes(")")) throw new Unread("can not be read: missing )");
    return found;
  }

  /** @returns {Item} */
  #repeated(item) {
    if (this.#flags.has("x")) while (this.#skipsSpace());
    const bounds = this.#bounds();
    if (!bounds) return item;
    if (this.#next() === "+") throw new Unread("holds possessive_repeat, which no finite automaton knows");
    this.#takes("?"); // a lazy repetition matches the same texts
    if (this.#bounds(true)) throw new Unread("can not be read: multiple repeat");
    const [least, most] = bounds;
    if (most < least) throw new Unread("can not be read: min repeat greater than max repeat");
    return { kind: "repeat", least, most, item };
  }

  /** Return the bounds of a repetition, or null; `peeks`: leave it there. */
  #bounds(peeks = false) {
    /** @type {[number, number] | undefined} */
    const signed = { "*": [0, Infinity], "+": [1, Infinity], "?": [0, 1] }[this.#next() ?? ""];
    if (!signed && this.#next() !== "{") return null;
    let end = this.#place;
    if (!signed) do end += 1; while (/^[\d,]$/.test(this.#characters[end] ?? ""));
    const found = /^\{(\d*)(,?)(\d*)\}$/.exec(this.#characters.slice(this.#place, end + 1).join(""));
    if (!signed && (!found || found[0] === "{}")) return null;
    if (!peeks) this.#place = end + 1;
    if (signed) return signed;
    const [, least, comma, most] = /** @type {RegExpExecArray} */ (found);
    const low = Number(least || 0);
    const high = comma ? Number(most || Infinity) : low;
    if (low > MOST_REPEATED || (most && high > MOST_REPEATED)) {
      throw new Unread("can not be read: the repetition number is too large");
    }
    return [low, high];
  }

  /** @returns {Range[]} */
  #class() {
    const negated = this.#takes("^");
    /** @type {Range[]} */
    const found = [];
    const categories = new Set(); // each of which counts once
    for (let isFirst = true; isFirst || this.#next() !== "]"; isFirst = false) {
      const first = this.#member();
      const isRange = this.#next() === "-" && this.#next(1) !== "]";
      if (!isRange) {
        if (!categories.has(first)) found.push(...first);
        if (!isSingle(first)) categories.add(first);
        continue;
      }
      this.#take();
      const last = this.#member();
      if (!isSingle(first) || !isSingle(last) || last[0][0] < first[0][0]) {
        throw new Unread("can not be read: bad character range");
      }
      found.push([first[0][0], last[0][0]]);
    }
    this.#take();
    return negated ? complement(found) : found;
  }

  #member() {
    const posix = /^\[:[a-z]+:\]/.exec(this.#characters.slice(this.#place, this.#place + 12).join(""));
    if (posix) {
      throw new Unread(
        `holds ${posix[0]}, a class of POSIX, which Python reads as its letters: write \\d, \\s, \\w `
          + "or a range such as a-z",
      );
    }
    const character = this.#take();
    return character === "\\" ? this.#escape(true) : single(character);
  }

  /** @returns {Range[]} */
  #escape(inClass) {
    const letter = this.#take();
    const category = CATEGORIES[letter.toLowerCase()];
    if (category) {
      const { inside, outside } = codePointsOf(category[this.#flags.has("a") ? 1 : 0]);
      return letter === letter.toLowerCase() ? inside : outside;
    }
    const digits = { x: 2, u: 4, U: 8 }[letter];
    if (digits) return this.#code(this.#digits(digits, /^[0-9a-fA-F]$/), 16);
    if (letter === "0" || (inClass && /^[0-7]$/.test(letter))) {
      let own = letter;
      while (own.length < 3 && /^[0-7]$/.test(this.#next() ?? "")) own += this.#take();
      return this.#code(own, 8);
    }
    if (/^[1-9]$/.test(letter)) throw new Unread("holds groupref, which no finite automaton knows");
    if (letter in ESCAPED && (letter !== "b" || inClass)) return [[ESCAPED[letter], ESCAPED[letter]]];
    if (/^[a-zA-Z]$/.test(letter)) {
      throw new Unread("bBAZ".includes(letter) && !inClass
        ? "holds at, which no finite automaton knows"
        : `can not be read: bad escape \\${letter}`);
    }
    return single(letter);
  }

  #digits(count, kind) {
    let found = "";
    while (found.length < count && kind.test(this.#next() ?? "")) found += this.#take();
    if (found.length < count) throw new Unread("can not be read: incomplete escape");
    return found;
  }

  /** @returns {Range[]} */
  #code(digits, base) {
    const code = parseInt(digits, base);
    if (code > LAST) throw new Unread("can not be read: bad escape");
    return [[code, code]];
  }
}

/** Return an item of one character, without the surrogates, which UTF-8 can not encode. */
function ranges(found) {
  return /** @type {Item} */ ({ kind: "ranges", ranges: complement([...complement(found), SURROGATES]) });
}

/** @returns {Range[]} */
const single = (character) => {
  const code = character.codePointAt(0) ?? 0;
  return [[code, code]];
};
const isSingle = (found) => found.length === 1 && found[0][0] === found[0][1];

/** Return all other code points, in order. @returns {Range[]} */
function complement(given) {
  /** @type {Range[]} */
  const found = [];
  let next = 0;
  for (const [first, last] of [...given].sort((one, other) => one[0] - other[0])) {
    if (first > next) found.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  if (next <= LAST) found.push([next, LAST]);
  return found;
}

const known = new Map();

/**
 * Return the code points that an expression of characters matches, and all others.
 *
 * @param {RegExp} expression global.
 * @returns {{inside: Range[], outside: Range[]}}
 */
function codePointsOf(expression) {
  let found = known.get(expression);
  if (!found) {
    /** @type {Range[]} */
    const inside = [];
    for (const [first, last] of complement([SURROGATES])) {
      const codes = Array.from({ length: last - first + 1 }, (_, place) => first + place);
      const text = codes.map((code) => String.fromCodePoint(code)).join("");
      for (const [run] of text.matchAll(expression)) {
        const begin = Number(run.codePointAt(0));
        inside.push([begin, begin + lengthOf(run) - 1]);
      }
    }
    found = { inside, outside: complement(inside) };
    known.set(expression, found);
  }
  return found;
}
