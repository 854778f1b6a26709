// Classifies texts, pairs of texts, trees or frames, or predicts a number.

import { Refusal } from "../refusal.js";
import { isRecord, quoted, requireCount, requireFlag, withDefaults } from "../checks.js";
import { descending } from "../decoding/results.js";
import { byDefault, flag, integer, list, number, optional, string } from "../manifest/fields.js";
import { ROWS } from "../rows.js";
import { FRAMES } from "../session.js";
import { Streaming } from "../streams.js";
import { inGroups } from "./batching.js";
import { FrameReader, takesFrames } from "./frames.js";
import { encoded, partsOf, TextReader } from "./inputs.js";
import { partOf, sigmoid, softmax, TOKENS } from "./model.js";
import {
  readSettings, requireWindows, ROLE, strideProblems, wrongLogits,
} from "./settings.js";
import { DEFAULTS, SinglePass } from "./single_pass.js";
import { SHAPES, TreeReader } from "./trees.js";
import { Windows } from "./windows.js";

const PAIR = ["text", "pair"];
const OPTIONS = { ...DEFAULTS, nodes: false, top: /** @type {number | null} */ (null) };
const SETTINGS = {
  output: byDefault(optional(string), null),
  labels: byDefault(list(string), []),
  multi_label: byDefault(flag, false),
  threshold: byDefault(number, 0.5),
  none_of_these: byDefault(flag, false),
  pairs: byDefault(optional(flag), null),
  stride: byDefault(optional(integer), null),
  rows: ROWS,
};
const TREE_SETTINGS = { ...SETTINGS, tree_shape: byDefault(optional(string), null) };

/**
 * @typedef {object} Classes
 * @property {(string | null)[]} labels the most probable label, or null where none of them fits, if the
 *   model tells; for several at once, those over the threshold; for a regression, none.
 * @property {number} score of the most probable label, or of null; for a regression, the number.
 * @property {Record<string, number>} scores the most probable first, of all labels, or of `top` of
 *   them; labels that are whole numbers stand first, as JavaScript orders them.
 */
/** @typedef {Classes & {nodes?: (Classes & {text: string})[]}} Classification */

/**
 * The label of a text, of a pair of texts, of a tree, or of frames.
 *
 *     scores = softmax(logits), or sigmoid(logits) of a model of several labels at once
 *     scores = 1 - sigmoid(logit), sigmoid(logit) of a model of one logit for two labels
 *
 * If the settings have `none_of_these`, the last logit is the logit of null: none of the labels.
 */
export class Classify extends SinglePass {
  static async open(bundle, runtime) {
    const readsTrees = "words" in bundle.manifest.tokenizers;
    const axes = readsTrees ? ["batch", "nodes"] : ["batch"];
    const declared = readsTrees ? TREE_SETTINGS : SETTINGS;
    const settings = readSettings(bundle, declared, (own, outputs) => problemsOf(own, outputs, axes));
    let reader;
    if (takesFrames(bundle.manifest, ROLE)) reader = FrameReader.ofGraph(bundle, ROLE, settings.rows);
    else if (readsTrees) reader = await TreeReader.open(bundle, settings.tree_shape);
    else reader = new TextsOrPairs(await TextReader.open(bundle), settings);
    const tokenizer = reader instanceof TextsOrPairs ? reader.tokenizer : null;
    requireWindows(bundle, settings.stride, tokenizer);
    const pipeline = /** @type {Classify} */ (
      await this.opened(bundle, runtime, [settings.output], reader, settings));
    if (reader instanceof FrameReader) {
      pipeline.streaming = new Streaming(bundle, runtime, {
        output: settings.output,
        input: FRAMES,
        read: reader.follow,
        answer: ({ data }) => pipeline.#classes(data, null),
      });
    }
    return pipeline;
  }

  /**
   * Answer a text, a pair or a tree, or each one of a list.
   *
   * @param {any} texts a string; a pair {text, pair}; a tree in brackets; {frames}; or a list
   *   of such. A model of trees with `tree_shape` reads plain texts.
   * @param {Partial<typeof OPTIONS>} given see `serving.pipelines.Classify`.
   * @returns {Promise<Classification | Classification[]>}
   */
  async answer(texts, given) {
    const options = withDefaults("Classify", given, OPTIONS);
    const ofTrees = this.reader instanceof TreeReader;
    if (requireFlag("Classify: nodes", options.nodes) && !ofTrees) {
      throw new Refusal("Classify: only trees have nodes; this model reads texts");
    }
    const { token_budget: budget, top } = options;
    if (top !== null) {
      requireCount("Classify: top", top);
      if (!this.settings.labels.length) {
        throw new Refusal("Classify: top counts labels; this model predicts a number");
      }
    }
    this.attention.require("Classify", options.attention);
    const encode = (text, name, truncate) => this.reader.read(text, name, truncate);
    const name = `Classify: ${this.reader.unit}`;
    const rows = encoded(texts, name, encode, options);
    const read = (place, output) => {
      if (!ofTrees) return this.#classes(output.data, top);
      const classes = (node) => this.#classes(partOf(output, node).data, top);
      if (!options.nodes) return classes(0);
      const nodes = rows[place].written().map((node) => ({ text: node.text, ...classes(node.place) }));
      return { ...classes(0), nodes };
    };
    if (this.settings.stride === null) {
      const answers = await this.model.answer(rows, read, budget);
      return this.finished(texts, answers, rows, options, name);
    }
    const answers = await this.#answersOfWindows(rows, budget, top);
    return this.finished(texts, answers, rows.map((row) => row.rows[0]), options, name);
  }

