// Which tokens may follow so that a text matches a pattern.
//
//     y_n may follow  if  delta(q(y_1 … y_(n-1)), y_n) can reach the end within the room that is left
//
// The automaton of a pattern reads bytes; here it reads tokens.
//
// Reference: Willard and Louf 2023, section 3, https://arxiv.org/abs/2307.09702

import { Refusal } from "../refusal.js";
import { DEAD } from "./patterns.js";

export const UNREACHABLE = 2 ** 31 - 1; // distance of a state from which the end can not be reached
const MOST_AT_ONCE = 2_000_000; // entries of cached rows
const MOST_VISITED = 30_000_000; // nodes of trees of texts, by all states together

/**
 * An automaton over the tokens of a tokenizer.
 *
 * Its states are those of the pattern, and three more: `first`, before the first token of a text;
 * `ended`, after <eos>; and `dead`. A text that follows another one begins in state `continuing`.
 */
export class TokenAutomaton {
  #first;
  #later;
  #vocabSize;
  #endId;
  #rows = new Map();

  /**
   * @param {import("./patterns.js").Pattern} pattern
   * @param {{first: Tree, later: Tree}} texts see `textTrees`.
   * @param {number} endId of <eos>, which may follow an allowed text.
   * @param {number} vocabSize of the decoder.
   */
  constructor(pattern, texts, endId, vocabSize) {
    const size = pattern.nextStates.length;
    this.pattern = pattern;
    this.continuing = 0;
    this.first = size;
    this.ended = size + 1;
    this.dead = size + 2;
    this.#first = texts.first;
    this.#later = texts.later;
    this.#endId = endId;
    this.#vocabSize = vocabSize;
    this.#requireBounded();
    this.distances = this.#distances();
  }

  /** Whether tokens can write an allowed text from state `first`. */
  writes(text) {
    const state = text ? this.pattern.read(text) : this.first;
    return state !== DEAD && this.distances[state] === 1;
  }

  /** Return the state after a token. */
  advance(state, token) {
    return this.#row(state)[token];
  }

  /** Ban the tokens that may not follow; `room` is how many may still follow, with <eos>. */
  restrict(logProbs, state, room) {
    const row = this.#row(state);
    for (let token = 0; token < logProbs.length; token += 1) {
      if (!(this.distances[row[token]] < room)) logProbs[token] = -Infinity;
    }
  }

  /** Return the state after each token. */
  #row(state) {
    let row = this.#rows.get(state);
    if (!row) {
      if (this.#rows.size * this.#vocabSize > MOST_AT_ONCE) this.#rows.clear();
      row = new Int32Array(this.#vocabSize).fill(this.dead);
      for (const [token, next] of this.#edges(state)) row[token] = next;
      this.#rows.set(state, row);
    }
    return row;
  }

  /** Return the tokens that may follow in the pattern, with the state after each. */
  #edges(state) {
    if (state > this.first) return [];
    const found = [];
    this.#visit(state, (tokens, next) => {
      for (const token of tokens) found.push([token, next]);
    });
    if (this.pattern.accepts[state === this.first ? 0 : state]) found.push([this.#endId, this.ended]);
    return found;
  }

  /**
   * Visit the nodes of the texts that a state allows.
   *
   * @param {number} state
   * @param {(tokens: number[], next: number) => void} visit takes the tokens whose text ends in the
   *   node, and the state after it.
   */
  #visit(state, visit) {
    const isFirst = state === this.first;
    const { bytes, depths, ends, tokens } = isFirst ? this.#first : this.#later;
    const { nextStates } = this.pattern;
    const path = [isFirst ? 0 : state]; // by depth
    for (let node = 0; node < bytes.length;) {
      const next = nextStates[path[depths[node]]][bytes[node]];
      if (next === DEAD) {
        node = ends[node];
        continue;
      }
      path[depths[node] + 1] = next;
      visit(tokens[node], next);
      node += 1;
    }
  }

  /** Estimate what `#distances` visits: the nodes below the first bytes that states allow. */
  #requireBounded() {
    let visited = 0;
    for (const following of this.pattern.nextStates) {
      for (const [byte, size] of this.#later.sizes) if (following[byte] !== DEAD) visited += size;
    }
    if (visited > MOST_VISITED) {
      const [states, tokens] = [this.first, this.#vocabSize].map((count) => count.toLocaleString("en"));
      throw new Refusal(
        `regex or choices: ${states} states are too many for a vocabulary of ${tokens} tokens: `
          + "repeat less, or allow fewer characters",
      );
    }
  }

  /** Visit all states that tokens reach, then go back from the end. */
  #distances() {
    /** The states that lead to each state. @type {Map<number, number[]>} */
    const before = new Map([[this.first, []], [this.continuing, []], [this.ended, []]]);
    const waiting = [this.first, this.continuing];
    for (const state of waiting) { // the list grows in the loop
      const following = new Set();
      this.#visit(state, (tokens, next) => {
        if (tokens.length) following.add(next);
      });
      if (this.pattern.accepts[state === this.first ? 0 : state]) following.add(this.ended);
      for (const next of following) {
        if (!before.has(next)) {
          before.set(next, []);
          waiting.push(next);
        }
        before.get(next)?.push(state);
      }
    }
    const distances = new Int32Array(this.dead + 1).fill(UNREACHABLE);
    distances[this.ended] = 0;
    const back = [this.ended];
    for (const state of back) {
      for (const predecessor of before.get(state) ?? []) {
        if (distances[predecessor] === UNREACHABLE) {
          distances[predecessor] = distances[state] + 1;
          back.push(predecessor);
        }
      }
    }
    return distances;
  }
}

/**
 * The texts of tokens as a tree of bytes, each node before those below it.
 *
 * bytes: the last byte of each node.
 * depths: how many nodes lie above each.
 * ends: the node behind all those below each.
 * tokens: the tokens whose text ends in each.
 * sizes: the number of nodes below each first byte, which is one of them.
 *
 * @typedef {{bytes: number[], depths: number[], ends: number[], tokens: number[][],
 *   sizes: Map<number, number>}} Tree
 */

/** Return the texts of tokens as trees, which all automata of a tokenizer share. */
export function textTrees({ first, later }) {
  const tree = treeOf(first);
  return { first: tree, later: later === first ? tree : treeOf(later) };
}

/** @returns {Tree} */
function treeOf(texts) {
  const known = texts.map((text, token) => ({ text, token })).filter(({ text }) => text?.length);
  known.sort((one, other) => compareBytes(one.text, other.text));
  const tree = /** @type {Tree} */ ({ bytes: [], depths: [], ends: [], tokens: [], sizes: new Map() });
  const { bytes, depths, ends, tokens, sizes } = tree;
  const path = []; // the nodes of the text before
  const leave = (depth) => {
    for (const node of path.splice(depth)) {
      ends[node] = bytes.length;
      if (!depths[node]) sizes.set(bytes[node], ends[node] - node);
    }
  };
  for (const { text, token } of known) {
    let depth = 0;
    while (depth < path.length && bytes[path[depth]] === text[depth]) depth += 1;
    leave(depth);
    for (; depth < text.length; depth += 1) {
      path.push(bytes.push(text[depth]) - 1);
      depths.push(depth);
      tokens.push([]);
    }
    tokens[path[text.length - 1]].push(token);
  }
  leave(0);
  return tree;
}

function compareBytes(one, other) {
  const place = one.findIndex((byte, index) => byte !== other[index]);
  return place < 0 ? one.length - other.length : one[place] - (other[place] ?? -1);
}
