// The base class of pipelines.

import { shown } from "../checks.js";
import { released } from "../opening.js";
import { Refusal } from "../refusal.js";

/**
 * A pipeline as `load` returns it: a function of an input, or a list of inputs, and options.
 *
 * @typedef {object} Methods
 * @property {import("../manifest/format.js").Manifest} manifest
 * @property {(inputs: any[], options?: object) => Promise<any[]>} answers_or_errors an answer for
 *   each input, or the Refusal that says why there is none: one that fails does not fail the others.
 * @property {(input: any, options?: object) => AsyncGenerator<string>} [stream] the pieces of a
 *   generated text, each as soon as it is final.
 * @property {(texts: any[], others: any[], options?: object) => Promise<number[][]>} [similarity]
 *   the cosines of vectors.
 * @property {(options?: import("../streams.js").OpenOptions) => Promise<any>} open a `Stream` of frames,
 *   which answers each frame as it comes, or several `Streams`.
 * @property {() => Promise<void>} release frees onnxruntime's memory; what is asked then is refused.
 */
/** @typedef {((inputs: any, options?: object) => Promise<any>) & Methods} Callable */

export class Pipeline {
  #graphs;
  #where;
  /** What its streams share, of a pipeline of frames. @type {import("../streams.js").Streaming | null} */
  streaming = null;

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
    const answer = async (inputs, options = {}) => {
      requireOpen();
      return this.answer(inputs, options);
    };
    const methods = {
      answers_or_errors: async (inputs, options = {}) => {
        if (!Array.isArray(inputs)) {
          throw new Refusal(`answers_or_errors: inputs must be an array; received ${shown(inputs)}`);
        }
        await answer([], options); // refuses wrong options
        return answersOrErrors(answer, inputs, options);
      },
      manifest: this.manifest,
      open: async (options = {}) => {
        requireOpen();
        if (this.streaming) return this.streaming.opened(options);
        throw new Refusal(
          `${this.manifest.pipeline}: a stream is of frames; this bundle reads none`,
        );
      },
      release: async () => {
        isReleased = true;
        for (const graph of this.#graphs) await graph.release();
        await this.streaming?.release();
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
    return /** @type {Callable} */ (Object.assign(answer, methods));
  }
}

/** Return an answer or a Refusal for each input: all together, and where that fails each half alone. */
async function answersOrErrors(answer, inputs, options) {
  if (!inputs.length) return [];
  try {
    return inputs.length === 1 ? [await answer(inputs[0], options)] : await answer(inputs, options);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (inputs.length === 1) return [error];
  }
  const middle = Math.floor(inputs.length / 2);
  return [
    ...(await answersOrErrors(answer, inputs.slice(0, middle), options)),
    ...(await answersOrErrors(answer, inputs.slice(middle), options)),
  ];
}
