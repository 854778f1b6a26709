// Opens a bundle's graphs in onnxruntime, and checks them against the manifest.

import { BundleError, Refusal } from "./refusal.js";
import { requireCount, requireFlag, shown, withDefaults } from "./checks.js";
import { externalFiles } from "./external_data.js";
import { overflows } from "./int8.js";
import { MANIFEST } from "./manifest/format.js";
import { Queue } from "./queue.js";

const QUIET = 4; // onnxruntime's log severity: fatal errors only; the others arrive as exceptions
const MOST_THREADS = 1024;
const FLOAT32 = "float32";
const DEFAULTS = {
  precision: FLOAT32,
  threads: /** @type {number | undefined} */ (undefined),
  providers: /** @type {(string | object)[] | undefined} */ (undefined),
  generate_in_graph: false,
  tokenizers: /** @type {{Tokenizer: any} | undefined} */ (undefined),
};
const NOT_RUN = "If ids are out of its bounds, the tokenizer is another model's: export the bundle "
  + "again; if memory is short, ask for a smaller token_budget.";

/** @typedef {import("./arrays.js").NumberArray} NumberArray */
/**
 * The module onnxruntime-web or onnxruntime-node.
 *
 * @typedef {{InferenceSession: any, Tensor: any}} Ort
 */
/**
 * How graphs are run.
 *
 * @typedef {object} RuntimeOptions
 * @property {string} [precision] "float32", or one of the manifest's precisions.
 * @property {number} [threads] how many threads one operation may use, in Node.
 * @property {(string | object)[]} [providers] onnxruntime's `executionProviders`.
 * @property {boolean} [generate_in_graph] whether answers without options come from the graph that
 *   generates (`seqkeras export --generate-in-graph`), in one call instead of one for each token.
 * @property {{Tokenizer: any}} [tokenizers] the module `@huggingface/tokenizers`, where it can not be
 *   imported by that name, as in a worker without a bundler.
 */

export class Runtime {
  /**
   * @param {Ort} ort
   * @param {RuntimeOptions} [options]
   */
  constructor(ort, options = {}) {
    const { precision, threads, providers, tokenizers, generate_in_graph: inGraph } =
      withDefaults("load", options, DEFAULTS);
    if (!ort?.InferenceSession || !ort?.Tensor) {
      throw new Refusal(
        "load: ort must be the module onnxruntime-web or onnxruntime-node; "
          + `received ${shown(ort)}`,
      );
    }
    if (typeof precision !== "string") {
      throw new Refusal(`load: precision must be a name; received ${shown(precision)}`);
    }
    if (threads !== undefined) requireCount("load: threads", threads, MOST_THREADS);
    requireFlag("load: generate_in_graph", inGraph);
    if (inGraph && precision !== FLOAT32) {
      throw new Refusal(
        `load: generate_in_graph needs precision ${FLOAT32}; received ${shown(precision)}`,
      );
    }
    if (providers !== undefined && !Array.isArray(providers)) {
      throw new Refusal(`load: providers must be a list of names; received ${shown(providers)}`);
    }
    this.ort = ort;
    this.precision = precision;
    this.threads = threads;
    this.providers = providers;
    this.tokenizers = tokenizers;
    this.generatesInGraph = inGraph;
  }

  /**
   * Return the graphs in this precision, by role.
   *
   * @param {import("./manifest/format.js").Manifest} manifest
   */
  graphsOf(manifest) {
    if (this.precision === FLOAT32) return manifest.graphs;
    if (!Object.hasOwn(manifest.precisions, this.precision)) {
      const known = [FLOAT32, ...Object.keys(manifest.precisions)].join(", ");
      throw new Refusal(
        `load: precision must be one of the bundle's, ${known}; received ${shown(this.precision)}`,
      );
    }
    return { ...manifest.graphs, ...manifest.precisions[this.precision].graphs };
  }

  /** Return the options of a session; `weights` are [name, bytes] of the files next to the graph. */
  async sessionOptions(weights) {
    return {
      logSeverityLevel: QUIET,
      ...(await overflows(this.ort) ? { extra: { session: { x64quantprecision: "1" } } } : {}),
      ...(this.threads === undefined ? {} : { intraOpNumThreads: this.threads }),
      ...(this.providers === undefined ? {} : { executionProviders: this.providers }),
      ...(weights.length ? { externalData: weights.map(([path, data]) => ({ path, data })) } : {}),
    };
  }
}

/**
 * Return the session of a graph that takes `inputs` and gives at least `outputs`.
 *
 * @param {import("./manifest/files.js").Bundle} bundle
 * @param {Runtime} runtime
 * @param {string} role
 * @param {Iterable<string>} inputs
 * @param {Iterable<string>} outputs
 * @param {Iterable<string>} [optional] inputs that it may also take.
 * @returns {Promise<Session>}
 * @throws {BundleError} if the graph is missing, can not be opened, or is not what the manifest says.
 */
