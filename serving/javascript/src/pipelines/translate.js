// Translates a text, frames, or a row of a table into a text.

import { BundleError, Refusal } from "../refusal.js";
import { isDefault, quoted, requireFlag, shown, withDefaults } from "../checks.js";
import { pad } from "../arrays.js";
import { Beams } from "../decoding/beam.js";
import { ChoosingStep } from "../decoding/choosing.js";
import { MostProbableAllowed } from "../decoding/constraint.js";
import { Greedy } from "../decoding/greedy.js";
import { steps } from "../decoding/loop.js";
import { Prompts } from "../decoding/results.js";
import { MANIFEST, parseSettings } from "../manifest/format.js";
import { Rows, ROWS } from "../rows.js";
import { EncoderDecoder, FRAMES, GenerateGraph } from "../session.js";
import { stripped } from "../text/characters.js";
import { CharacterTable, WordTable } from "../text/tables.js";
import { answerInBatches, TOKEN_BUDGET } from "./batching.js";
import { constraintOf, Constraints, requireConstraint } from "./constraints.js";
import { FrameReader, padded, takesFrames } from "./frames.js";
import {
  encoded, oneOrAll, openTokenizer, requireLength, requireToken, requireWords, tooLong,
} from "./inputs.js";
import { requireBeams, requireEarlyStopping, requirePenalty } from "./options.js";
import { Detokenizer, pieces } from "./pieces.js";
import { Pipeline } from "./pipeline.js";

const SHORTEST = 16; // tokens that a shorter source counts in the token budget
const DEFAULTS = {
  num_beams: /** @type {number | null} */ (null),
  n_best: 1,
  length_penalty: /** @type {number | null} */ (null),
  attention: /** @type {boolean | "heads"} */ (false),
  early_stopping: /** @type {boolean | "never"} */ ("never"),
  regex: /** @type {string | null} */ (null),
  choices: /** @type {string[] | null} */ (null),
  truncate: false,
  token_budget: TOKEN_BUDGET,
};

/**
 * @typedef {object} Translation
 * @property {string} text the answer.
 * @property {number} score its total log-probability, divided by the length penalty.
 * @property {number[][] | number[][][][]} [attention] on request: for each target token the weight of
 *   each source token, (T, S); with "heads" (L, N, T, S).
 * @property {string[]} [source_tokens] the tokens of its columns.
 * @property {string[]} [target_tokens] the tokens of its rows.
 * @property {Translation[]} [alternatives] with n_best > 1 the other answers, the best first.
 */

/**
 * One text into another, or frames or a row of a table into a text.
 *
 *     text -> tokens -> encoder -> beam search over decoder steps -> tokens -> text
 */
export class Translate extends Pipeline {
  #graphs;
  #whole;
  #source;
  #target;
  #constraints;
  #detokenizer;

