// The base class of pipelines.

import { released } from "../opening.js";

/**
 * A pipeline as `load` returns it: a function of an input, or a list of inputs, and options.
 *
 * @typedef {object} Methods
 * @property {import("../manifest/format.js").Manifest} manifest
 * @property {(input: any, options?: object) => AsyncGenerator<string>} [stream] the pieces of a
 *   generated text, each as soon as it is final.
 * @property {(texts: any[], others: any[], options?: object) => Promise<number[][]>} [similarity]
 *   the cosines of vectors.
 * @property {() => Promise<void>} release frees onnxruntime's memory; what is asked then is refused.
 */
/** @typedef {((inputs: any, options?: object) => Promise<any>) & Methods} Callable */

export class Pipeline {
  #graphs;
  #where;

  /**
   * @param {import("../manifest/files.js").Bundle} bundle
   * @param {{release: () => Promise<void>}[]} graphs what it runs.
   */
  constructor(bundle, graphs) {
    this.manifest = bundle.manifest;
    this.#graphs = graphs;
    this.#where = bundle.where;
  }

  /**
   * Answer an input, or each one of a list.
   *
   * @param {any} _inputs
   * @param {any} _options
   * @returns {Promise<any>}
   */
  async answer(_inputs, _options) {
    throw new Error("a subclass answers");
  }

  /** Return the function that answers, with the methods of this pipeline. @returns {Callable} */
  callable() {
    const own = /** @type {any} */ (this);
    let isReleased = false;
    const requireOpen = () => {
      if (isReleased) throw released(this.#where);
    };
    const methods = {
      manifest: this.manifest,
      release: async () => {
        isReleased = true;
        for (const graph of this.#graphs) await graph.release();
      },
    };
    if ("stream" in this) {
      methods.stream = async function* stream(...given) {
        requireOpen();
        yield* own.stream(...given);
      };
    }
    if ("similarity" in this) {
      methods.similarity = async (...given) => {
        requireOpen();
        return own.similarity(...given);
      };
    }
    const answer = async (inputs, options = {}) => {
      requireOpen();
      return this.answer(inputs, options);
    };
    return /** @type {Callable} */ (Object.assign(answer, methods));
  }
}