  /**
   * Return the classes of texts; the logits of a text are the mean of those of its windows.
   *
   * @param {Windows[]} texts
   * @param {number} budget
   * @param {number | null} top
   */
  async #answersOfWindows(texts, budget, top) {
    const windows = texts.flatMap((text) => text.rows);
    const read = (_, output) => Array.from(output.data, Number);
    const logits = await this.model.answer(windows, read, budget);
    return inGroups(logits, texts.map((text) => text.rows)).map((own) => {
      const mean = own[0].map((_, label) => own.reduce((sum, of) => sum + of[label], 0) / own.length);
      return this.#classes(mean, top);
    });
  }

  /** @returns {Classes} */
  #classes(given, top) {
    const { labels, multi_label: several, threshold, none_of_these: none } = this.settings;
    if (!labels.length) return { labels: [], score: Number(given[0]), scores: {} };
    const logits = given.length < labels.length ? [0, ...given] : Array.from(given);
    const scores = several ? sigmoid(logits) : softmax(logits);
    if (scores.some(Number.isNaN)) return { labels: [], score: NaN, scores: {} }; // of no order
    const order = descending(scores.slice(0, labels.length));
    const ranked = order.slice(0, top ?? order.length);
    const best = none && scores[labels.length] > scores[order[0]] ? labels.length : order[0];
    const chosen = several ? ranked.filter((place) => scores[place] > threshold) : [best];
    return {
      labels: chosen.map((place) => labels[place] ?? null),
      score: scores[best],
      scores: Object.fromEntries(ranked.map((place) => [labels[place], scores[place]])),
    };
  }
}

/** Texts, or pairs of texts, to `Encoding`s; with a stride, texts to `Windows`. */
class TextsOrPairs {
  unit = "text";
  packing = TOKENS;
  #reader;
  #pairs;
  #stride;

  constructor(reader, { pairs, stride }) {
    this.#reader = reader;
    this.#pairs = pairs;
    this.#stride = stride;
    this.tokenizer = reader.tokenizer;
  }

  read(given, name, truncate) {
    const text = isRecord(given) && Object.keys(given).join() === "text" ? given.text : given;
    const isPair = isRecord(text);
    if (this.#pairs !== null && this.#pairs !== isPair) {
      const expected = this.#pairs ? "a pair of texts" : "one text, and no pair";
      throw new Refusal(`${name} must be ${expected}`);
    }
    if (this.#stride !== null) {
      return Windows.of(this.#reader.readWindows(text, name, this.#stride), this.#stride);
    }
    if (!isPair) return this.#reader.read(text, name, truncate);
    const names = PAIR.map((field) => `${name}, ${field}`);
    return this.#reader.readPair(partsOf(text, PAIR, name), names, truncate);
  }
}

function* problemsOf(settings, outputs, axes) {
  const { labels, multi_label: several, output, threshold, tree_shape: tree = null } = settings;
  const none = settings.none_of_these;
  const found = outputs.get(output)?.shape.at(-1);
  const isOneOfTwo = labels.length === 2 && !several && found === 1;
  yield* wrongLogits(outputs, output, axes, isOneOfTwo ? labels.slice(1) : labels, none);
  if (none && (several || !labels.length)) {
    yield "settings.none_of_these needs labels, of which a text has one";
  }
  if (new Set(labels).size < labels.length) yield "settings.labels must be distinct";
  if (several && !labels.length) yield "settings.multi_label needs labels";
  if (!(threshold > 0 && threshold < 1)) {
    yield `settings.threshold must be between 0 and 1; received ${threshold}`;
  }
  if (tree !== null && !SHAPES.includes(tree)) {
    yield `settings.tree_shape must be ${SHAPES.join(", ")} or null; received ${quoted(tree)}`;
  }
  yield* strideProblems(settings.stride);
  if (settings.stride !== null && settings.pairs !== false) {
    yield "settings.stride needs settings.pairs false: a pair is not read in windows";
  }
}