  constructor(bundle, graphs, whole, source, target) {
    super(bundle, whole ? [graphs, whole] : [graphs]);
    const { decoding } = bundle.manifest;
    this.#graphs = graphs;
    this.#whole = whole;
    this.#source = source;
    this.#target = target;
    this.#detokenizer = new Detokenizer(target);
    this.#constraints = new Constraints(target, decoding.end_id, graphs.vocabSize);
    requireConstraint(bundle, this.#constraints);
  }

  static async open(bundle, runtime) {
    const { settings, problems } = parseSettings(bundle.manifest, { rows: ROWS });
    const rows = !problems.length && settings.rows ? new Rows(settings.rows) : null;
    if (rows) problems.push(...[...rows.problems()].map((reason) => `settings.rows: ${reason}`));
    if (problems.length) {
      throw new BundleError(problems, { where: bundle.where, subject: MANIFEST });
    }
    const source = takesFrames(bundle.manifest, "encoder")
      ? FrameReader.ofGraph(bundle, "encoder", rows)
      : await openTokenizer(bundle, "source");
    const target = await openTokenizer(bundle, "target");
    const graphs = await EncoderDecoder.open(bundle, runtime);
    requireVocabulary(bundle, target, "target", graphs.vocabSize);
    const whole = runtime.generatesInGraph ? await GenerateGraph.open(bundle, runtime) : null;
    return new Translate(bundle, graphs, whole, source, target);
  }

  /**
   * Answer a text, or each text of a list.
   *
   * @param {any} texts
   * @param {Partial<typeof DEFAULTS>} given see `serving.pipelines.Translate`.
   * @returns {Promise<Translation | Translation[]>}
   */
  async answer(texts, given) {
    const options = withDefaults("Translate", given, DEFAULTS);
    const { decoding } = this.manifest;
    const numBeams = options.num_beams ?? decoding.num_beams;
    const alpha = requirePenalty("Translate", options.length_penalty ?? decoding.length_penalty);
    requireBeams("Translate", numBeams, options.n_best, this.#graphs.vocabSize);
    requireEarlyStopping("Translate", options.early_stopping);
    this.#requireAttention(options.attention);
    const automaton = this.#automaton(options);
    const name = `Translate: ${this.#readsFrames ? FRAMES : "text"}`;
    const rows = encoded(texts, name, this.encode, options);
    const lengths = rows.map((row) => numBeams * Math.max(row.length, SHORTEST));
    const inGraph = this.#whole && isDefault(options, DEFAULTS, ["truncate", "token_budget"]);
    const answer = async (places) => {
      const own = places.map((place) => rows[place]);
      if (inGraph) {
        const { source, lengths: sizes } = this.#arrays(own);
        const found = await this.#whole.search(source, sizes);
        return found.map((hypotheses, index) => this.#answer(hypotheses, own[index], false));
      }
      const search = {
        endId: decoding.end_id, maxLengths: this.#maxLengths(own.length),
        prompts: new Prompts(own.map(() => [])), alpha,
      };
      const found = numBeams === 1 ? new Greedy(search) : new Beams({
        ...search, numBeams, nBest: options.n_best, earlyStopping: options.early_stopping,
      });
      for await (const _ of await this.#steps(own, found, automaton, numBeams, options.attention));
      return found.finished().map((hypotheses, index) =>
        this.#answer(hypotheses, own[index], options.attention));
    };
    return oneOrAll(texts, await answerInBatches(lengths, answer, options.token_budget), name);
  }

  /** Yield the pieces of the greedy answer, each as soon as it is final. */
  async *stream(text, given = {}) {
    const { truncate } = withDefaults("Translate", given, { truncate: false });
    requireFlag("Translate: truncate", truncate);
    const automaton = this.#automaton({ regex: null, choices: null });
    const row = this.encode(text, "Translate: text", truncate);
    const greedy = new Greedy({
      endId: this.manifest.decoding.end_id, maxLengths: this.#maxLengths(1),
      prompts: new Prompts([[]]),
    });
    const found = await this.#steps([row], greedy, automaton, 1, false);
    yield* pieces(found, this.#detokenizer, "Translate: text");
  }

  /** Return the `Encoding` of a text, or an array of frames. */
  encode = (text, name, truncate) => {
    const source = this.#source;
    if (source instanceof FrameReader) return source.read(text, name, truncate);
    const characters = source instanceof CharacterTable;
    requireWords(text, name, characters);
    if (this.manifest.text_prefix) this.#requirePrefix(text, name);
    const limit = this.manifest.limits.source_length;
    if (!truncate) requireLength(text, limit, name);
    const analyze = (most) => {
      if (characters) return source.analyze(text, most);
      if (source instanceof WordTable) return source.analyze(text, { maxLength: most });
      return source.analyze([text], { maxLength: most });
    };
    const encoding = analyze(Infinity);
    requireToken(characters || encoding.offsets.some(Boolean), name);
    if (encoding.length <= limit) return encoding;
    if (truncate) return analyze(limit);
    throw tooLong(name, encoding.length, limit, characters ? "characters" : "tokens");
  };

  get #readsFrames() {
    return this.#source instanceof FrameReader;
  }

  #maxLengths(count) {
    return Array(count).fill(this.manifest.limits.target_length);
  }

  #requirePrefix(text, name) {
    const { examples, text_prefix: prefix } = this.manifest;
    if (!prefix) return;
    const example = examples.length ? `; write e.g. ${quoted(examples[0])}` : "";
    const place = text.indexOf(prefix.separator);
    if (place < 0) {
      throw new Refusal(
        `${name} must begin with a ${prefix.name} and ${quoted(prefix.separator)}${example}; `
          + `received ${shown(text)}`,
      );
    }
    const value = text.slice(0, place);
    if (!prefix.values.includes(value)) {
      throw new Refusal(
        `${name} has an unknown ${prefix.name} ${shown(value)}; known: `
          + `${prefix.values.join(", ")}${example}`,
      );
    }
    if (!stripped(text.slice(place + prefix.separator.length))) {
      throw new Refusal(`${name} has nothing after ${quoted(value + prefix.separator)}${example}`);
    }
  }

  #requireAttention(attention) {
    if (attention === "heads") {
      if (!this.#graphs.attendsByHeads) {
        throw new Refusal(
          'Translate: attention must be false or true, not "heads"; this bundle was exported '
            + "without --attention-heads",
        );
      }
    } else if (requireFlag("Translate: attention", attention) && !this.#graphs.attends) {
      throw new Refusal("Translate: attention must be false; this model does not attend");
    }
  }

  /** Return the automaton of allowed answers, null if any text is allowed. */
  #automaton({ regex, choices }) {
    const own = regex === null && choices === null ? this.manifest.decoding.regex : regex;
    const automaton = this.#constraints.automaton("Translate", own, choices);
    constraintOf("Translate", automaton, [true], this.#maxLengths(1));
    return automaton;
  }

  /** Return the steps of a search. */
  async #steps(rows, found, automaton, numBeams, attention) {
    const { source, lengths } = this.#arrays(rows);
    const state = await this.#graphs.encode(source, lengths);
    const start = rows.map(() => [this.manifest.decoding.start_id]);
    const withLogits = (tokenIds, beamIndex, before) =>
      this.#graphs.stepWithLogits(tokenIds, beamIndex, before, attention);
    const starts = start.map((tokens) => [tokens]);
    if (automaton === null) {
      const step = (tokenIds, beamIndex, k, before) =>
        this.#graphs.step(tokenIds, beamIndex, k, before, attention);
      return steps(step, state, starts, found);
    }
    const first = rows.map(() => true);
    const constraint = constraintOf("Translate", automaton, first, this.#maxLengths(rows.length));
    const step = numBeams === 1
      ? new MostProbableAllowed(withLogits, /** @type {any} */ (constraint), found.prompts)
      : new ChoosingStep({ step: withLogits, constraint });
    return steps(step.run, step.initial(state, start, found.prompts), starts, found);
  }

  #arrays(rows) {
    if (this.#readsFrames) {
      const { frames, lengths } = padded(FRAMES, rows);
      return { source: frames, lengths };
    }
    const { padded: source, lengths } = pad(rows.map((row) => row.tokenIds));
    return { source, lengths };
  }

  #answer(hypotheses, row, attention) {
    if (!hypotheses.length) return null;
    const [best, ...others] = hypotheses.map((hypothesis) =>
      this.#translation(hypothesis, row, attention));
    return others.length ? { ...best, alternatives: others } : best;
  }

  /** @returns {Translation} */
  #translation({ tokenIds, score, attention: weights }, row, attention) {
    const text = this.#detokenizer.text(tokenIds);
    if (!attention) return { text, score };
    return {
      text,
      score,
      attention: attention === "heads"
        ? byHead(weights, row.length)
        : weights.map(({ data }) => Array.from(data.slice(0, row.length))),
      source_tokens: row.tokens ?? [],
      target_tokens: tokenIds.map((index) => this.#target.tokenOf(index)),
    };
  }
}

/** Return the weights (L, N, T, S) of each token's (L, N, S), without padding. */
function byHead(weights, length) {
  const [layers = 0, heads = 0, longest = 0] = weights[0]?.dims ?? [];
  return Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (__, head) =>
    weights.map(({ data }) => {
      const start = (layer * heads + head) * longest;
      return Array.from(data.slice(start, start + length));
    })));
}

/** Refuse a decoder whose vocabulary does not match a tokenizer's. */
export function requireVocabulary(bundle, tokenizer, role, vocabSize) {
  const { manifest: { decoding }, where } = bundle;
  const characters = tokenizer instanceof CharacterTable;
  if (tokenizer.length > vocabSize || (characters && tokenizer.length < vocabSize)) {
    const [kind, unit] = characters ? ["table", "characters"] : ["tokenizer", "tokens"];
    throw new BundleError(
      `the ${role} ${kind} has ${tokenizer.length} ${unit}, the decoder ${vocabSize}`, { where },
    );
  }
  for (const [name, most] of Object.entries({
    start_id: vocabSize - 1, end_id: vocabSize - 1, num_beams: vocabSize,
  })) {
    if (decoding[name] > most) {
      throw new BundleError(
        `decoding.${name} must be at most ${most}, by the decoder's vocabulary; received `
          + `${decoding[name]}`,
        { where, subject: MANIFEST },
      );
    }
  }
}
