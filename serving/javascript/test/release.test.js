// A pipeline that was released says so.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { folder } from "../src/folder.js";
import { load } from "../src/index.js";
import { describeCases, FOLDER } from "./cases.js";

const ort = await import("onnxruntime-node");
const opened = (name) => load(folder(join(FOLDER, name)), ort);
const RELEASED = { name: "Refusal", message: /: it was released: load it again to ask it\.$/ };

/** Return the pieces of a stream. */
async function read(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

describeCases("a pipeline that was released", () => {
  it("refuses what it is asked, and is released but once", async () => {
    for (const [name, input] of [["translate", "up|bad"], ["generate", "bad"], ["embed", "a cat"]]) {
      const pipeline = await opened(name);
      await pipeline(input);
      await Promise.all([pipeline.release(), pipeline.release()]);
      await pipeline.release();
      await assert.rejects(pipeline(input), RELEASED);
      await assert.rejects(pipeline([]), RELEASED);
      if (pipeline.stream) await assert.rejects(read(pipeline.stream(input)), RELEASED);
      if (pipeline.similarity) await assert.rejects(pipeline.similarity([input], [input]), RELEASED);
    }
  });

  it("refuses the rest of what runs", async () => {
    const generate = await opened("generate");
    const running = generate("bad");
    const pieces = read(/** @type {any} */ (generate.stream)("bad"));
    const ended = Promise.allSettled([running, pieces]);
    await generate.release();
    for (const { reason } of /** @type {any[]} */ (await ended)) {
      assert.match(String(reason), RELEASED.message);
    }
  });
});
