// Bracketed trees, `(3 (2 The) (4 (2 best) (2 one)))`, and trees over the words of plain texts, as the
// arrays that a recursive network reads.

import { Refusal } from "../refusal.js";
import { quoted, shown } from "../checks.js";
import { pad, padNested } from "../arrays.js";
import { lengthOf } from "../text/characters.js";
import { PAD, WordTable } from "../text/tables.js";
import {
  MOST_CHARACTERS, openTokenizer, requireLength, requireToken, requireWords, tooLong,
} from "./inputs.js";
import { ROLE } from "./settings.js";

const TOKEN = /[()]|[^() \t\r\n]+/g; // a word may hold a no-break space: "8 1\/2"
const ESCAPES = { "-LRB-": "(", "-RRB-": ")", "\\/": "/", "\\*": "*" };
const ESCAPED = /-LRB-|-RRB-|\\\/|\\\*/g;
const NO_NODE = -1;
export const SHAPES = ["balanced", "left", "right"]; // of trees over plain words

/** @typedef {{children: Tree[], word: string | null}} Tree */

/** Parse a bracketed text as a tree; labels are read and ignored. @returns {Tree} */
export function parseTree(text) {
  const open = [];
  /** @type {Tree | null} */
  let finished = null;
  for (const [token] of text.matchAll(TOKEN)) {
    const short = quoted(token.slice(0, 40));
    if (finished) throw new Error(`expected one tree; received more after it: ${short}`);
    if (token === "(") open.push([]);
    else if (!open.length) throw new Error(`expected a tree in brackets; received ${short}`);
    else if (token !== ")") open[open.length - 1].push(token);
    else {
      const node = nodeOf(open.pop() ?? []);
      if (open.length) open[open.length - 1].push(node);
      else finished = node;
    }
  }
  if (open.length) throw new Error(`expected ${open.length} more closing brackets`);
  if (!finished) throw new Error("expected a tree in brackets; received none");
  return finished;
}

/** @returns {Tree} */
function nodeOf(given) {
  const content = given.length > 1 && typeof given[0] === "string" ? given.slice(1) : given;
  if (content.length === 1 && typeof content[0] === "string") {
    return { children: [], word: content[0].replace(ESCAPED, (found) => ESCAPES[found]) };
  }
  const words = content.filter((part) => typeof part === "string").length;
  if (words || !content.length) {
    throw new Error(
      `expected one word, or trees, under a node; received ${words} words and `
        + `${content.length - words} trees`,
    );
  }
  return { children: content, word: null };
}

/**
 * Return the binary tree over words, of a shape in `SHAPES`; one word is a leaf. See `tree_over` of
 * `serving/text/trees.py`.
 *
 * @param {string[]} words
 * @param {string} shape
 * @returns {Tree}
 */
export function treeOver(words, shape) {
  /** @type {Tree[]} */
  const leaves = words.map((word) => ({ children: [], word }));
  if (shape === "balanced") return halves(leaves);
  if (shape === "left") return leaves.reduce((left, right) => joined(left, right));
  return leaves.reduceRight((right, left) => joined(left, right));
}

/** @returns {Tree} */
function joined(left, right) {
  return { children: [left, right], word: null };
}

/** @returns {Tree} */
function halves(trees) {
  if (trees.length === 1) return trees[0];
  const middle = Math.ceil(trees.length / 2);
  return joined(halves(trees.slice(0, middle)), halves(trees.slice(middle)));
}

/** A tree's nodes by index: the root first, higher nodes before lower ones. */
export class Nodes {
  /** @param {Tree} tree */
  constructor(tree) {
    const trees = [tree];
    const children = [];
    for (const node of trees) { // the list grows in the loop: parents precede their children
      children.push(node.children.map((_, place) => trees.length + place));
      trees.push(...node.children);
    }
    const heights = trees.map(() => 0);
    for (let place = trees.length - 1; place >= 0; place -= 1) {
      heights[place] = Math.max(0, ...children[place].map((child) => heights[child] + 1));
    }
    const order = trees.map((_, place) => place)
      .sort((one, other) => heights[other] - heights[one] || one - other);
    const places = new Map(order.map((before, now) => [before, now]));
    this.words = order.map((number) => trees[number].word);
    this.children = order.map((number) => children[number].map((child) => places.get(child) ?? 0));
    /** @type {number[][]} */
    this.levels = Array.from({ length: heights[0] }, () => []);
    for (const number of order) {
      if (heights[number]) this.levels[heights[number] - 1].push(places.get(number) ?? 0);
    }
    this.length = trees.length;
  }

