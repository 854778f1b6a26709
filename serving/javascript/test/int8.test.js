// Int8 products are exact on every processor, by the case that tells processors apart.

import assert from "node:assert/strict";
import { it } from "node:test";

import { overflows, PRODUCT } from "../src/int8.js";
import { Runtime } from "../src/opening.js";

const ort = await import("onnxruntime-node");
const EXACT = 4 * 255 * 127;

/** Return the product of a session with these options. */
async function product(options) {
  const session = await ort.InferenceSession.create(PRODUCT, options);
  const { y } = await session.run({ x: new ort.Tensor("uint8", new Uint8Array(8).fill(255), [2, 4]) });
  return Array.from(/** @type {Int32Array} */ (y.data));
}

it("products are exact as sessions are opened", async () => {
  assert.deepEqual(await product(await new Runtime(ort).sessionOptions([])), Array(8).fill(EXACT));
});

it("another kernel is asked for only where the product of a plain session is another one", async () => {
  const plain = await product({});
  const isOther = plain.some((number) => number !== EXACT);
  assert.equal(await overflows(ort), isOther);
  assert.equal("extra" in await new Runtime(ort).sessionOptions([]), isOther);
});

it("it is measured once", async () => {
  let count = 0;
  const InferenceSession = {
    create(...given) {
      count += 1;
      return ort.InferenceSession.create(.../** @type {[Uint8Array]} */ (given));
    },
  };
  const counted = { InferenceSession, Tensor: ort.Tensor };
  const found = await Promise.all([overflows(counted), overflows(counted)]);
  assert.deepEqual([found, await overflows(counted), count], [[found[0], found[0]], found[0], 1]);
});
