// Tags each word of a text, and finds the entities that the tags mark.

import { BundleError, Refusal } from "../refusal.js";
import { shown, withDefaults } from "../checks.js";
import { mostProbable } from "../decoding/choosing.js";
import { byDefault, integer, list, optional, required, string } from "../manifest/fields.js";
import { MANIFEST } from "../manifest/format.js";
import { ROWS } from "../rows.js";
import { FRAMES } from "../session.js";
import { Streaming } from "../streams.js";
import { leftStripped, lengthOf, SPACES, stripped } from "../text/characters.js";
import { Subwords } from "../text/subwords.js";
import { wholeCharacters } from "../text/words.js";
import { inGroups } from "./batching.js";
import { marginals, mostProbableTags } from "./chains.js";
import { entities, isTag, SCHEMES } from "./entities.js";
import { FrameReader, takesFrames } from "./frames.js";
import { encoded, requireToken, requireWords, TextReader, textOf } from "./inputs.js";
import { partOf, softmax } from "./model.js";
import {
  readSettings, requireWindows, ROLE, strideProblems, wrongLogits,
} from "./settings.js";
import { DEFAULTS, SinglePass } from "./single_pass.js";
import { Windows } from "./windows.js";

const WORDS = ["tokenizer", "spaces"];
const SETTINGS = {
  labels: required(list(string)),
  output: byDefault(optional(string), null),
  scheme: byDefault(optional(string), "IOB2"),
  words: byDefault(string, "tokenizer"),
  stride: byDefault(optional(integer), null),
  rows: ROWS,
};

/** @typedef {{text: string, tag: string, start: number, end: number, score: number}} Word */
/** @typedef {{text: string, label: string, start: number, end: number, score: number}} Entity */
/**
 * A text's words with their tags, and the entities that the tags mark. Offsets count code points, as
 * in Python: [...text].slice(start, end).
 *
 * @typedef {{words: Word[], entities: Entity[]}} Tagging
 */
/**
 * The model's input for a text.
 *
 * @typedef {object} Row
 * @property {string[]} characters of the text.
 * @property {Windows} windows
 * @property {[number, number][]} places [start, end] of each word that has tokens.
 * @property {{word: number, token: number}[][]} tokens for each window, its words and the positions
 *   of their first tokens.
 */

/**
 * The tags of a text's words.
 *
 *     tag(word) = argmax of softmax(logits at the word's first token)
 */
export class Tag extends SinglePass {
  static async open(bundle, runtime) {
    const settings = readSettings(bundle, SETTINGS, problemsOf);
    const ofFrames = takesFrames(bundle.manifest, ROLE);
    if (ofFrames) requireTagsOfFrames(bundle, settings.output);
    const reader = ofFrames
      ? FrameReader.ofGraph(bundle, ROLE, settings.rows)
      : await TextReader.open(bundle);
    requireWindows(bundle, settings.stride, reader instanceof TextReader ? reader.tokenizer : null);
    const pipeline = /** @type {Tag} */ (
      await this.opened(bundle, runtime, [settings.output], reader, settings));
    if (reader instanceof FrameReader) {
      pipeline.streaming = new Streaming(bundle, runtime, {
        output: settings.output,
        input: FRAMES,
        read: reader.follow,
        answer: ({ data }, frame) => pipeline.#words([], [[frame, frame + 1]], [data])[0],
      });
    }
    return pipeline;
  }

