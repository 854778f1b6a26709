// Streams of frames: a model answers each frame as it comes, from a state of constant size. This is
// `serving/streams.py` once more; the bytes of a state are those of Python.
//
//     const stream = await pipeline.open();
//     const answers = await stream.push(frames); // an answer for each frame
//
// The answers do not depend on how frames are cut into chunks. A model of int8 reads one frame of one
// stream at a time: its products have one scale for all that they read.

import { between, joined, reshaped, rowsOf, sizeOf, withRows } from "./arrays.js";
import { requireCount, shown, withDefaults } from "./checks.js";
import {
  anything, integer, list, number, object, optional, record, required, string,
} from "./manifest/fields.js";
import { sha256 } from "./manifest/files.js";
import { MANIFEST, parseJSON, stateOf } from "./manifest/format.js";
import { openSession } from "./opening.js";
import { Queue } from "./queue.js";
import { BundleError, NoFiniteNumber, Refusal } from "./refusal.js";
import { NOTHING } from "./rows.js";

const ROLE = "stream"; // of the graph, and of the entries of its state
const NEXT = "next_"; // before the name of an entry that leaves the graph
const MAGIC = "seqkeras stream 2\n"; // then 8 hexadecimal digits, the CRC-32 of what follows them
const CHECKSUM = 8;
const LINE_END = 10;
const DEFAULTS = { streams: /** @type {number | null} */ (null), state: /** @type {any} */ (null) };
/** Type of a tensor -> its numbers. @type {Record<string, any>} */
const KINDS = {
  float32: Float32Array,
  float64: Float64Array,
  int64: BigInt64Array,
  int32: Int32Array,
  bool: Uint8Array,
};
const HEAD = object({
  bundle: required(string),
  frames: required(integer),
  memory: required(object({
    numbers: required(optional(list(number))),
    time: required(optional(integer)),
    series: required(optional(string)),
  })),
  arrays: required(record(list(anything))),
});

/** @typedef {import("./arrays.js").NumberArray} NumberArray */
/** @typedef {import("./rows.js").Memory} Memory */
/** @typedef {Record<string, NumberArray>} Arrays by name. */
/**
 * Options of `pipeline.open`.
 *
 * @typedef {object} OpenOptions
 * @property {number} [streams] the number of streams that are stepped together, `Streams`; without
 *   it, one `Stream`.
 * @property {StreamState | Uint8Array | ArrayBuffer} [state] the state from which a stream goes on,
 *   or its bytes.
 */
/**
 * Frames of a stream.
 *
 * @typedef {object} Chunk
 * @property {Arrays} arrays input of the graph -> (frames, ...) float32.
 * @property {Memory} memory of rows after them.
 * @property {any[]} [about] for each frame what its answer tells beside the numbers.
 */
/** @typedef {(frames: any, name: string, memory: Memory) => Chunk} ReadChunk refuses by the name. */
/**
 * What a pipeline tells of its streams.
 *
 * @typedef {object} Reading
 * @property {string | null} output the name of the output that is read; null for the only one.
 * @property {string} input the name of the input that takes frames.
 * @property {string[]} [optional] the names of inputs that the graph may also take.
 * @property {ReadChunk} read
 * @property {(numbers: {data: any, dims: readonly number[]}, frame: number, about: any) => any} answer
 *   to a frame, from the graph's numbers, its index, and what is told of it.
 */

/** The state of a stream, for `open({ state })`, here, in another process or in Python. */
export class StreamState {
  /**
   * @param {string} bundle sha256 of the graph and its weights.
   * @param {number} frames the number of frames so far.
   * @param {Arrays} arrays of the state, without a batch.
   * @param {Memory} [memory] of rows.
   */
  constructor(bundle, frames, arrays, memory = NOTHING) {
    this.bundle = bundle;
    this.frames = frames;
    this.arrays = arrays;
    this.memory = memory;
  }

  /** Return the bytes, which `StreamState.ofBytes` and Python read. */
  bytes() {
    const { bundle, frames, memory } = this;
    const arrays = mapped(this.arrays, ({ type, dims }) => [type, dims]);
    const head = `${JSON.stringify({ bundle, frames, memory, arrays })}\n`;
    const content = bytesJoined([
      new TextEncoder().encode(head),
      ...Object.values(this.arrays).map(({ data }) => bytesOf(data)),
    ]);
    return bytesJoined([new TextEncoder().encode(`${MAGIC}${checksum(content)}\n`), content]);
  }

