// Generates the continuation of a text by a language model.

import { BundleError, Refusal } from "../refusal.js";
import { int64, pad } from "../arrays.js";
import { isDefault, requireCount, withDefaults } from "../checks.js";
import { Beams } from "../decoding/beam.js";
import { ChoosingStep, mostProbable } from "../decoding/choosing.js";
import { MostProbableAllowed } from "../decoding/constraint.js";
import { Greedy } from "../decoding/greedy.js";
import { steps } from "../decoding/loop.js";
import { uniform } from "../decoding/random.js";
import { Prompts } from "../decoding/results.js";
import { byDefault, flag, optional } from "../manifest/fields.js";
import { MANIFEST, parseSettings } from "../manifest/format.js";
import { GenerateGraph, LanguageModel } from "../session.js";
import { CharacterTable } from "../text/tables.js";
import { promptOf, TURNS } from "../text/turns.js";
import { AttentionGraph } from "./attention.js";
import { batches, inGroups, TOKEN_BUDGET } from "./batching.js";
import { constraintOf, Constraints, requireConstraint } from "./constraints.js";
import { namedInputs, oneOrAll, openTokenizer, requireLength, requireText } from "./inputs.js";
import { complete, DEFAULTS, processorsOf, requireNoOtherRule } from "./options.js";
import { cut, Detokenizer, Growing, pieces } from "./pieces.js";
import { Pipeline } from "./pipeline.js";
import { requireVocabulary } from "./translate.js";

const SETTINGS = {
  start: byDefault(flag, false),
  prefix: byDefault(flag, false),
  turns: byDefault(optional(TURNS), null),
};

/** @type {import("./model.js").Packing} */
const WHOLE_TEXTS = {
  arrays: (rows) => ({
    token_ids: pad(rows.map((row) => row.tokenIds)).padded,
    prefix_lengths: int64(rows.map((row) => row.promptLength), [rows.length]),
  }),
  required: ["token_ids"],
  optional: ["prefix_lengths"],
};

/** @typedef {import("./options.js").Options} Options */
/**
 * @typedef {object} Generation
 * @property {string} text what follows the prompt, or with `echo` the prompt too.
 * @property {number} score the total log-probability of the generated tokens, in the distribution
 *   from which they were chosen, divided by the length penalty.
 * @property {"end" | "stop" | "length"} finish why it ends.
 * @property {Generation[]} [alternatives] with n_best > 1 the other answers.
 */
/**
 * A prompt, encoded for generation.
 *
 * @typedef {object} Row
 * @property {string} text that is continued.
 * @property {number[]} tokenIds
 * @property {number} room how many tokens may follow.
 * @property {boolean} isFirst whether the prompt has no text.
 * @property {number[]} samples indices of the samples to draw; one index without sampling.
 */

/**
 * The continuation of a text.
 *
 *     prompt -> tokens -> decoder steps, each token chosen or drawn -> tokens -> text
 *
 * Prompts of a batch are read together up to the length of the shortest; then the longer ones read
 * their other tokens while the others generate.
 */
export class Generate extends Pipeline {
  #graphs;
  #whole;
  #tokenizer;
  #settings;
  #constraints;
  #attention;

  constructor(bundle, graphs, whole, tokenizer, settings, attention) {
    super(bundle, [graphs, attention, ...(whole ? [whole] : [])]);
    this.#attention = attention;
    this.#graphs = graphs;
    this.#whole = whole;
    this.#tokenizer = tokenizer;
    this.#settings = settings;
    this.#constraints = new Constraints(
      tokenizer, bundle.manifest.decoding.end_id, graphs.vocabSize,
    );
    requireConstraint(bundle, this.#constraints);
  }

  static async open(bundle, runtime) {
    const { settings, problems } = parseSettings(bundle.manifest, SETTINGS);
    if (problems.length) {
      throw new BundleError(problems, { where: bundle.where, subject: MANIFEST });
    }
    const tokenizer = await openTokenizer(bundle, "text");
    const graphs = await LanguageModel.open(bundle, runtime);
    requireVocabulary(bundle, tokenizer, "text", graphs.vocabSize);
    const whole = runtime.generatesInGraph ? await GenerateGraph.open(bundle, runtime) : null;
    const packing = { ...WHOLE_TEXTS, labels: ({ tokens }) => ({ token_ids: tokens(tokenizer) }) };
    const attention = new AttentionGraph(bundle, runtime, packing);
    return new Generate(bundle, graphs, whole, tokenizer, settings, attention);
  }

