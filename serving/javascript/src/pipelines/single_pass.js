// The base class of pipelines whose model answers in a single pass.

import { AttentionGraph } from "./attention.js";
import { TOKEN_BUDGET } from "./batching.js";
import { oneOrAll } from "./inputs.js";
import { Model } from "./model.js";
import { Pipeline } from "./pipeline.js";

/** Options of every such pipeline, by default. */
export const DEFAULTS = {
  truncate: false,
  token_budget: TOKEN_BUDGET,
  attention: /** @type {boolean | string} */ (false),
};

export class SinglePass extends Pipeline {
  /**
   * @param {import("../manifest/files.js").Bundle} bundle
   * @param {Model} model
   * @param {AttentionGraph} attention of the model.
   * @param {any} reader of inputs.
   * @param {any} settings of the manifest.
   */
  constructor(bundle, model, attention, reader, settings) {
    super(bundle, [model, attention]);
    this.model = model;
    this.attention = attention;
    this.reader = reader;
    this.settings = settings;
  }

  /**
   * Open the model, and return the pipeline of this class.
   *
   * @param {import("../manifest/files.js").Bundle} bundle
   * @param {import("../opening.js").Runtime} runtime
   * @param {string[]} outputs names of the model's outputs to compute.
   * @param {any} reader of inputs.
   * @param {any} settings of the manifest.
   * @param {import("./model.js").Packing} [packing] of what is read.
   */
  static async opened(bundle, runtime, outputs, reader, settings, packing = reader.packing) {
    const model = await Model.open(bundle, runtime, outputs, packing);
    const attention = new AttentionGraph(bundle, runtime, packing);
    return new this(bundle, model, attention, reader, settings);
  }

  /**
   * Return the answers, with attention if requested; for an input that is no list, its answer.
   *
   * @param {any} inputs
   * @param {object[]} answers
   * @param {any[]} rows of the packing, a row for each answer.
   * @param {typeof DEFAULTS} options
   * @param {string} name of an input, as of `encoded`.
   */
  async finished(inputs, answers, rows, options, name) {
    const { attention, token_budget: budget } = options;
    return oneOrAll(inputs, await this.attention.attach(answers, rows, attention, budget), name);
  }
}
