// Constraints on generated texts: a list of choices, or a regular expression.

import { BundleError, Refusal } from "../refusal.js";
import { shown } from "../checks.js";
import { Constraint } from "../decoding/constraint.js";
import { MANIFEST } from "../manifest/format.js";
import { Pattern } from "../text/patterns.js";
import { TokenAutomaton, UNREACHABLE, textTrees } from "../text/token_automaton.js";
import { tokenTexts } from "../text/token_texts.js";

const AT_ONCE = 8; // cached automata, each of which takes milliseconds to seconds to build

/** Makes automata from regular expressions and choices. */
export class Constraints {
  #tokenizer;
  #endId;
  #vocabSize;
  #texts;
  #known = new Map();

  constructor(tokenizer, endId, vocabSize) {
    this.#tokenizer = tokenizer;
    this.#endId = endId;
    this.#vocabSize = vocabSize;
  }

  /** Return the `TokenAutomaton` of `regex` or `choices`; null without both. */
  automaton(who, regex, choices) {
    if (regex !== null && choices !== null) {
      throw new Refusal(`${who}: regex and choices exclude each other; give one of them`);
    }
    if (regex === null && choices === null) return null;
    const key = JSON.stringify(regex ?? choices);
    let found = this.#known.get(key);
    if (!found) {
      try {
        found = regex === null ? this.#ofChoices(choices) : this.#ofRegex(regex);
      } catch (cause) {
        if (!(cause instanceof Refusal)) throw cause;
        throw new Refusal(`${who}: ${cause.message}`, { cause });
      }
      if (this.#known.size >= AT_ONCE) this.#known.delete(this.#known.keys().next().value);
      this.#known.set(key, found);
    }
    return found;
  }

  #overTokens(pattern) {
    this.#texts ??= textTrees(tokenTexts(this.#tokenizer));
    return new TokenAutomaton(pattern, this.#texts, this.#endId, this.#vocabSize);
  }

  #ofRegex(regex) {
    if (typeof regex !== "string") throw new Refusal(`regex must be a string; received ${shown(regex)}`);
    const automaton = this.#overTokens(Pattern.ofExpression(regex));
    if (automaton.distances[automaton.first] === UNREACHABLE) {
      throw new Refusal(
        `regex ${shown(regex)} matches no text that the bundle's tokenizer can write`,
      );
    }
    return automaton;
  }

  #ofChoices(choices) {
    if (!Array.isArray(choices) || !choices.every((choice) => typeof choice === "string")) {
      throw new Refusal(`choices must be a list of strings; received ${shown(choices)}`);
    }
    const automaton = this.#overTokens(Pattern.ofTexts(choices));
    const unwritten = choices.find((choice) => !automaton.writes(choice));
    if (unwritten !== undefined) {
      throw new Refusal(`choices: the bundle's tokenizer can not write ${shown(unwritten)}`);
    }
    return automaton;
  }
}

/** Refuse a bundle whose default is no constraint that its tokenizer can write. */
export function requireConstraint(bundle, constraints) {
  const { decoding, limits } = bundle.manifest;
  try {
    const automaton = constraints.automaton("decoding", decoding.regex, null);
    constraintOf("decoding", automaton, [true], [limits.target_length]);
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    throw new BundleError(cause.message, { where: bundle.where, subject: MANIFEST, cause });
  }
}

/**
 * Return the `Constraint` of a batch, null for no automaton.
 *
 * @param {string} who for errors.
 * @param {TokenAutomaton | null} automaton
 * @param {boolean[]} isFirst for each source, whether its text follows no other text.
 * @param {number[]} room for each source, the most tokens of its text, with <eos>.
 */
export function constraintOf(who, automaton, isFirst, room) {
  if (automaton === null) return null;
  const states = isFirst.map((own) => (own ? automaton.first : automaton.continuing));
  states.forEach((state, source) => {
    const needed = automaton.distances[state];
    if (needed <= room[source]) return;
    const text = needed === UNREACHABLE
      ? "no text that it allows can be written"
      : `the shortest text that it allows has ${needed} tokens with <eos>`;
    throw new Refusal(
      `${who}: regex or choices need more room than ${room[source]} tokens: ${text}`,
    );
  });
  return new Constraint(automaton, states, room);
}
