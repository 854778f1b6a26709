// Parts of the page that need no browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";

import { readLink } from "../../playground/static/page/link.js";
import { Latest } from "../../playground/static/page/latest.js";
import { duration, megabytes, percent, short } from "../../playground/static/page/numbers.js";
import { ticksOf } from "../../playground/static/page/parts/plot.js";
import { forecast } from "../../playground/static/page/pipelines/forecast.js";
import { localSnippets, snippets } from "../../playground/static/page/snippets.js";

test("the newest request is run, one at a time, and those between never", async () => {
  const [begun, ended] = /** @type {any[][]} */ ([[], []]);
  /** @type {() => void} */
  let finish = () => {};
  const latest = new Latest(async (request, signal) => {
    assert.equal(begun.length, ended.length); // no other runs
    begun.push(request);
    await new Promise((resolve) => { finish = () => resolve(undefined); });
    ended.push([request, signal.aborted]);
  });
  latest.ask("a");
  await after(5);
  for (const request of ["b", "c", "d"]) latest.ask(request);
  await after(5);
  assert.deepEqual(begun, ["a"]);
  finish();
  await after(5);
  assert.deepEqual([begun, ended], [["a", "d"], [["a", true]]]);
  finish();
  await after(5);
  assert.deepEqual(ended, [["a", true], ["d", false]]);
});

test("a request that waits for more letters is never begun when all is stopped", async () => {
  const begun = /** @type {any[]} */ ([]);
  const latest = new Latest(async (request) => { begun.push(request); });
  latest.ask("a", 5);
  latest.stop();
  latest.ask("b", 5);
  await after(30);
  assert.deepEqual(begun, ["b"]);
});

test("numbers are written short", () => {
  assert.deepEqual([1, 0.6328, 0.0976, 0.00008].map(percent), ["100 %", "63.3 %", "9.8 %", "0 %"]);
  assert.deepEqual([0.00512, 0.0417, 1.24, 12.6].map(duration), ["5.1 ms", "42 ms", "1.2 s", "13 s"]);
  assert.deepEqual([4.4e6, 112.7e6].map(megabytes), ["4.4 MB", "113 MB"]);
  assert.deepEqual([0, 3, -12.34567, 1234567, 0.00012].map(short), ["0", "3", "-12.35", "1.23e+6", "1.20e-4"]);
});

test("ticks are round and span the range", () => {
  assert.deepEqual(ticksOf(12, 389), [0, 100, 200, 300, 400]);
  assert.deepEqual(ticksOf(-0.3, 0.4), [-0.4, -0.2, 0, 0.2, 0.4]);
  assert.equal(ticksOf(5, 5).length > 1, true);
});

test("a series is read from lines of numbers or of named values", () => {
  const graph = { inputs: [{ name: "window" }] };
  const plain = /** @type {any} */ ({ graphs: { model: graph }, settings: {} });
  const read = (series, manifest) => forecast.question({ series }, manifest)?.input.series;
  assert.deepEqual(read("1 2\n\n3\t4,5", plain), [[1, 2], [3, 4, 5]]);
  assert.throws(() => read("1\nx", plain), /line 2: expected numbers; received “x”/);
  assert.equal(forecast.question({ series: " \n" }, plain), null);
  const columns = [{ name: "pm", known: false }, { name: "wind", known: false }];
  const named = { ...plain, settings: { rows: { columns, time: { columns: ["hour"] } } } };
  assert.deepEqual(read("hour,pm,wind\n1, , NW\n2,7,SE", named), [["1", "", "NW"], ["2", "7", "SE"]]);
});

test("a fragment is read, whatever it holds", () => {
  const { name, given, compared } = readLink("#/a%2Fb?text=x%0Ay+%26&compare=c&top_k=3");
  assert.deepEqual([name, [...given], compared], ["a/b", [["text", "x\ny &"], ["top_k", "3"]], "c"]);
  for (const fragment of ["", "#main", "#/", "#/%", "#/%E0%A4?%=%&?&=", "#/?", "?text=x"]) {
    const found = readLink(fragment);
    assert.equal(typeof found.name, "string");
    assert.equal(found.given.get("text"), null);
  }
  const { given: none, isTooLong } = readLink(`#/a?text=${"x".repeat(16_000)}`);
  assert.deepEqual([[...none], isTooLong], [[], true]);
});

test("a request is written in the words and the quotes of each language", () => {
  const question = { input: { text: "it's \"\\n\"\n\u202e" }, options: { sample: true, seed: null } };
  const target = { address: "http://[::1]:8000/v1/bundles/a", needsToken: false };
  const { curl, Python, JavaScript } = snippets(question, target);
  assert.equal(curl, String.raw`curl 'http://[::1]:8000/v1/bundles/a' -d '{"input": {"text": "it'\''s \"\\n\"\n\u202e"}, "options": {"sample": true, "seed": null}}'` + "\n");
  assert.match(Python, /^request = .* "options": \{"sample": True, "seed": None\}\}$/m);
  assert.match(JavaScript, /^const request = .* "options": \{"sample": true, "seed": null\}\};$/m);
  assert.doesNotMatch(snippets({ input: "a", options: {} }, target).curl, /options/);
  const local = localSnippets({ inputs: ["a"], options: { top_k: 3 } }, "http://localhost/bundles/a/");
  assert.match(local.JavaScript, /^console\.log\(await pipeline\(\["a"\], \{"top_k": 3\}\)\);$/m);
});
