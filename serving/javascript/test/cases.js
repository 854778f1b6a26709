// The bundles and answers that Python wrote, and the comparison with them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

/** The folder that `python -m tests.serving.javascript.cases FOLDER` wrote. */
export const FOLDER = process.env.SEQKERAS_JAVASCRIPT_CASES ?? "";
const MISSING = "needs SEQKERAS_JAVASCRIPT_CASES=FOLDER, which, in the checkout, "
  + "`python -m tests.serving.javascript.cases FOLDER` writes";
const TOLERANCE = 1e-4;

/**
 * Describe tests that read that folder; without it they are a single test that is skipped.
 *
 * @param {string} name
 * @param {() => void} tests
 */
export function describeCases(name, tests) {
  if (FOLDER) describe(name, tests);
  else it(name, { skip: MISSING });
}

/** Return name of a bundle -> its cases. */
export const readCases = () => readJSON("cases.json");

/** Return the content of JSON in that folder. */
export const readJSON = (name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8"));

/** Assert that an answer is that of Python: texts equal, numbers within 1e-4. */
export function assertSame(actual, expected, where) {
  if (typeof expected === "number") {
    const off = Math.abs(actual - expected) / Math.max(1, Math.abs(expected));
    assert.ok(off <= TOLERANCE, `${where}: ${actual} is not ${expected}`);
  } else if (Array.isArray(expected)) {
    assert.equal(actual?.length, expected.length, `${where}: the number of entries`);
    expected.forEach((value, place) => assertSame(actual[place], value, `${where}[${place}]`));
  } else if (typeof expected === "object" && expected !== null) {
    for (const [name, value] of Object.entries(expected)) {
      assertSame(actual?.[name], value, `${where}.${name}`);
    }
    const more = Object.keys(actual).filter((name) => !(name in expected));
    for (const name of more) assert.ok(isNothing(actual[name]), `${where} has ${name} too`);
  } else assert.equal(actual, expected, where);
}

const isNothing = (value) =>
  value === null || value === undefined
  || (typeof value === "object" && !Object.keys(value).length);