  /**
   * Answer a text, or each text of a list.
   *
   * @param {any} texts a string; {text}, of a string or a list of its words; {frames}; or a list of
   *   such.
   * @param {Partial<typeof DEFAULTS>} given see `serving.pipelines.Tag`.
   * @returns {Promise<Tagging | Tagging[]>}
   */
  async answer(texts, given) {
    const options = withDefaults("Tag", given, DEFAULTS);
    const { token_budget: budget } = options;
    this.attention.require("Tag", options.attention);
    if (this.reader instanceof FrameReader) {
      const encode = (value, name, truncate) => this.reader.read(value, name, truncate);
      const rows = encoded(texts, `Tag: ${FRAMES}`, encode, options);
      const read = (place, output) => {
        const logits = Array.from(rows[place], (_, frame) => partOf(output, frame).data);
        return this.#tagging([], logits.map((_, frame) => [frame, frame + 1]), logits);
      };
      const tags = await this.model.answer(rows, read, budget);
      return this.finished(texts, tags, rows, options, `Tag: ${FRAMES}`);
    }
    const rows = encoded(texts, "Tag: text", this.encode, options);
    const windows = rows.flatMap((row) => row.windows.rows);
    const tokens = rows.flatMap((row) => row.tokens);
    const found = await this.model.answer(
      windows,
      (place, output) => tokens[place].map(({ word, token }) =>
        ({ word, logits: partOf(output, token).data.slice() })),
      budget,
    );
    const byText = inGroups(found, rows.map((row) => row.windows.rows));
    const answers = rows.map((row, place) => {
      const logits = Array(row.places.length);
      for (const own of byText[place].flat()) logits[own.word] = own.logits;
      return this.#tagging(row.characters, row.places, logits);
    });
    const own = rows.map((row) => row.windows.rows[0]);
    return this.finished(texts, answers, own, options, "Tag: text");
  }

  /** @returns {Row} */
  encode = (given, name, truncate) => {
    const own = textOf(given, name);
    const words = Array.isArray(own) ? own : [];
    let text = own;
    /** @type {any[] | null} */
    let places = null;
    if (Array.isArray(own)) ({ text, places } = joined(words, name));
    else if (this.settings.words === "spaces") {
      requireWords(text, name);
      places = spacedPlaces(text);
    }
    const { stride } = this.settings;
    const { tokenizer, readsWords } = this.reader;
    const ownPlaces = readsWords && places ? places : undefined;
    const windows = stride === null
      ? Windows.of([this.reader.read(text, name, truncate, ownPlaces)], 1)
      : Windows.of(this.reader.readWindows(text, name, stride), stride);
    const characters = [...text];
    const found = places === null
      ? wordsOfTokenizer(characters, windows, tokenizer)
      : tokensOfWords(windows, places);
    if (found.places.length < words.length) { // some words were cut, or have no token
      words.forEach((word, number) =>
        requireToken(tokenizer.encode(word).length, `${name}, word ${number}`));
    }
    return { characters, windows, places: found.places, tokens: byWindow(windows, found.tokens) };
  };

  /** @returns {Word[]} */
  #words(characters, places, logits) {
    const { labels } = this.settings;
    const found = bestTags(logits, labels.length);
    return places.map(([start, end], place) => {
      const { tag, score } = found[place];
      const text = characters.slice(start, end).join("");
      return { text, tag: labels[tag], start, end, score };
    });
  }

  /** @returns {Tagging} */
  #tagging(characters, places, logits) {
    const { scheme } = this.settings;
    const words = this.#words(characters, places, logits);
    if (scheme === null) return { words, entities: [] };
    const marked = entities(words.map(({ tag }) => tag)).map(({ label, first, end: last }) => {
      const own = words.slice(first, last);
      const { start } = own[0];
      const { end } = own[own.length - 1];
      const score = own.reduce((sum, word) => sum + word.score, 0) / own.length;
      return { text: characters.slice(start, end).join(""), label, start, end, score };
    });
    return { words, entities: marked };
  }
}

/** Return the tags of words and their probabilities, of logits or of the potentials of a chain. */
function bestTags(logits, K) {
  const isChain = logits.length > 0 && logits[0].length > K;
  const scores = isChain ? marginals(logits, K) : logits.map(softmax);
  const tags = isChain ? mostProbableTags(logits, K) : scores.map((own) => mostProbable(own, 1)[0]);
  return tags.map((tag, place) => ({ tag, score: scores[place][tag] }));
}

function* problemsOf(settings, outputs) {
  const { labels, output, scheme, stride, words } = settings;
  const axes = ["batch", "length"];
  const isChain = outputs.get(output)?.shape.length === 4;
  yield* wrongLogits(outputs, output, isChain ? [...axes, labels.length + 1] : axes, labels);
  if (!WORDS.includes(words)) {
    yield `settings.words must be one of ${WORDS.join(", ")}; received '${words}'`;
  }
  yield* strideProblems(stride);
  if (scheme !== null && !SCHEMES.includes(scheme)) {
    yield `settings.scheme must be one of ${SCHEMES.join(", ")}; received '${scheme}'`;
  } else if (scheme !== null) {
    const wrong = labels.filter((tag) => !isTag(tag, scheme));
    if (wrong.length) yield `settings.labels must be ${scheme} tags; received ${wrong.join(", ")}`;
  }
}

