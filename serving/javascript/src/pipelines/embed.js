// Embeddings of texts, and features of their words.

import { Refusal } from "../refusal.js";
import { requireFlag, shown, withDefaults } from "../checks.js";
import { byDefault, flag, integer, optional, string } from "../manifest/fields.js";
import { FRAMES } from "../session.js";
import { TOKEN_BUDGET } from "./batching.js";
import { FrameReader, takesFrames } from "./frames.js";
import { encoded, TextReader, textOf } from "./inputs.js";
import { partOf } from "./model.js";
import { readSettings, ROLE, wrongOutput } from "./settings.js";
import { DEFAULTS, SinglePass } from "./single_pass.js";
import { SpelledWords } from "./spelled_words.js";

const SMALLEST = 1e-12; // smallest norm to divide by
const OPTIONS = { ...DEFAULTS, normalize: /** @type {boolean | null} */ (null), words: false };
const SETTINGS = {
  output: byDefault(optional(string), null),
  normalize: byDefault(flag, true),
};
const OF_WORDS = { ...SETTINGS, word_length: byDefault(integer, 50) };

/**
 * @typedef {object} WordFeatures
 * @property {string} text the word.
 * @property {number} start its offsets, in code points.
 * @property {number} end
 * @property {Float32Array[]} layers the lowest first.
 */
/**
 * @typedef {object} Embedding
 * @property {Float32Array} vector
 * @property {WordFeatures[]} [words] on request.
 */

/** The vector of a text, or of frames, of length 1 if the settings say so. */
export class Embed extends SinglePass {
  static async open(bundle, runtime) {
    const ofWords = "characters" in bundle.manifest.tokenizers;
    const settings = readSettings(
      bundle, ofWords ? OF_WORDS : SETTINGS, ofWords ? problemsOfWords : problemsOf,
    );
    let reader;
    if (takesFrames(bundle.manifest, ROLE)) reader = FrameReader.ofGraph(bundle, ROLE);
    else if (ofWords) reader = await SpelledWords.open(bundle, settings.word_length);
    else reader = await TextReader.open(bundle);
    return this.opened(bundle, runtime, [settings.output], reader, settings);
  }

  /**
   * Answer a text, or each text of a list.
   *
   * @param {any} texts
   * @param {Partial<typeof OPTIONS>} given see `serving.pipelines.Embed`.
   * @returns {Promise<Embedding | Embedding[]>}
   */
  async answer(texts, given) {
    const options = withDefaults("Embed", given, OPTIONS);
    const normalize = options.normalize ?? this.settings.normalize;
    requireFlag("Embed: normalize", normalize);
    requireFlag("Embed: words", options.words);
    const ofWords = this.reader instanceof SpelledWords;
    if (options.words && !ofWords) {
      throw new Refusal("Embed: words must be false; this model gives a vector for a text");
    }
    this.attention.require("Embed", options.attention);
    const isFrames = this.reader instanceof FrameReader;
    const encode = (text, name, truncate) =>
      this.reader.read(isFrames ? text : textOf(text, name), name, truncate);
    const name = `Embed: ${isFrames ? FRAMES : "text"}`;
    const rows = encoded(texts, name, encode, options);
    const read = (place, output) => (ofWords
      ? embeddingOfWords(rows[place], output, normalize, options.words)
      : { vector: normalized(Float32Array.from(output.data), normalize) });
    const answers = await this.model.answer(rows, read, options.token_budget);
    return this.finished(texts, answers, rows, options, name);
  }

  /**
   * Return the cosines of the vectors of two lists of texts, a row for each of the first.
   *
   * @param {any[]} texts
   * @param {any[]} others
   * @param {{truncate?: boolean, token_budget?: number}} [given]
   * @returns {Promise<number[][]>}
   */
  async similarity(texts, others, given = {}) {
    for (const [name, list] of Object.entries({ texts, others })) {
      if (!Array.isArray(list)) {
        throw new Refusal(`Embed: ${name} must be a list of strings; received ${shown(list)}`);
      }
    }
    const options = withDefaults("Embed", given, { truncate: false, token_budget: TOKEN_BUDGET });
    const found = /** @type {Embedding[]} */ (
      await this.answer([...texts, ...others], { ...options, normalize: true })
    );
    const vectors = found.map(({ vector }) => vector);
    const cosine = (one, other) => one.reduce((sum, value, axis) => sum + value * other[axis], 0);
    return vectors.slice(0, texts.length).map((row) => vectors.slice(texts.length).map((column) =>
      Math.max(-1, Math.min(cosine(row, column), 1)))); // rounding may exceed 1
  }
}

function problemsOf(settings, outputs) {
  return wrongOutput(outputs, settings.output, ["batch", "dim"]);
}

function* problemsOfWords(settings, outputs) {
  yield* wrongOutput(outputs, settings.output, ["batch", "layers", "length", "dim"]);
  if (settings.word_length < 1) {
    yield `settings.word_length must be at least 1; received ${settings.word_length}`;
  }
}

/** Return the `Embedding` of words, the mean over layers (L, T or more, D) and words. */
function embeddingOfWords(row, output, normalize, words) {
  const [layers, , dim] = output.dims;
  const features = Array.from({ length: row.length }, (_, word) =>
    Array.from({ length: layers }, (__, layer) =>
      Float32Array.from(partOf(partOf(output, layer), word).data)));
  const vector = Float32Array.from({ length: dim }, (_, axis) => {
    const sum = features.flat().reduce((total, values) => total + values[axis], 0);
    return sum / (layers * row.length);
  });
  const found = { vector: normalized(vector, normalize) };
  if (!words) return found;
  return {
    ...found,
    words: row.places.map(([start, end], word) => ({
      text: row.characters.slice(start, end).join(""), start, end, layers: features[word],
    })),
  };
}

function normalized(vector, normalize) {
  if (!normalize) return vector;
  const norm = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / Math.max(norm, SMALLEST));
}
