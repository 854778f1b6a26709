// Regular expressions, and sets of texts, as automata over the bytes of UTF-8.
//
//     delta(q, b) -> q',   a text is allowed if its bytes lead from state 0 to an accepting one
//
// Reference: Thompson 1968, https://doi.org/10.1145/363347.363387 (the automaton of an expression);
// Rabin and Scott 1959, https://doi.org/10.1147/rd.32.0114 (one state for each set of its states)

import { Refusal } from "../refusal.js";
import { quoted } from "../checks.js";
import { loneSurrogate, requireUTF8 } from "./characters.js";
import { parseExpression, Unread } from "./expressions.js";

export const DEAD = -1;
const MOST_PARTS = 50_000; // edges of a nondeterministic automaton
const MOST_STATES = 20_000;
const MOST_WORK = 150_000; // edges and nodes that the subset construction visits
const encoder = new TextEncoder();

/** A finite automaton that accepts the allowed texts; state 0 is the first. */
export class Pattern {
  /**
   * @param {Int32Array[]} nextStates for each state the state after each byte, or -1.
   * @param {Set<number>} accepting the states in which a text may end.
   */
  constructor(nextStates, accepting) {
    this.nextStates = nextStates;
    this.accepts = nextStates.map((_, state) => accepting.has(state));
  }

  /** Return the state after a text, -1 if no allowed text begins with it. */
  read(text) {
    let state = 0;
    for (const byte of encoder.encode(text)) {
      state = this.nextStates[state][byte];
      if (state === DEAD) return DEAD;
    }
    return state;
  }

  /** Whether a text is allowed. */
  allows(text) {
    const state = this.read(text);
    return state !== DEAD && this.accepts[state];
  }

  /** Return the pattern of the texts that an expression of Python matches as a whole. */
  static ofExpression(expression) {
    if (loneSurrogate(expression)) requireUTF8("regex", expression);
    try {
      const item = parseExpression(expression);
      const classes = new Classes();
      if (sizeOf(item, classes) > MOST_PARTS) throw new Unread("is too large: repeat less");
      const nodes = new Nodes(classes);
      const end = nodes.add(item, 0);
      return new Pattern(...deterministic(nodes, end));
    } catch (cause) {
      if (!(cause instanceof Unread)) throw cause;
      const shown = [...quoted(expression)];
      const short = shown.length <= 60 ? shown.join("") : `${shown.slice(0, 59).join("")}…`;
      throw new Refusal(`regex ${short} ${cause.message}`, { cause });
    }
  }

  /** Return the pattern of these texts and no other. */
  static ofTexts(texts) {
    const nextStates = [new Int32Array(256).fill(DEAD)];
    const accepting = new Set();
    for (const text of new Set(texts)) {
      requireUTF8("choices", text);
      let state = 0;
      for (const byte of encoder.encode(text)) {
        if (nextStates[state][byte] === DEAD) {
          if (nextStates.length >= MOST_STATES) {
            throw new Refusal(
              `choices must have ${(MOST_STATES - 1).toLocaleString("en")} bytes together at most, `
                + "those of a common beginning once",
            );
          }
          nextStates[state][byte] = nextStates.length;
          nextStates.push(new Int32Array(256).fill(DEAD));
        }
        state = nextStates[state][byte];
      }
      accepting.add(state);
    }
    if (!accepting.size) throw new Refusal("choices must be one text at least; received none");
    return new Pattern(nextStates, accepting);
  }
}

/** @typedef {[number, number, number]} Edge first byte, last byte, node. */
/**
 * The automata of classes: for each node its edges; node 0 is the end, the last node the begin.
 */
class Classes {
  /** @type {Map<string, Edge[][]>} */
  #known = new Map();

  /** @param {import("./expressions.js").Range[]} ranges */
  of(ranges) {
    const key = ranges.join(" ");
    let found = this.#known.get(key);
    if (!found) {
      found = automatonOfRanges(ranges);
      this.#known.set(key, found);
    }
    return found;
  }
}

/** Return the nodes of a class, with equal beginnings and ends shared. @returns {Edge[][]} */
function automatonOfRanges(ranges) {
  const tree = new Map();
  for (const [first, last] of ranges) {
    for (const sequence of utf8(first, last)) {
      let inner = tree;
      for (const part of sequence) {
        const key = part[0] * 256 + part[1];
        if (!inner.has(key)) inner.set(key, new Map());
        inner = inner.get(key);
      }
    }
  }
  const places = new Map();
  /** @type {Edge[][]} */
  const nodes = [];
  const place = (inner, isBegin) => {
    /** @type {Edge[]} */
    const edges = [];
    for (const [key, following] of inner) {
      edges.push([Math.floor(key / 256), key % 256, place(following, false)]);
    }
    const text = edges.join(" ");
    if (isBegin || !places.has(text)) {
      places.set(text, nodes.length);
      nodes.push(edges);
    }
    return places.get(text);
  };
  places.set("", 0);
  nodes.push([]);
  place(tree, true);
  return nodes;
}

/**
 * Return how many edges an item has, and repetitions of nothing.
 *
 * @param {import("./expressions.js").Item} item
 * @param {Classes} classes
 */
