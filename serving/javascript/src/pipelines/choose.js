// Chooses the best of several continuations of a text.

import { Refusal } from "../refusal.js";
import { shown, withDefaults } from "../checks.js";
import { mostProbable } from "../decoding/choosing.js";
import { byDefault, optional, string } from "../manifest/fields.js";
import { encoded, partsOf, TextReader } from "./inputs.js";
import { softmax } from "./model.js";
import { readSettings, wrongOutput } from "./settings.js";
import { DEFAULTS, SinglePass } from "./single_pass.js";

const SETTINGS = { output: byDefault(optional(string), null) };

/**
 * @typedef {object} Choice
 * @property {string} text the choice.
 * @property {number} index its place among the choices.
 * @property {number} score its probability.
 * @property {number[]} scores of all choices, in their order.
 */

/**
 * The choice that fits a text best.
 *
 *     scores = softmax over the choices of logit(text, choice)
 */
export class Choose extends SinglePass {
  static async open(bundle, runtime) {
    const settings = readSettings(bundle, SETTINGS, (own, outputs) =>
      wrongOutput(outputs, own.output, ["batch", "choices"]));
    const reader = await TextReader.open(bundle);
    return this.opened(bundle, runtime, [settings.output], reader, settings);
  }

  /**
   * Answer a text with its choices, {text, choices}, or each one of a list.
   *
   * @param {any} inputs
   * @param {Partial<typeof DEFAULTS>} given see `serving.pipelines.Choose`.
   * @returns {Promise<Choice | Choice[]>}
   */
  async answer(inputs, given) {
    const options = withDefaults("Choose", given, DEFAULTS);
    this.attention.require("Choose", options.attention);
    const rows = encoded(inputs, "Choose: input", this.encode, options);
    const read = (place, output) => {
      const scores = softmax(output.data);
      const [index] = mostProbable(scores, 1);
      return { text: rows[place].choices[index], index, score: scores[index], scores };
    };
    const groups = rows.map((row) => row.encodings);
    const answers = await this.model.answerGroups(groups, read, options.token_budget);
    const own = rows.map((row, place) => row.encodings[answers[place].index]);
    return this.finished(inputs, answers, own, options, "Choose: input");
  }

  encode = (value, name, truncate) => {
    const [text, choices] = partsOf(value, ["text", "choices"], name);
    if (!Array.isArray(choices) || choices.length < 2) {
      throw new Refusal(
        `${name}, choices must be a list of two texts or more; received ${shown(choices)}`,
      );
    }
    const encodings = choices.map((choice, place) => this.reader.readPair(
      [text, choice], [`${name}, text`, `${name}, choices[${place}]`], truncate,
    ));
    return { choices, encodings };
  };
}