  /**
   * Return the state that bytes hold.
   *
   * @param {Uint8Array} content
   * @throws {Refusal} if they are not whole.
   */
  static ofBytes(content) {
    const start = MAGIC.length;
    if (new TextDecoder().decode(content.subarray(0, start)) !== MAGIC) {
      throw notWhole("they do not begin as those of a state do");
    }
    const begin = start + CHECKSUM + 1;
    const [told] = new TextDecoder().decode(content.subarray(start, begin)).split("\n");
    if (told !== checksum(content.subarray(begin))) throw notWhole("their checksum is another one");
    const end = content.indexOf(LINE_END, begin);
    let head;
    const problems = /** @type {string[]} */ ([]);
    try {
      head = HEAD(parseJSON(content.subarray(begin, end < 0 ? begin : end)), "", problems);
    } catch {
      throw notWhole("their head is no JSON");
    }
    if (problems.length) throw notWhole(problems[0]);
    let place = end + 1;
    const arrays = mapped(head.arrays, ([type, dims], name) => {
      if (!Object.hasOwn(KINDS, type) || !Array.isArray(dims) || !dims.every(isSize)) {
        throw notWhole(`${name} is no array of ${Object.keys(KINDS).join(", ")}`);
      }
      const data = KINDS[type];
      const behind = place + sizeOf(dims) * data.BYTES_PER_ELEMENT;
      if (behind > content.length) throw notWhole("there are fewer of them than the arrays have");
      const own = new Uint8Array(content.subarray(place, behind)); // a copy, which is aligned
      place = behind;
      return { type, data: new data(own.buffer), dims };
    });
    if (place < content.length) throw notWhole("there are more of them than the arrays have");
    return new StreamState(head.bundle, head.frames, arrays, head.memory);
  }
}

/** Remainder of each byte, for CRC-32 (ISO 3309). */
const REMAINDERS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

/** Return the CRC-32 of bytes as 8 hexadecimal digits. @param {Uint8Array} content */
function checksum(content) {
  let rest = 0xffffffff;
  for (const byte of content) rest = REMAINDERS[(rest ^ byte) & 255] ^ (rest >>> 8);
  return (~rest >>> 0).toString(16).padStart(CHECKSUM, "0");
}

/** @param {Uint8Array[]} parts */
function bytesJoined(parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return /** @type {Uint8Array} */ (
    joined(parts.map((data) => ({ type: "uint8", data, dims: [] })), [length]).data);
}

const isSize = (size) => Number.isSafeInteger(size) && size >= 0;
const bytesOf = (data) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
const notWhole = (reason) =>
  new Refusal(`open: state must be the bytes of a stream's state, whole; ${reason}`);

/** Return name -> what `change` makes of an entry. @returns {Record<string, any>} */
const mapped = (entries, change) => Object.fromEntries(
  Object.entries(entries).map(([name, entry]) => [name, change(entry, name)]),
);

/** The graph of a stream: (frames, state) -> (answers, state). */
class StreamGraph {
  #session;
  #names;
  #readsOne;

  constructor(session, output, zeros, identity, readsOne) {
    this.#session = session;
    this.#names = [output, ...Object.keys(zeros).map((name) => NEXT + name)];
    this.#readsOne = readsOne;
    /** The state before the first frame, without a batch. @type {Arrays} */
    this.zeros = zeros;
    /** The sha256 of the graph and its weights. @type {string} */
    this.identity = identity;
    /** The number of frames by which answers come late. @type {number} */
    this.delay = session.graph.delay;
    /** The number of frames before the first answer. @type {number} */
    this.warmUp = Math.max(session.graph.delay, session.graph.warm_up);
  }

  /**
   * @param {import("./manifest/files.js").Bundle} bundle
   * @param {import("./opening.js").Runtime} runtime
   * @param {Reading} reading
   */
  static async open(bundle, runtime, { output, input, optional: others = [] }) {
    const { manifest, where } = bundle;
    const graph = runtime.graphsOf(manifest)[ROLE];
    const names = stateOf(manifest, ROLE);
    const [first] = graph.outputs.filter((spec) => !spec.name.startsWith(NEXT));
    const outputs = [output ?? first.name, ...names.map((name) => NEXT + name)];
    const specs = names.flatMap((name) => graph.inputs.filter((spec) => spec.name === name));
    const strange = specs.find((spec) => !Object.hasOwn(KINDS, spec.dtype));
    if (strange) {
      throw new BundleError(
        `state ${strange.name} is ${strange.dtype}; JavaScript keeps ${Object.keys(KINDS).join(", ")}`,
        { where, subject: MANIFEST, advice: "Serve this bundle by Python." },
      );
    }
    const session = await openSession(bundle, runtime, ROLE, [input, ...names], outputs, others);
    const zeros = Object.fromEntries(specs.map(({ name, dtype, shape }) => {
      const dims = /** @type {number[]} */ (shape.slice(1));
      return [name, { type: dtype, data: new KINDS[dtype](sizeOf(dims)), dims }];
    }));
    const hashes = [graph.file, ...graph.weights].map((file) => manifest.files[file].sha256);
    const identity = await sha256(new TextEncoder().encode(hashes.join("")));
    return new StreamGraph(session, outputs[0], zeros, identity, runtime.precision.startsWith("int"));
  }

