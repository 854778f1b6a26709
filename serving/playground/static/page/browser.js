// Answers in this browser: a worker runs the bundle.

import { headers } from "./server.js";

/** @typedef {import("./types.js").Manifest} Manifest */
/** @typedef {import("./types.js").Question} Question */
/** @typedef {(done: number, all: number) => void} Report takes bytes. */
/**
 * A request that the worker has.
 *
 * @typedef {object} Waiting
 * @property {(value: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {(message: any) => void} heard is given what comes before the end.
 */

const UNUSED = "generate"; // the role of a graph that other hosts run
const RUNTIME = new URL("./modules/onnxruntime-web/ort-wasm-simd-threaded.wasm", import.meta.url).href;

/** Return the names of the files of a bundle that are loaded. @param {Manifest} manifest */
function filesOf({ graphs, tokenizers }) {
  const needed = Object.entries(graphs).filter(([role]) => role !== UNUSED)
    .flatMap(([, graph]) => [graph.file, ...graph.weights]);
  return [...new Set([...needed, ...Object.values(tokenizers)])];
}

/**
 * Return how many bytes are loaded for a file: fewer than it has where the server compresses it.
 *
 * @param {string} address
 * @param {number} size of the file, for servers that do not tell.
 */
async function loadedFor(address, size) {
  const response = await fetch(address, { method: "HEAD", headers: headers() }).catch(() => null);
  return (response?.ok && Number(response.headers.get("content-length"))) || size;
}

/** Return how many bytes some bundles load; what they share is loaded once. @param {Browser[]} browsers */
export async function bytesOf(browsers) {
  const loads = await Promise.all(browsers.map((browser) => browser.loads()));
  return [...new Map(loads.flatMap((found) => [...found])).values()].reduce((sum, size) => sum + size, 0);
}

/** A bundle in a worker of this browser. */
export class Browser {
  #files;
  #sizes;
  /** @type {Promise<Map<string, number>> | null} */
  #loads = null;
  /** @type {Worker | null} */
  #worker = null;
  /** @type {Promise<void> | null} */
  #opened = null;
  /** @type {Map<number, Waiting>} */
  #waiting = new Map();
  #count = 0;

  /**
   * @param {string} files the address below which the bundle's files lie.
   * @param {Manifest} manifest
   * @param {number} runtime bytes of onnxruntime-web.
   */
  constructor(files, manifest, runtime) {
    this.#files = new URL(files, document.baseURI).href;
    this.#sizes = new Map([[RUNTIME, runtime]]);
    for (const name of filesOf(manifest)) this.#sizes.set(this.#files + name, manifest.files[name].bytes);
  }

  /**
   * Load the bundle, once; one that was refused stays so until `close`.
   *
   * @param {Report} report
   */
  async open(report) {
    this.#opened ??= this.#load(report);
    await this.#opened;
    return this;
  }

  /** End the worker, which frees its memory. */
  close() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#opened = null;
    for (const { reject } of this.#waiting.values()) reject(new Error("the model was let go"));
    this.#waiting.clear();
  }

  /** @param {Question} question */
  answer(question) {
    return this.#request({ kind: "answer", question });
  }

  /**
   * @param {Question} question
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<string>}
   */
  async *stream(question, signal) {
    /** @type {string[]} */
    const pieces = [];
    let wake = () => {};
    let ended = false;
    const heard = ({ text }) => {
      pieces.push(text);
      wake();
    };
    const end = this.#request({ kind: "stream", question }, heard, signal).finally(() => {
      ended = true;
      wake();
    });
    end.catch(() => {}); // it is thrown below
    while (!ended || pieces.length) {
      if (pieces.length) yield /** @type {string} */ (pieces.shift());
      else await new Promise((resolve) => { wake = () => resolve(undefined); });
    }
    await end;
  }

  /** Push frames, or rows, to the stream of frames. @param {any[]} rows */
  push(rows) {
    return this.#request({ kind: "push", rows });
  }

  /** Let the next frame begin a stream. */
  async beginStream() {
    if (this.#opened) await this.#request({ kind: "begin" });
  }

  async #load(report) {
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = ({ message }) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(message ?? "the worker can not be loaded"));
      this.#waiting.clear();
    };
    const [loads, all] = [await this.loads(), await bytesOf([this])];
    let done = 0;
    report(done, all);
    const open = { kind: "open", files: this.#files, runtime: RUNTIME, headers: headers() };
    await this.#request(open, ({ loaded }) => {
      done += loads.get(loaded) ?? 0;
      report(done, all);
    });
  }

  /** Return the bytes that are loaded for each file, by address. */
  loads() {
    const measure = async ([address, size]) => /** @type {const} */ ([address, await loadedFor(address, size)]);
    this.#loads ??= Promise.all([...this.#sizes].map(measure)).then((found) => new Map(found));
    return this.#loads;
  }

  /** Return what the worker answers in the end. */
  #request(content, heard = (_) => {}, signal = /** @type {AbortSignal | null} */ (null)) {
    this.#count += 1;
    const id = this.#count;
    signal?.addEventListener("abort", () => this.#worker?.postMessage({ id, kind: "stop" }));
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, heard });
      this.#worker?.postMessage({ id, ...content });
    });
  }

  #hear({ id, kind, value, message }) {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    if (kind === "heard") waiting.heard(value);
    else {
      this.#waiting.delete(id);
      if (kind === "end") waiting.resolve(value);
      else waiting.reject(new Error(message));
    }
  }
}