  /** Return the index and the words of each node, in the order of the text. */
  written() {
    return this.#under(0).map((place) => ({
      place,
      text: this.#under(place).map((node) => this.words[node])
        .filter((word) => word !== null).join(" "),
    }));
  }

  #under(place) {
    const places = [];
    const ahead = [place];
    for (let node = ahead.pop(); node !== undefined; node = ahead.pop()) {
      places.push(node);
      ahead.push(...[...this.children[node]].reverse());
    }
    return places;
  }
}

/** Converts bracketed trees, or with a shape plain texts, to a model's inputs. */
export class TreeReader {
  unit = "text";
  packing;
  #limit;
  #mostChildren;
  #table;
  #shape;

  constructor(table, limit, mostChildren, shape) {
    this.#table = table;
    this.#shape = shape;
    this.#limit = limit;
    this.#mostChildren = mostChildren;
    const lookup = (word) => (word === null ? PAD : table.lookup(word));
    this.packing = {
      arrays: (rows) => {
        const { padded, lengths } = pad(rows.map((row) => row.words.map(lookup)));
        return {
          token_ids: padded,
          lengths,
          children: padNested(
            rows.map((row) => row.children), { padId: NO_NODE, width: mostChildren },
          ),
          levels: padNested(rows.map((row) => row.levels), { padId: NO_NODE }),
        };
      },
      required: ["token_ids", "lengths", "children", "levels"],
    };
  }

  static async open(bundle, shape) {
    const table = await openTokenizer(bundle, "words", WordTable);
    const children = bundle.manifest.graphs[ROLE].inputs.find((spec) => spec.name === "children");
    return new TreeReader(
      table, bundle.manifest.limits.source_length, children?.shape.at(-1) ?? 0, shape,
    );
  }

  /** Return the `Nodes` of a tree in brackets, which is never cut, or of a plain text. */
  read(text, name, truncate) {
    requireWords(text, name);
    if (this.#shape === null) return this.#inBrackets(text, name);
    if (!truncate) requireLength(text, this.#limit, name);
    const characters = [...text];
    const words = this.#table.places(text)
      .map(([start, end]) => characters.slice(start, end).join(""));
    requireToken(words.length, name);
    const limit = Math.floor((this.#limit + 1) / 2);
    if (words.length > limit && !truncate) throw tooLong(name, words.length, limit, "words");
    return new Nodes(treeOver(words.slice(0, limit), this.#shape));
  }

  #inBrackets(text, name) {
    const count = text.split("(").length - 1;
    const isLong = text.length > Math.max(MOST_CHARACTERS, 1000 * this.#limit);
    if (count > this.#limit || isLong) {
      const characters = count > this.#limit ? "" : ` of ${lengthOf(text)} characters`;
      throw new Refusal(
        `${name} has ${count} nodes${characters}; the limit is ${this.#limit}`,
        { advice: "A tree is never cut: ask about a part of it." },
      );
    }
    let nodes;
    try {
      nodes = new Nodes(parseTree(text));
    } catch (cause) {
      throw new Refusal(
        `${name} must be a tree in brackets, as (3 (2 A) (2 film)): `
          + `${/** @type {Error} */ (cause).message}; received ${shown(text)}`,
        { cause },
      );
    }
    const most = Math.max(...nodes.children.map((own) => own.length));
    if (most > this.#mostChildren) {
      throw new Refusal(
        `${name} has a node of ${most} children; the model reads ${this.#mostChildren}`,
      );
    }
    return nodes;
  }
}