  /**
   * Return the answers (B, T, ...) to frames (B, T, ...), and the state after them.
   *
   * @param {Arrays} arrays
   * @param {Arrays} state
   * @returns {Promise<{answers: NumberArray, after: Arrays}>}
   */
  async run(arrays, state) {
    if (this.#readsOne) return this.#runOneByOne(arrays, state);
    return this.#run(arrays, state);
  }

  async #run(arrays, state) {
    const [answers, ...after] = await this.#session.run(this.#names, { ...arrays, ...state });
    const entries = Object.keys(this.zeros).map((name, place) => [name, after[place]]);
    return { answers, after: Object.fromEntries(entries) };
  }

  async #runOneByOne(arrays, state) {
    const [batchSize, length] = Object.values(arrays)[0].dims;
    const frames = mapped(arrays, (array) =>
      reshaped(array, [batchSize * length, ...array.dims.slice(2)]));
    const found = /** @type {NumberArray[]} */ ([]);
    const states = /** @type {Arrays[]} */ ([]);
    for (let row = 0; row < batchSize; row += 1) {
      let own = mapped(state, (array) => rowsOf(array, [row]));
      for (let step = 0; step < length; step += 1) {
        const now = mapped(frames, (array) => {
          const frame = rowsOf(array, [row * length + step]);
          return reshaped(frame, [1, ...frame.dims]);
        });
        const { answers, after } = await this.#run(now, own);
        found.push(answers);
        own = after;
      }
      states.push(own);
    }
    return {
      answers: joined(found, [batchSize, length, ...found[0].dims.slice(2)]),
      after: mapped(state, ({ dims }, name) => joined(states.map((own) => own[name]), dims)),
    };
  }

  release() {
    return this.#session.release();
  }
}

/** What a pipeline's streams share. */
export class Streaming {
  #bundle;
  #runtime;
  #reading;
  /** @type {Promise<StreamGraph> | null} */
  #graph = null;

  /**
   * @param {import("./manifest/files.js").Bundle} bundle
   * @param {import("./opening.js").Runtime} runtime
   * @param {Reading} reading
   */
  constructor(bundle, runtime, reading) {
    this.#bundle = bundle;
    this.#runtime = runtime;
    this.#reading = reading;
    /** The pipeline's name, for errors. */
    this.who = bundle.manifest.pipeline;
    this.read = reading.read;
  }

  /**
   * Return a `Stream`, or `Streams`.
   *
   * @param {OpenOptions} options
   * @returns {Promise<Stream | Streams>}
   * @throws {Refusal} if the bundle has no stream, or the state is of another one.
   */
  async opened(options) {
    const { streams, state } = withDefaults(`${this.who}: open`, options, DEFAULTS);
    if (!this.#bundle.manifest.graphs[ROLE]) {
      throw new Refusal(
        `${this.who}: this bundle has no stream; export the run of a model that reads no later frames `
          + "with --stream",
      );
    }
    if (streams !== null) requireCount(`${this.who}: streams`, streams);
    if (streams !== null && state !== null) {
      throw new Refusal(`${this.who}: state is of one stream; give those of several by \`replace\``);
    }
    this.#graph ??= this.#opening();
    const graph = await this.#graph;
    const first = this.stateOf(state, graph);
    return streams === null
      ? new Stream(new Batch(this, graph, [first], () => `${this.who}: frames`))
      : new Streams(new Batch(
        this, graph, Array(streams).fill(first), (index) => `${this.who}: frames of stream ${index}`,
      ));
  }