  /**
   * Answer a prompt, or each prompt of a list.
   *
   * @param {any} prompts a string, which may be empty, or with `settings.turns` a conversation,
   *   {messages: [{role, content}, …]}; or a list of such.
   * @param {Partial<typeof DEFAULTS & {token_budget: number}>} given
   * @returns {Promise<Generation | Generation[]>}
   */
  async answer(prompts, given) {
    const { token_budget: budget, ...others } =
      withDefaults("Generate", given, { ...DEFAULTS, token_budget: TOKEN_BUDGET });
    const options = this.#complete(others);
    const inGraph = this.#whole && isDefault(others, DEFAULTS, ["echo"]);
    requireCount("Generate: token_budget", budget);
    const shares = namedInputs(prompts, "Generate: prompt")
      .map(({ value, name }) => sharesOf(this.#row(value, name, options), options, budget));
    const rows = shares.flat();
    const found = Array(rows.length);
    for (const places of batchesOf(rows, options, budget, this.#settings.prefix)) {
      const own = places.map((place) => rows[place]);
      const answers = inGraph
        ? await this.#generateInGraph(own, options)
        : await this.#generate(own, options);
      places.forEach((place, index) => { found[place] = answers[index]; });
    }
    const answers = inGroups(found, shares).map((own) => {
      const [best = null, ...rest] = own.flat();
      return rest.length ? { ...best, alternatives: rest } : best;
    });
    return oneOrAll(prompts, answers, "Generate: prompt");
  }

  /** Yield the pieces of the answer with one beam, each as soon as it is final. */
  async *stream(prompt, given = {}) {
    const options = this.#complete({
      ...withDefaults("Generate", given, DEFAULTS),
      num_beams: /** @type {any} */ (given).num_beams ?? 1,
    });
    for (const name of ["num_beams", "n_best"]) {
      if (options[name] > 1) {
        throw new Refusal(`Generate: a stream needs ${name}=1; received ${options[name]}`);
      }
    }
    if (options.attention !== false) {
      throw new Refusal("Generate: a stream gives no attention; leave the option out");
    }
    const row = this.#row(prompt, "Generate: prompt", options);
    if (options.echo && row.text) yield row.text;
    const { found, common } = this.#found([row], options);
    const detokenizer = new Detokenizer(this.#tokenizer, row.tokenIds);
    const followed = await this.#steps([row], options, found, common);
    yield* pieces(/** @type {any} */ (followed), detokenizer, "Generate: prompt", options.stop);
  }

  #complete(given) {
    const { decoding } = this.manifest;
    const options = complete(given, decoding, this.#graphs.vocabSize, this.#tokenizer);
    this.#attention.require("Generate", options.attention, false);
    if (this.#automaton(options) !== null) requireNoOtherRule(options);
    return options;
  }

  /** Return the automaton of the continuation, null if any text is allowed. */
  #automaton({ regex, choices }) {
    const own = regex === null && choices === null ? this.manifest.decoding.regex : regex;
    return this.#constraints.automaton("Generate", own, choices);
  }

  /** @returns {Row} */
  #row(prompt, name, options) {
    const { turns } = this.#settings;
    const text = turns === null ? prompt : promptOf(turns, prompt, name);
    const least = Math.max(options.max_new_tokens ?? 1, options.min_new_tokens);
    const tokenIds = this.#encode(text, name, least, options.truncate);
    const room = options.max_new_tokens ?? this.manifest.limits.target_length - tokenIds.length;
    const last = Math.max(0, ...options.forced.map(({ position }) => position));
    if (last >= room) {
      throw new Refusal(
        `${name} leaves room for ${room} tokens; forced_tokens has one at ${last}`,
      );
    }
    const automaton = this.#automaton(options);
    let isFirst = false;
    if (automaton !== null) {
      isFirst = !new Detokenizer(this.#tokenizer).decode(tokenIds);
      constraintOf(name, automaton, [isFirst], [room]); // refuses texts that do not fit
    }
    return { text, tokenIds, room, isFirst, samples: [0] };
  }

  #encode(text, name, maxNewTokens, truncate) {
    requireText(text, name, this.#tokenizer instanceof CharacterTable);
    const { limits, decoding } = this.manifest;
    if (!truncate) requireLength(text, limits.target_length, name);
    const tokenIds = this.#tokenIds(text);
    const room = Math.min(limits.target_length - maxNewTokens, limits.source_length);
    if (room < 1) {
      throw new Refusal(
        `Generate: max_new_tokens and min_new_tokens must be under ${limits.target_length}, the `
          + `limit of a prompt and what follows; received ${maxNewTokens}`,
      );
    }
    if (tokenIds.length <= room) return tokenIds;
    if (truncate) {
      if (room === 1 || tokenIds[0] !== decoding.start_id) return tokenIds.slice(-room);
      return [tokenIds[0], ...tokenIds.slice(1 - room)];
    }
    throw new Refusal(
      `${name} has ${tokenIds.length} tokens; with ${maxNewTokens} new ones the limit is ${room}`,
      {
        advice: "Nothing was truncated: shorten it, or ask for fewer, or for truncate=true.",
      },
    );
  }

  /** Return the ids of a text to continue: without the <eos> of its template. */
  #tokenIds(text) {
    const { start_id: startId, end_id: endId } = this.manifest.decoding;
    let tokenIds;
    if (this.#tokenizer instanceof CharacterTable) tokenIds = this.#tokenizer.encode(text);
    else {
      const isTable = "entries" in this.#tokenizer;
      const encoding = this.#tokenizer.analyze(isTable ? text : [text]);
      const endsByTemplate = encoding.tokenIds.at(-1) === endId && encoding.offsets.at(-1) === null;
      tokenIds = endsByTemplate ? encoding.tokenIds.slice(0, -1) : encoding.tokenIds;
    }
    const lacksStart = this.#settings.start && tokenIds[0] !== startId;
    return !tokenIds.length || lacksStart ? [startId, ...tokenIds] : tokenIds;
  }

  /** Return the list of `Generation`s of each row. */
  async #generate(rows, options) {
    const { found, common } = this.#found(rows, options);
    for await (const _ of await this.#steps(rows, options, found, common));
    const hypotheses = found.finished();
    const byRow = inGroups(hypotheses, rows.map((row) => row.samples));
    return Promise.all(rows.map((row, place) =>
      this.#answers(byRow[place].flat(), row, row.tokenIds.length - common, options)));
  }

  /** Return the list of the one `Generation` of each row, by the graph of the whole search. */
  async #generateInGraph(rows, options) {
    const { padded, lengths } = pad(rows.map((row) => row.tokenIds));
    const found = await this.#whole.search(padded, lengths);
    return Promise.all(rows.map((row, place) =>
      this.#answers(found[place], row, row.tokenIds.length, options)));
  }

  /** Return the search, and how many tokens of the prompts are read in the first step. */
  #found(rows, options) {
    const common = Math.min(...rows.map((row) => row.tokenIds.length));
    const sources = rows.flatMap((row) => row.samples.map(() => row));
    const prompts = new Prompts(sources.map((row) => row.tokenIds.slice(common)));
    const search = {
      endId: this.manifest.decoding.end_id,
      maxLengths: sources.map((row, place) => prompts.lengths[place] + row.room),
      prompts,
      alpha: options.length_penalty,
    };
    if (options.num_beams > 1) {
      const { num_beams: numBeams, n_best: nBest, early_stopping: earlyStopping } = options;
      return { found: new Beams({ ...search, numBeams, nBest, earlyStopping }), common };
    }
    const stops = options.stop.length ? this.#stops(sources, options.stop) : null;
    return { found: new Greedy({ ...search, stops }), common };
  }

  /** Return a function that tells whether a source's generated text contains a stop string. */
  #stops(rows, stop) {
    const texts = rows.map((row) => new Growing(new Detokenizer(this.#tokenizer, row.tokenIds)));
    return (source, tokenIds) => cut(texts[source].read(tokenIds), stop).stopped;
  }

  async #steps(rows, options, found, common) {
    const sources = rows.flatMap((row, place) => row.samples.map(() => ({ row, place })));
    let start = rows.map((row) => row.tokenIds.slice(0, common));
    let state = this.#graphs.begin(rows.length);
    const processors = processorsOf(options, this.manifest.decoding.end_id);
    const constraint = constraintOf(
      "Generate", this.#automaton(options), sources.map(({ row }) => row.isFirst),
      sources.map(({ row }) => row.room),
    );
    const withLogits = (...given) => this.#graphs.stepWithLogits(...given);
    /** @type {MostProbableAllowed | ChoosingStep | null} */
    let chosen = null;
    if (constraint && options.num_beams === 1 && !processors.length && !options.sample) {
      chosen = new MostProbableAllowed(withLogits, constraint, found.prompts);
    } else if (processors.length || options.sample || constraint) {
      const choose = options.sample ? sampleOf(rows, options) : mostProbable;
      chosen = new ChoosingStep({ step: withLogits, processors, choose, constraint });
    }
    const prefixes = sources.map(({ row }) => row.tokenIds.slice(0, common));
    if (sources.length > rows.length && !this.#settings.prefix && common > 1) {
      state = await this.#graphs.read(start.map((tokens) => tokens.slice(0, -1)), state);
      start = start.map((tokens) => tokens.slice(-1)); // all samples continue from the same state
    }
    const tokens = sources.map(({ place }) => [start[place]]);
    const beamIndex = sources.map(({ place }) => [place]);
    if (chosen) {
      const initial = chosen.initial(state, prefixes, found.prompts);
      return steps(chosen.run, initial, tokens, found, beamIndex);
    }
    const step = (...given) => this.#graphs.step(...given);
    return steps(step, state, tokens, found, beamIndex);
  }

  /** Return the answers of hypotheses, which begin with `forced` tokens of the prompt. */
  #answers(hypotheses, row, forced, options) {
    const detokenizer = new Detokenizer(this.#tokenizer, row.tokenIds);
    const answers = hypotheses.map(({ tokenIds, score, ended }) => {
      const { text, stopped } = cut(detokenizer.text(tokenIds.slice(forced)), options.stop);
      const finish = stopped ? "stop" : ended ? "end" : "length";
      return { text: (options.echo ? row.text : "") + text, score, finish };
    });
    const whole = hypotheses.map(({ tokenIds }) => fullText(row.tokenIds, tokenIds.slice(forced)));
    return this.#attention.attach(answers, whole, options.attention, TOKEN_BUDGET);
  }
}

/** Return a prompt and its continuation, as a row of the graph of attention. */
function fullText(promptIds, generatedIds) {
  const tokenIds = [...promptIds, ...generatedIds];
  const tokens = (tokenizer) => tokenIds.map((index) => tokenizer.tokenOf(index));
  return { tokenIds, promptLength: promptIds.length, length: tokenIds.length, tokens };
}

/** Return a prompt's rows, each with as many of its samples as fit in one batch. */
function sharesOf(row, options, budget) {
  if (!options.sample) return [row];
  const most = Math.max(Math.floor(budget / (row.tokenIds.length + row.room)), 1);
  const shares = [];
  for (let first = 0; first < options.n_best; first += most) {
    const count = Math.min(most, options.n_best - first);
    shares.push({ ...row, samples: Array.from({ length: count }, (_, place) => first + place) });
  }
  return shares;
}

/**
 * Yield the indices of the rows of each batch.
 *
 * The prompts of a batch differ in length by fewer tokens than are generated; for a model that reads
 * a prefix, they have one length.
 */
function* batchesOf(rows, options, budget, isPrefix) {
  const lengths = rows.map((row) =>
    options.num_beams * row.samples.length * (row.tokenIds.length + row.room));
  for (const places of batches(lengths, budget)) {
    let batch = [];
    places.sort((one, other) => rows[one].tokenIds.length - rows[other].tokenIds.length);
    for (const place of places) {
      const first = rows[batch[0] ?? place];
      const most = isPrefix ? 1 : first.room;
      if (rows[place].tokenIds.length - first.tokenIds.length >= most) {
        yield batch;
        batch = [];
      }
      batch.push(place);
    }
    yield batch;
  }
}

/** Return the function that draws tokens, each sample by its own random numbers. */
function sampleOf(rows, options) {
  const drawn = rows.flatMap((row) => row.samples.map((number) => {
    const seed = options.seed === null // else it depends on the prompt, not on other prompts
      ? Array.from(crypto.getRandomValues(new Uint32Array(4)))
      : [options.seed, number, row.tokenIds.length, ...row.tokenIds];
    return uniform(seed, row.room);
  }));
  return (logProbs, _, prefix) => {
    const own = drawn[prefix.source];
    const number = own[Math.min(Math.max(prefix.generated, 0), own.length - 1)];
    const total = logProbs.reduce((sum, value) => sum + Math.exp(value), 0);
    let sum = 0;
    const index = logProbs.findIndex((value) => {
      sum += Math.exp(value);
      return sum > number * total;
    });
    return [Math.max(index, 0)];
  };
}
