// What all pipelines have: an input that fails alone.

import assert from "node:assert/strict";
import { it } from "node:test";

import { Pipeline } from "../src/pipelines/pipeline.js";
import { BundleError, Refusal } from "../src/refusal.js";

const CALLS = [];

/** Answers texts in capitals; refuses "bad", and its graph fails on "broken". */
class Capitals extends Pipeline {
  async answer(inputs, options) {
    if ("wrong" in options) throw new Refusal("wrong must not be given");
    CALLS.push(inputs);
    const listed = Array.isArray(inputs) ? inputs : [inputs];
    if (listed.includes("bad")) throw new Refusal("text is bad");
    if (listed.includes("broken")) throw new BundleError("the graph can not run");
    if (listed.includes("fault")) throw new RangeError("a fault of ours");
    const answers = listed.map((text) => text.toUpperCase());
    return Array.isArray(inputs) ? answers : answers[0];
  }
}

const pipeline = new Capitals(/** @type {any} */ ({ manifest: {}, where: "toy" }), []).callable();

it("an input that fails does not fail the others", async () => {
  const found = await pipeline.answers_or_errors(["a", "bad", "b", "c", "broken", "d"]);
  assert.deepEqual(found.filter((answer) => typeof answer === "string"), ["A", "B", "C", "D"]);
  assert.match(found[1].message, /^text is bad\.$/);
  assert.ok(found[4] instanceof BundleError);
  assert.deepEqual(await pipeline.answers_or_errors([]), []);
});

it("good inputs are answered together, and one bad among many costs few calls", async () => {
  CALLS.length = 0;
  assert.deepEqual(await pipeline.answers_or_errors(["a", "b"]), ["A", "B"]);
  assert.deepEqual(CALLS, [[], ["a", "b"]]);
  CALLS.length = 0;
  const found = await pipeline.answers_or_errors(Array.from({ length: 128 }, (_, n) => (n === 77 ? "bad" : "a")));
  assert.equal(found.findIndex((answer) => answer instanceof Refusal), 77);
  assert.ok(CALLS.length < 20);
});

it("what is wrong with all is an error", async () => {
  await assert.rejects(pipeline.answers_or_errors(["a"], { wrong: 1 }), /wrong must not be given/);
  await assert.rejects(pipeline.answers_or_errors(/** @type {any} */ ("a")), /inputs must be an array; received/);
  await assert.rejects(pipeline.answers_or_errors(["a", "fault"]), RangeError);
});
