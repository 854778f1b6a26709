// The worker that runs a bundle by onnxruntime-web.
//
// It is given {id, kind: "open" | "answer" | "stream" | "stop" | "begin" | "push", …}, and says {id, kind: "heard", value}
// any number of times, then {id, kind: "end", value} or {id, kind: "error", message}.

const MODULES = new URL("./modules/", import.meta.url);

/** @type {any} the pipeline. */
let pipeline = null;
/** @type {any} the stream of frames. */
let frames = null;
/** @type {Set<number>} the streams of text that shall end. */
const stopped = new Set();

self.onmessage = async ({ data: { id, kind, ...content } }) => {
  if (kind === "stop") {
    stopped.add(id);
    return;
  }
  const tell = (value) => self.postMessage({ id, kind: "heard", value });
  try {
    const value = await { open, answer, stream, begin, push }[kind](content, tell, id);
    self.postMessage({ id, kind: "end", value });
  } catch (error) {
    self.postMessage({ id, kind: "error", message: String(/** @type {any} */ (error)?.message ?? error) });
  }
  stopped.delete(id);
};

async function open({ files, runtime, headers }, tell) {
  const imported = (path) => import(new URL(path, MODULES).href);
  const [ort, tokenizers, { load }, { address }] = await Promise.all([
    imported("onnxruntime-web/ort.wasm.min.mjs"), imported("tokenizers/tokenizers.min.mjs"),
    imported("seqkeras-serving/index.js"), imported("seqkeras-serving/address.js"),
  ]);
  ort.env.wasm.numThreads = 1;
  const loadRuntime = async () => {
    const response = await fetch(runtime);
    if (!response.ok) throw new Error(`onnxruntime-web can not be loaded: status ${response.status}`);
    ort.env.wasm.wasmBinary = await response.arrayBuffer();
    tell({ loaded: runtime });
  };
  const create = async (...given) => { // a bundle that is refused before its first graph needs no runtime
    if (!ort.env.wasm.wasmBinary) await loadRuntime();
    return ort.InferenceSession.create(...given);
  };
  const late = { Tensor: ort.Tensor, InferenceSession: { create } };
  const read = address(files, { headers });
  const counted = async (name) => {
    const bytes = await read(name);
    tell({ loaded: files + name });
    return bytes;
  };
  pipeline = await load(Object.assign(counted, { where: read.where }), late, { tokenizers });
}

async function answer({ question: { input, inputs, options } }) {
  const begin = performance.now();
  const found = await pipeline(inputs ?? input, options);
  return { answer: found, seconds: (performance.now() - begin) / 1000 };
}

async function stream({ question: { input, options } }, tell, id) {
  for await (const text of pipeline.stream(input, options)) {
    tell({ text });
    await nextTask(); // a message that stops it may wait
    if (stopped.has(id)) return;
  }
}

/** Forget the stream of frames; the next frame begins another one. */
async function begin() {
  frames = null;
}

async function push({ rows }) {
  frames ??= await pipeline.open();
  const start = performance.now();
  const answers = await frames.push(rows);
  const seconds = (performance.now() - start) / 1000;
  const { arrays } = frames.state;
  const bytes = Object.values(arrays).reduce((sum, { data }) => sum + data.byteLength, 0);
  return { answers, seconds, bytes };
}

function nextTask() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve(undefined);
    };
    port2.postMessage(null);
  });
}