function sizeOf(item, classes) {
  const sum = (items) => items.reduce((total, inner) => total + sizeOf(inner, classes), 0);
  if (item.kind === "ranges") {
    return Math.max(classes.of(item.ranges).reduce((total, edges) => total + edges.length, 0), 1);
  }
  if (item.kind === "all") return sum(item.items);
  if (item.kind === "any") return 1 + sum(item.branches);
  const count = item.most === Infinity ? item.least + 1 : item.most;
  return 2 + count * (1 + sizeOf(item.item, classes));
}

/** A nondeterministic automaton while it is built. */
class Nodes {
  /** The edges of each node. @type {Edge[][]} */
  edges = [[]];
  /** For each node the nodes that it reaches without a byte. @type {Set<number>[]} */
  free = [new Set()];

  #classes;

  /** @param {Classes} classes */
  constructor(classes) {
    this.#classes = classes;
  }

  #new() {
    this.edges.push([]);
    this.free.push(new Set());
    return this.edges.length - 1;
  }

  /**
   * Add an item after a node; return the node at its end.
   *
   * @param {import("./expressions.js").Item} item
   * @param {number} begin
   * @returns {number}
   */
  add(item, begin) {
    if (item.kind === "ranges") return this.#addClass(this.#classes.of(item.ranges), begin);
    if (item.kind === "all") return item.items.reduce((node, inner) => this.add(inner, node), begin);
    if (item.kind === "repeat") return this.#addRepeat(item, begin);
    const end = this.#new();
    for (const branch of item.branches) this.free[this.add(branch, begin)].add(end);
    return end;
  }

  #addRepeat({ least, most, item }, start) {
    let begin = start;
    for (let count = 0; count < least; count += 1) begin = this.add(item, begin);
    if (most === Infinity) {
      const again = this.#new();
      this.free[begin].add(again);
      this.free[this.add(item, again)].add(again);
      const end = this.#new();
      this.free[again].add(end);
      return end;
    }
    const end = this.#new();
    for (let count = least; count < most; count += 1) {
      this.free[begin].add(end);
      begin = this.add(item, begin);
    }
    this.free[begin].add(end);
    return end;
  }

  #addClass(nodes, begin) {
    const places = nodes.map((_, node) => (node === nodes.length - 1 ? begin : this.#new()));
    nodes.forEach((edges, node) => {
      for (const [first, last, next] of edges) this.edges[places[node]].push([first, last, places[next]]);
    });
    return places[0];
  }
}

/**
 * Yield the byte sequences of a range of code points, as lists of [first, last] byte.
 *
 * Reference: https://github.com/BurntSushi/utf8-ranges
 */
function* utf8(first, last) {
  for (const longest of [0x7f, 0x7ff, 0xffff]) {
    if (first <= longest && longest < last) {
      yield* utf8(first, longest);
      yield* utf8(longest + 1, last);
      return;
    }
  }
  for (const place of last > 0x7f ? [1, 2, 3] : []) {
    const below = 2 ** (6 * place) - 1;
    if ((first & ~below) !== (last & ~below)) {
      if (first & below) {
        yield* utf8(first, first | below);
        yield* utf8((first | below) + 1, last);
        return;
      }
      if ((last & below) !== below) {
        yield* utf8(first, (last & ~below) - 1);
        yield* utf8(last & ~below, last);
        return;
      }
    }
  }
  const ends = encoder.encode(String.fromCodePoint(last));
  yield Array.from(encoder.encode(String.fromCodePoint(first)), (byte, place) => [byte, ends[place]]);
}

/** Subset construction: the next states of reachable sets of nodes, and accepting ones. */
function deterministic(nodes, end) {
  const closed = new Map();
  let work = 0;
  const closure = (targets) => {
    const key = targets.join(",");
    if (!closed.has(key)) {
      const found = new Set(targets);
      for (const node of found) {
        work += nodes.free[node].size;
        for (const next of nodes.free[node]) found.add(next);
      }
      closed.set(key, [...found].sort((one, other) => one - other));
    }
    return closed.get(key);
  };
  const first = closure([0]);
  const states = new Map([[first.join(","), 0]]);
  const waiting = [first];
  const nextStates = [];
  const accepting = new Set();
  for (const here of waiting) { // the list grows in the loop
    if (here.includes(end)) accepting.add(nextStates.length);
    const following = new Int32Array(256).fill(DEAD);
    const edges = here.flatMap((node) => nodes.edges[node]);
    work += here.length + edges.length;
    for (const { begin, behind, targets } of pieces(edges)) {
      work += targets.length;
      const there = closure(targets);
      const key = there.join(",");
      if (!states.has(key)) {
        states.set(key, states.size);
        waiting.push(there);
      }
      following.fill(Number(states.get(key)), begin, behind);
      if (states.size > MOST_STATES || work > MOST_WORK) {
        throw new Unread("is too large: repeat less, or have fewer alternatives");
      }
    }
    nextStates.push(following);
  }
  return /** @type {[Int32Array[], Set<number>]} */ ([nextStates, accepting]);
}

/** Yield ranges of bytes with the same targets. */
function* pieces(edges) {
  const bounds = [...new Set(edges.flatMap(([first, last]) => [first, last + 1]))]
    .sort((one, other) => one - other);
  for (const [place, begin] of bounds.slice(0, -1).entries()) {
    const own = edges.filter(([first, last]) => first <= begin && begin <= last);
    const targets = [...new Set(own.map(([, , node]) => node))].sort((one, other) => one - other);
    if (targets.length) yield { begin, behind: bounds[place + 1], targets };
  }
}
