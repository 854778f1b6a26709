// Answers questions about a context by a span of the context.

import { Refusal } from "../refusal.js";
import { requireCount, requireNumber, withDefaults } from "../checks.js";
import { logSum } from "../decoding/choosing.js";
import { byDefault, flag, integer, number, required, string } from "../manifest/fields.js";
import { leftStripped, lengthOf, rightStripped, stripped } from "../text/characters.js";
import { wholeCharacters } from "../text/words.js";
import { inGroups } from "./batching.js";
import { encoded, partsOf, requireWords } from "./inputs.js";
import { SubwordQuestions, WordQuestions } from "./questions.js";
import { readSettings, wrongOutput } from "./settings.js";
import { DEFAULTS, SinglePass } from "./single_pass.js";
import { bestSpans } from "./spans.js";

const OPTIONS = {
  ...DEFAULTS, n_best: 1, no_answer_threshold: /** @type {number | null} */ (null),
};
const COUNTS = { stride: 128, question_length: 64, word_length: 16, answer_length: 30 };
const SETTINGS = {
  start: required(string),
  end: required(string),
  window: byDefault(integer, 384),
  ...Object.fromEntries(Object.entries(COUNTS).map(([name, value]) => [name, byDefault(integer, value)])),
  no_answer: byDefault(flag, false),
  no_answer_threshold: byDefault(number, 0),
};

/**
 * The span of a context that answers a question. Offsets count code points, as in Python.
 *
 * @typedef {object} Span
 * @property {string} text "" if there is no answer.
 * @property {number | null} start null if there is no answer.
 * @property {number | null} end
 * @property {number} score its probability among all spans, and no answer if the model allows that.
 * @property {number} [margin] the best span's score minus the score of no answer, in logits.
 * @property {Span[]} [alternatives] with n_best > 1 other spans, the best first.
 */

/**
 * A model of subwords reads a long context in windows, each after the whole question. If it allows
 * questions without an answer, there is none if
 *
 *     best span <= none + no_answer_threshold,  none = start(0) + end(0)
 *
 * A model of words and characters (BiDAF) reads a context at once.
 *
 * Reference: Devlin et al. 2019, sections 4.2 and 4.3, https://arxiv.org/abs/1810.04805
 */
export class Answer extends SinglePass {
  static async open(bundle, runtime) {
    const settings = readSettings(bundle, SETTINGS, problemsOf);
    const questions = "words" in bundle.manifest.tokenizers ? WordQuestions : SubwordQuestions;
    const reader = await questions.open(bundle, settings);
    return this.opened(bundle, runtime, [settings.start, settings.end], reader, settings);
  }

  /**
   * Answer a question, {question, context}, or each one of a list.
   *
   * @param {any} inputs
   * @param {Partial<typeof OPTIONS>} given see `serving.pipelines.Answer`.
   * @returns {Promise<Span | Span[]>}
   */
  async answer(inputs, given) {
    const options = withDefaults("Answer", given, OPTIONS);
    requireCount("Answer: n_best", options.n_best);
    const threshold = this.#threshold(options.no_answer_threshold);
    this.attention.require("Answer", options.attention);
    const rows = encoded(inputs, "Answer: input", this.encode, options);
    const texts = rows.map((row) => row.windows.rows);
    const logits = await this.model.answer(
      texts.flat(),
      (_, starts, ends) => ({ starts: starts.data.slice(), ends: ends.data.slice() }),
      options.token_budget,
    );
    const answers = inGroups(logits, texts).map((own, place) =>
      this.#span(rows[place], own, options.n_best, threshold));
    const read = rows.map((row, place) => windowOf(row, answers[place]));
    return this.finished(inputs, answers, read, options, "Answer: input");
  }

  encode = (value, name, truncate) => {
    const [question, context] = partsOf(value, ["question", "context"], name);
    requireWords(question, `${name}, question`);
    requireWords(context, `${name}, context`);
    return this.reader.read(question, context, name, truncate);
  };

  #threshold(given) {
    if (given === null) return this.settings.no_answer_threshold;
    if (!this.settings.no_answer) {
      throw new Refusal(
        "Answer: no_answer_threshold must be null; this model always has an answer",
      );
    }
    return requireNumber("Answer: no_answer_threshold", given);
  }

  /** @returns {Span} */
  #span(row, logits, nBest, threshold) {
    const windows = logits.map((own, number) => ({
      ...own, tokens: row.windows.tokens[number], first: row.windows.firsts[number],
    }));
    const { places, none, total: ofSpans } = this.#bestPlaces(row, windows, nBest);
    const { no_answer: mayBeNone } = this.settings;
    const margin = places[0].score - none;
    const total = mayBeNone ? logSum([ofSpans, none]) : ofSpans;
    /** @type {Span[]} */
    const found = places.map(({ start, end, score }) => ({
      text: row.characters.slice(start, end).join(""), start, end, score: Math.exp(score - total),
    }));
    if (mayBeNone && margin <= threshold) {
      found.unshift({ text: "", start: null, end: null, score: Math.exp(none - total) });
    }
    const [best, ...others] = found.slice(0, nBest)
      .map((span) => (mayBeNone ? { ...span, margin } : span));
    return others.length ? { ...best, alternatives: others } : best;
  }

  /** Return up to nBest places with their scores, the best first. */
  #bestPlaces(row, windows, nBest) {
    const textAt = (start, end) => row.characters.slice(start, end).join("");
    const visible = row.offsets.map(([start, end]) => Boolean(stripped(textAt(start, end))));
    for (let count = nBest; ; count *= 2) {
      const { spans, none, total } = bestSpans(windows, visible, this.settings.answer_length, count);
      const places = new Map();
      for (const { score, first, last } of spans) {
        const [start, end] = placeOf(row.characters, row.offsets[first][0], row.offsets[last][1]);
        const key = `${start} ${end}`;
        if (!places.has(key)) places.set(key, { start, end, score });
      }
      if (places.size >= nBest || spans.length < count) {
        return { places: [...places.values()], none, total };
      }
    }
  }
}

function* problemsOf(settings, outputs) {
  for (const field of ["start", "end"]) {
    yield* wrongOutput(outputs, settings[field], ["batch", "length"], field);
  }
  for (const field of Object.keys(COUNTS)) {
    if (settings[field] < 1) {
      yield `settings.${field} must be at least 1; received ${settings[field]}`;
    }
  }
}

/** Return the row of the window in which an answer begins, with most context. */
function windowOf(row, answer) {
  if (answer.start === null) return row.windows.rows[0];
  const first = row.offsets.findIndex(([, end]) => end > answer.start);
  return row.windows.rows[row.windows.owners()[first]];
}

/** Return [start, end] of a span, with whole characters and without white space around it. */
function placeOf(characters, begin, behind) {
  const [start, end] = wholeCharacters(characters, begin, behind);
  const text = leftStripped(characters.slice(start, end).join(""));
  const from = end - lengthOf(text);
  return [from, from + lengthOf(rightStripped(text))];
}