  /**
   * Return a state that fits the graph; zeros for null.
   *
   * @param {any} given a `StreamState`, its bytes, or null.
   * @param {StreamGraph} graph
   * @returns {StreamState}
   * @throws {Refusal} if it is the state of another bundle or precision, or is not whole.
   */
  stateOf(given, { identity, zeros }) {
    if (given === null) return new StreamState(identity, 0, zeros);
    let state = given instanceof ArrayBuffer ? new Uint8Array(given) : given;
    if (state instanceof Uint8Array) state = StreamState.ofBytes(state);
    if (!(state instanceof StreamState)) {
      throw new Refusal(
        `${this.who}: state must be the state of a stream, or its bytes; received ${shown(state)}`,
      );
    }
    const formOf = (arrays) => Object.keys(arrays).sort()
      .map((name) => [name, arrays[name].type, ...arrays[name].dims].join()).join(";");
    if (state.bundle !== identity || formOf(state.arrays) !== formOf(zeros)) {
      throw new Refusal(
        `${this.who}: state is that of another bundle or precision; open it there, or begin anew`,
      );
    }
    return state;
  }

  /**
   * Return the answers to a chunk's frames; null for those before the first.
   *
   * @param {StreamGraph} graph
   * @param {NumberArray} numbers (T, ...), the graph's.
   * @param {Chunk} chunk
   * @param {number} frames the number of frames before the chunk.
   * @param {string} name of the frames, for errors.
   * @throws {NoFiniteNumber} if a number is not finite.
   */
  answers({ delay, warmUp }, numbers, { about }, frames, name) {
    if (!Array.prototype.every.call(numbers.data, Number.isFinite)) throw new NoFiniteNumber(name);
    return Array.from({ length: numbers.dims[0] }, (_, place) => {
      if (frames + place < warmUp) return null;
      const own = between(numbers, place, place + 1);
      return this.#reading.answer(
        { data: own.data, dims: own.dims.slice(1) }, frames + place - delay, about?.[place],
      );
    });
  }

  async release() {
    await this.#graph?.then((graph) => graph.release(), () => {});
  }

  async #opening() {
    try {
      return await StreamGraph.open(this.#bundle, this.#runtime, this.#reading);
    } catch (error) {
      this.#graph = null; // the next call reads the files again
      throw error;
    }
  }
}

/** The states of streams that are stepped together; a call that fails leaves them as they were. */
class Batch {
  #streaming;
  #graph;
  #nameOf;
  /** @type {Arrays} */
  #arrays;
  /** @type {Memory[]} */
  #memories;
  /** @type {number[]} */
  #frames;
  #queue = new Queue();