export async function openSession(bundle, runtime, role, inputs, outputs, optional = []) {
  const { where } = bundle;
  const graph = runtime.graphsOf(bundle.manifest)[role];
  if (!graph) throw new BundleError(`no ${role} graph is named`, { where, subject: MANIFEST });
  const [content, ...weights] = await bundle.files([graph.file, ...graph.weights]);
  const own = graph.file.includes("/") ? graph.file.slice(0, graph.file.lastIndexOf("/") + 1) : "";
  requireListedWeights(where, graph, content, own);
  const named = graph.weights.map((name, place) => [
    name.startsWith(own) ? name.slice(own.length) : name, weights[place],
  ]);
  let session;
  try {
    const options = await runtime.sessionOptions(named);
    session = await runtime.ort.InferenceSession.create(content, options);
  } catch (cause) {
    const [reason] = messageOf(cause).split("\n");
    throw new BundleError(`onnxruntime can not open it: ${reason}`, { where, subject: graph.file, advice: "", cause });
  }
  const takes = new Set(graph.inputs.map((spec) => spec.name));
  const gives = new Set(graph.outputs.map((spec) => spec.name));
  const known = new Set([...inputs, ...optional]);
  const lacks = [
    ...[...inputs].filter((name) => !takes.has(name)),
    ...[...outputs].filter((name) => !gives.has(name)),
  ];
  const problems = [
    ...differences("input", graph.inputs, session.inputMetadata),
    ...differences("output", graph.outputs, session.outputMetadata),
    ...lacks.sort().map((name) => `it lacks ${name}`),
    ...[...takes].filter((name) => !known.has(name)).sort()
      .map((name) => `it has an input ${name}, which the pipeline does not feed`),
  ];
  if (problems.length) {
    const subject = `${graph.file} is not the ${role} graph expected`;
    throw new BundleError(problems, { where, subject });
  }
  return new Session(session, runtime.ort, where, graph);
}

/** Return the error of a bundle that is asked after it was released. @param {string} [where] */
export const released = (where) => new Refusal("it was released: load it again to ask it", { where });

/** A session that reports a failed run in one line, and runs one call at a time. */
export class Session {
  #session;
  #ort;
  #where;
  #queue = new Queue();
  #released = false;

  /** @param {import("./manifest/format.js").GraphFile} graph */
  constructor(session, ort, where, graph) {
    this.#session = session;
    this.#ort = ort;
    this.#where = where;
    this.graph = graph;
  }

  /**
   * Return the named outputs.
   *
   * @param {string[]} names
   * @param {Record<string, NumberArray>} arrays by name.
   * @returns {Promise<NumberArray[]>}
   */
  async run(names, arrays) {
    const feeds = Object.fromEntries(
      Object.entries(arrays).map(([name, { type, data, dims }]) => [
        name, new this.#ort.Tensor(type, data, dims),
      ]),
    );
    try {
      const found = await this.#queue.run(() => {
        if (this.#released) throw released(this.#where);
        return this.#session.run(feeds, names);
      });
      return names.map((name) => found[name]);
    } catch (cause) {
      if (cause instanceof Refusal) throw cause;
      const message = messageOf(cause).replace(/\s+/g, " ").trim();
      throw new BundleError(`onnxruntime can not run it: ${message}`, {
        where: this.#where, subject: this.graph.file, advice: NOT_RUN, cause,
      });
    }
  }

  /** Free onnxruntime's memory, once; runs that wait are refused. */
  async release() {
    if (this.#released) return;
    this.#released = true;
    await this.#queue.run(() => this.#session.release());
  }
}

const messageOf = (error) => String(error?.message ?? error);

/** Refuse a graph that reads weights from a file that the manifest does not list. */
function requireListedWeights(where, graph, content, own) {
  let names;
  try {
    names = externalFiles(content);
  } catch (cause) {
    const { message } = /** @type {Error} */ (cause);
    throw new BundleError(`${graph.file} is no ONNX graph: ${message}`, { where, cause });
  }
  const unlisted = names.filter((name) => !graph.weights.includes(own + name));
  if (unlisted.length) {
    throw new BundleError(
      `${graph.file} reads weights from ${unlisted.map((name) => `'${name}'`).join(", ")}, which `
        + `${MANIFEST} does not name among its weights`,
      { where },
    );
  }
}

/** Yield where the manifest's specs and the graph's own description disagree. */
function* differences(kind, specs, described) {
  const declared = new Map(specs.map((spec) => [spec.name, spec]));
  const actual = new Map(described.map((value) => [value.name, value]));
  for (const name of [...new Set([...declared.keys(), ...actual.keys()])].sort()) {
    const spec = declared.get(name);
    const value = actual.get(name);
    if (!value) yield `${kind} ${name} is in the manifest only`;
    else if (!spec) yield `${kind} ${name} is in the graph only`;
    else if (!agree(spec, value)) {
      yield `${kind} ${name} is ${describe(value.type, value.shape ?? [])}, not `
        + describe(spec.dtype, spec.shape);
    }
  }
}

function agree(spec, value) {
  const shape = value.shape ?? [];
  return spec.dtype === value.type && spec.shape.length === shape.length
    && spec.shape.every((size, axis) =>
      typeof size !== "number" || typeof shape[axis] !== "number" || size === shape[axis]);
}

const describe = (dtype, shape) => `${dtype} (${shape.join(", ")})`;