function requireTagsOfFrames(bundle, output) {
  const graph = bundle.manifest.graphs[ROLE];
  const length = graph.inputs.find((spec) => spec.name === FRAMES)?.shape[1];
  const own = graph.outputs.find((spec) => spec.name === output)?.shape[1];
  if (length !== own) {
    throw new BundleError(
      `output ${output} must have logits for every frame, ${length} of them; it has ${own}: ` +
        'write padding="same" or "causal" and strides=1, and leave pooling of frames out',
      { where: bundle.where, subject: MANIFEST },
    );
  }
}

/** Return the text of words, and their places in it. */
function joined(words, name) {
  let start = 0;
  const places = words.map((word, number) => {
    requireWords(word, `${name}, word ${number}`);
    if (new RegExp(`[${SPACES}]`).test(word)) {
      throw new Refusal(`${name}, word ${number} must hold no space; received ${shown(word)}`);
    }
    const end = start + lengthOf(word);
    const place = [start, end];
    start = end + 1;
    return place;
  });
  return { text: words.join(" "), places };
}

/** Return the places of what stands between white space. */
function spacedPlaces(text) {
  const places = [];
  [...text].forEach((character, place) => {
    if (!stripped(character)) return;
    const before = places.at(-1);
    if (before && before[1] === place) before[1] = place + 1;
    else places.push([place, place + 1]);
  });
  return places;
}

/** Return for each window its words, and the positions of their first tokens. */
function byWindow(windows, tokens) {
  const owners = windows.owners();
  return windows.firsts.map((first, number) => tokens.flatMap((token, word) =>
    (owners[token] === number
      ? [{ word, token: token - first + windows.tokens[number].start }]
      : [])));
}

/** Return the places of the words that have tokens, and the indices of their first tokens. */
function tokensOfWords(windows, places) {
  /** @type {Map<number, number>} */
  const firstTokens = new Map();
  windows.ofText("offsets").forEach(([start, end], token) => {
    const from = Math.max(start, end - 1);
    const word = places.findLastIndex(([begin]) => begin <= from);
    if (word < 0 && end > start) return; // a space before the first word
    if (!firstTokens.has(Math.max(word, 0))) firstTokens.set(Math.max(word, 0), token);
  });
  return {
    places: [...firstTokens.keys()].map((word) => places[word]), tokens: [...firstTokens.values()],
  };
}

/**
 * Return the places of a tokenizer's words, and the indices of their first tokens.
 *
 * Words hold no spaces. A mark belongs to the word of the character before it, and so do letters
 * after the mark that would belong to that word without it: byte-level BPE splits at marks.
 */
function wordsOfTokenizer(characters, windows, tokenizer) {
  const offsets = windows.ofText("offsets");
  const firstTokens = new Map();
  const ends = new Map();
  windows.ofText("wordIds").forEach((word, token) => {
    if (!firstTokens.has(word)) firstTokens.set(word, token);
    ends.set(word, offsets[token][1]);
  });
  /** @type {[number, number][]} */
  const places = [];
  const tokens = [];
  for (const [word, first] of firstTokens) {
    let token = first;
    let [start] = offsets[token];
    const own = characters.slice(start, ends.get(word)).join("");
    start += lengthOf(own) - lengthOf(leftStripped(own)); // the space before the word
    const [, end] = wholeCharacters(characters, start, ends.get(word));
    const last = places.at(-1);
    if (last && start < last[1] && last[1] < end) { // it begins with marks of the previous word
      [, start] = last;
      while (offsets[token][1] <= start) token += 1;
    }
    if (last && start === last[1] && start < end && isSplitByMarks(characters, start, tokenizer)) {
      last[1] = end;
    } else if (start < end && (!last || start >= last[1])) {
      places.push([start, end]);
      tokens.push(token);
    }
  }
  return { places, tokens };
}

/** Whether a word of byte-level BPE begins at a position only because of marks before it. */
function isSplitByMarks(characters, place, tokenizer) {
  const [base] = wholeCharacters(characters, place - 1, place);
  if (place - base < 2 || !(tokenizer instanceof Subwords)) return false;
  return tokenizer.words(characters[base] + characters[place]).length === 1;
}
