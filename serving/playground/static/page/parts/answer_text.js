// A text that was generated, and the others beside it.

import { element } from "../element.js";
import { bars } from "./bars.js";

/** Return a text as the answer. @param {string} text */
export const answerText = (text) => element("p", { class: "text", dir: "auto" }, text);

/**
 * Return the candidates with their scores, or null if there is one only.
 *
 * @param {{text: string, score: number, alternatives?: {text: string, score: number}[]}} answer the
 *   scores are log-probabilities.
 */
export function candidates(answer) {
  const { alternatives = [] } = answer;
  if (!alternatives.length) return null;
  const all = [answer, ...alternatives];
  return element("section", {}, element("h3", {}, "Candidates"),
    bars("Candidates and their scores", all.map(({ text, score }, place) => ({
      label: text, share: Math.exp(score), value: (score > -0.0005 ? 0 : score).toFixed(3), chosen: place === 0,
    }))),
    element("p", { class: "note" }, "Scores are log-probabilities, divided by the length penalty; a bar is e to that power."));
}

/** Return a text in a line. @param {string} text */
export const inLine = (text) => text.replace(/\s+/g, " ").trim();
