// Parts by themselves, against JavaScript's own and published numbers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";

import { categoryOf } from "../src/categories.js";
import { uniform } from "../src/decoding/random.js";
import { externalFiles } from "../src/external_data.js";
import { entities, isTag } from "../src/pipelines/entities.js";
import { Encoding } from "../src/text/encoding.js";
import { Pattern } from "../src/text/patterns.js";
import { TokenAutomaton, textTrees } from "../src/text/token_automaton.js";

it("a seed gives the numbers of NumPy's manual", () => {
  const published = [0.77395605, 0.43887844, 0.85859792, 0.69736803, 0.09417735];
  uniform([42], 5).forEach((number, place) =>
    assert.ok(Math.abs(number - published[place]) < 1e-8));
});

it("a pattern allows the texts that JavaScript's expression matches as a whole", () => {
  const texts = ["", "a", "ab", "abab", "19", "1999-02-29", "\u732b", "\u{1f600}", "b\n", "A", "\u0663", "-"];
  const sources = [
    "(ab)*", "a|b?", "[^a-c]", ".", "\\d{2,}", "(19|20)\\d\\d-[01]\\d-\\d\\d", "[\u4e00-\u9fff]", "(?:a{0,1}b){2}",
    "\\w+", "[\\w-]", "a+?b*", "x{0}", "\\S\\n",
  ];
  for (const source of sources) {
    const pattern = Pattern.ofExpression(`(?a)${source}`); // JavaScript's classes are those of ASCII
    const own = new RegExp(`^(?:${source})$`, "u");
    for (const text of texts) {
      assert.equal(pattern.allows(text), own.test(text), `${source} on ${text}`);
    }
  }
  assert.ok(Pattern.ofExpression("\\d\\w").allows("\u0663\u732b")); // Python's know all scripts
});

it("what no finite automaton knows is refused by name", () => {
  for (const source of ["(a)\\1", "a(?=b)", "\\bword", "(?i)a", "a**", "(a", "[b-a]", "a{3,2}", "a)", "*a"]) {
    assert.throws(() => Pattern.ofExpression(source), { name: "Refusal", message: /^regex '.*' / });
  }
});

it("the work of an expression is bounded as in Python", { timeout: 60_000 }, () => {
  const cases = JSON.parse(readFileSync(new URL("large_expressions.json", import.meta.url), "utf8"));
  for (const { pieces, refused } of cases) {
    const expression = pieces.map(([text, times]) => text.repeat(times)).join("");
    if (refused === null) {
      assert.ok(Pattern.ofExpression(expression));
      continue;
    }
    assert.throws(() => Pattern.ofExpression(expression), (/** @type {Error} */ error) => {
      assert.equal(error.name, "Refusal");
      assert.ok(error.message.includes(refused), `${error.message}, not ${refused}`);
      return true;
    });
  }
});

it("choices are bounded by their bytes, and a constraint by the vocabulary", { timeout: 60_000 }, () => {
  const message = /^choices must have 19,999 bytes together at most, those of a common beginning once\.$/;
  assert.throws(() => Pattern.ofTexts(["x".repeat(10 ** 7)]), { name: "Refusal", message });
  assert.equal(Pattern.ofTexts(["x".repeat(19_999), "x".repeat(19_998)]).accepts.length, 20_000);
  const written = Array.from({ length: 200_000 }, (_, token) => new TextEncoder().encode(`${token}`));
  const texts = textTrees({ first: written, later: written });
  assert.throws(() => new TokenAutomaton(Pattern.ofExpression(".{0,1000}"), texts, 0, 200_000), {
    name: "Refusal",
    message: "regex or choices: 8,001 states are too many for a vocabulary of 200,000 tokens: "
      + "repeat less, or allow fewer characters.",
  });
});

it("entities are those of conlleval", () => {
  const cases = JSON.parse(readFileSync(new URL("entities.json", import.meta.url), "utf8"));
  for (const [tags, expected] of Object.entries(cases)) {
    const found = entities(tags.split(" ")).map(({ label, first, end }) => [label, first, end]);
    assert.deepEqual(found, expected, tags);
  }
});

it("a scheme knows its letters", () => {
  for (const [scheme, letters] of [["IOB2", "BI"], ["IOBES", "BIES"], ["BILOU", "BILU"], ["BMES", "BMES"]]) {
    const known = [..."BIESLUMO"].filter((letter) => isTag(`${letter}-X`, scheme));
    assert.deepEqual(known.sort(), [...letters].sort(), scheme);
    assert.ok(isTag("O", scheme) && !isTag("B-", scheme) && !isTag("B_X", scheme));
  }
});

it("words of an encoding are those of the text, tokens where a script has no spaces", () => {
  const cases = JSON.parse(readFileSync(new URL("words.json", import.meta.url), "utf8"));
  for (const { name, texts, tokens, offsets, word_ids: wordIds, words } of cases) {
    const encoding = new Encoding({ tokenIds: tokens.map(() => 0), tokens, offsets, wordIds, texts });
    assert.deepEqual(encoding.words().map(({ label, count }) => [label, count]), words, name);
  }
});

it("what is no graph is refused", () => {
  assert.deepEqual(externalFiles(new Uint8Array()), []);
  assert.throws(() => externalFiles(new TextEncoder().encode("no graph at all")), /no protobuf message/);
});

it("a cell has the category that it has in Python", () => {
  const cases = JSON.parse(readFileSync(new URL("categories.json", import.meta.url), "utf-8"));
  for (const [cell, category] of cases) {
    assert.equal(categoryOf(cell), category, JSON.stringify(cell));
    if (category !== null) assert.equal(categoryOf(category), category);
  }
  assert.equal(categoryOf(new Date("2024-02-29T23:00Z")), "2024-02-29T23:00:00+00:00");
  assert.equal(categoryOf(Infinity), "inf");
  assert.equal(categoryOf(12345678901234567890n), "12345678901234567890");
  assert.deepEqual([categoryOf(NaN), categoryOf(undefined)], [null, null]);
  for (const cell of [[1], {}, Symbol("x")]) {
    assert.throws(() => categoryOf(cell), /must be a text, a number, true or false, or a date; rec/);
  }
});
