// Every pipeline gives the answers, the pieces and the errors of Python, in Node's onnxruntime and in
// that of browsers.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { folder } from "../src/folder.js";
import { load } from "../src/index.js";
import { assertSame, describeCases, FOLDER, readCases } from "./cases.js";

const RUNTIMES = {
  "onnxruntime-node": () => import("onnxruntime-node"),
  "onnxruntime-web": async () => {
    const ort = await import("onnxruntime-web");
    ort.env.wasm.numThreads = 1;
    return ort;
  },
};
const IN_GRAPH = ["transformer", "transformer-with-beams", "gpt"]; // bundles that have generate.onnx

for (const [runtime, open] of Object.entries(RUNTIMES)) {
  describeCases(`answers by ${runtime} are those of Python`, () => {
    for (const [name, cases] of Object.entries(readCases())) {
      it(name, async () => {
        const pipeline = await load(folder(join(FOLDER, name)), await open());
        for (const [place, { inputs, options, stream, answers, error }] of cases.entries()) {
          const where = `case ${place}`;
          if (stream) {
            const pieces = [];
            for await (const piece of pipeline.stream?.(inputs) ?? []) pieces.push(piece);
            if (pieces.length > stream.length) // the end of a text may come in more pieces than one
              pieces.push(pieces.splice(stream.length - 1).join(""));
            assert.deepEqual(pieces, stream, where);
          } else if (error) {
            await assert.rejects(pipeline(inputs, options), { message: error }, where);
          } else assertSame(await pipeline(inputs, options), answers, where);
        }
        await pipeline.release();
      });
    }
  });
}

/** Return the runtime, and how many times graphs were run. */
function counted(ort) {
  const count = { runs: 0 };
  const create = async (...given) => {
    const session = await ort.InferenceSession.create(...given);
    const run = session.run.bind(session);
    session.run = (...own) => {
      count.runs += 1;
      return run(...own);
    };
    return session;
  };
  return { ort: { Tensor: ort.Tensor, InferenceSession: { create } }, count };
}

describeCases("answers by the graph that generates are those of Python, in one run", () => {
  for (const name of IN_GRAPH) {
    it(name, async () => {
      const read = folder(join(FOLDER, name));
      const { ort, count } = counted(await RUNTIMES["onnxruntime-node"]());
      const pipeline = await load(read, ort, { generate_in_graph: true });
      const cases = readCases()[name].filter(({ answers }) => answers);
      for (const [place, { inputs, options, answers }] of cases.entries()) {
        assertSame(await pipeline(inputs, options), answers, `case ${place}`);
      }
      count.runs = 0;
      await pipeline(cases[0].inputs[0]);
      assert.equal(count.runs, 1);
      await pipeline.release();
    });
  }
});