  /**
   * @param {Streaming} streaming
   * @param {StreamGraph} graph
   * @param {StreamState[]} states of the streams.
   * @param {(index: number) => string} nameOf the frames of a stream, for errors.
   */
  constructor(streaming, graph, states, nameOf) {
    this.#streaming = streaming;
    this.#graph = graph;
    this.#nameOf = nameOf;
    this.#arrays = mapped(graph.zeros, ({ dims }, name) =>
      joined(states.map((state) => state.arrays[name]), [states.length, ...dims]));
    this.#memories = states.map((state) => state.memory);
    this.#frames = states.map((state) => state.frames);
    this.who = streaming.who;
    this.delay = graph.delay;
    this.warmUp = graph.warmUp;
  }

  get size() {
    return this.#frames.length;
  }

  /** Return the `StreamState` of a stream. @param {number} index */
  state(index) {
    const arrays = mapped(this.#arrays, (array) => {
      const own = rowsOf(array, [index]);
      return reshaped(own, own.dims.slice(1));
    });
    const { identity } = this.#graph;
    return new StreamState(identity, this.#frames[index], arrays, this.#memories[index]);
  }

  /**
   * @param {number} index of a stream.
   * @param {any} given what `Streaming.stateOf` takes.
   */
  replace(index, given) {
    return this.#queue.run(() => {
      const state = this.#streaming.stateOf(given, this.#graph);
      this.#arrays = mapped(this.#arrays, (array, name) =>
        withRows(array, [index], state.arrays[name]));
      this.#memories[index] = state.memory;
      this.#frames[index] = state.frames;
    });
  }

  /**
   * Return for each stream the answers to its frames.
   *
   * @param {any[]} given the frames of each stream; null or undefined for none.
   * @returns {Promise<any[][]>}
   */
  push(given) {
    return this.#queue.run(() => this.#answers(given));
  }

  async #answers(given) {
    const streaming = this.#streaming;
    const chunks = given.map((frames, index) => (
      frames === null || frames === undefined
        ? null
        : streaming.read(frames, this.#nameOf(index), this.#memories[index])));
    const lengths = chunks.map((chunk) => (chunk ? Object.values(chunk.arrays)[0].dims[0] : 0));
    const numbers = given.map(() => /** @type {NumberArray[]} */ ([]));
    let state = this.#arrays;
    for (let done = 0; done < Math.max(...lengths);) {
      const rows = [...lengths.keys()].filter((index) => lengths[index] > done);
      const [start, end] = [done, Math.min(...rows.map((index) => lengths[index]))];
      const arrays = mapped(chunks[rows[0]]?.arrays, ({ dims }, name) => joined(
        rows.map((index) => between(chunks[index]?.arrays[name], start, end)),
        [rows.length, end - start, ...dims.slice(1)],
      ));
      const isAll = rows.length === this.size;
      const own = isAll ? state : mapped(state, (array) => rowsOf(array, rows));
      const { answers, after } = await this.#graph.run(arrays, own);
      rows.forEach((index, place) => numbers[index].push(between(answers, place, place + 1)));
      state = isAll ? after : mapped(state, (array, name) => withRows(array, rows, after[name]));
      done = end;
    }
    const answers = chunks.map((chunk, index) => {
      if (!chunk) return [];
      const all = joined(numbers[index], [lengths[index], ...numbers[index][0].dims.slice(2)]);
      return streaming.answers(
        this.#graph, all, chunk, this.#frames[index], this.#nameOf(index),
      );
    });
    this.#arrays = state;
    chunks.forEach((chunk, index) => {
      if (!chunk) return;
      this.#memories[index] = chunk.memory;
      this.#frames[index] += lengths[index];
    });
    return answers;
  }
}

/** One stream of frames, in the order in which they come; calls that overlap run one after the other. */
export class Stream {
  #batch;
  #isOpen = true;

  /** @param {Batch} batch of one stream. */
  constructor(batch) {
    this.#batch = batch;
    /** The number of frames by which answers come late. */
    this.delay = batch.delay;
    /** The number of frames before the first answer. */
    this.warmUp = batch.warmUp;
  }

  /** The state after the frames that were answered. @returns {StreamState} */
  get state() {
    return this.#batch.state(0);
  }

  /**
   * Return the answer to each of some frames, null for the first `warmUp` frames.
   *
   * @param {any} frames a list of frames, each a list of numbers or a typed array; with
   *   `settings.rows` a list of rows, objects or lists; for a model with known covariates {series,
   *   known}, which has for each row the rows that follow it.
   * @returns {Promise<any[]>}
   * @throws {Refusal} if a frame is refused, or the stream has ended; the state is then as before.
   */
  async push(frames) {
    if (!this.#isOpen) {
      throw new Refusal(`${this.#batch.who}: the stream has ended; open another one`);
    }
    const [answers] = await this.#batch.push([frames ?? []]);
    return answers;
  }

  /**
   * Yield the answer to each frame of an iterator, asynchronous or not, as it comes.
   *
   * @param {AsyncIterable<any> | Iterable<any>} source
   */
  async* follow(source) {
    for await (const frame of source) yield (await this.push([frame]))[0];
  }

  /** End the stream: it takes no further frame. */
  end() {
    this.#isOpen = false;
  }
}

/** Several streams, each with frames of its own; calls that overlap run one after the other. */
export class Streams {
  #batch;

  /** @param {Batch} batch */
  constructor(batch) {
    this.#batch = batch;
    this.length = batch.size;
    /** The number of frames by which answers come late. */
    this.delay = batch.delay;
    /** The number of frames before the first answer. */
    this.warmUp = batch.warmUp;
  }

  /** Return the state of a stream after the frames that were answered. @param {number} index */
  state(index) {
    return this.#batch.state(this.#index(index));
  }

  /**
   * Put another stream in the place of one that has ended: a new one, or one of a state.
   *
   * @param {number} index
   * @param {StreamState | Uint8Array | ArrayBuffer | null} [state]
   */
  async replace(index, state = null) {
    return this.#batch.replace(this.#index(index), state);
  }

  /**
   * Return for each stream the answers to its frames.
   *
   * @param {any[]} frames for each stream its frames, as `Stream.push` takes them, or null for none.
   * @returns {Promise<any[][]>}
   * @throws {Refusal} if a frame is refused; it names the stream, and all states are as before.
   */
  async push(frames) {
    if (!Array.isArray(frames) || frames.length !== this.length) {
      throw new Refusal(
        `${this.#batch.who}: frames must be a list of ${this.length}, one for each stream, null for a `
          + `stream without frames; received ${shown(frames)}`,
      );
    }
    return this.#batch.push(frames);
  }

  #index(index) {
    if (Number.isSafeInteger(index) && index >= 0 && index < this.length) return index;
    throw new Refusal(
      `${this.#batch.who}: a stream's index must be from 0 to ${this.length - 1}; received `
        + shown(index),
    );
  }
}
