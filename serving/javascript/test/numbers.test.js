// Numbers as texts, by the table that Python's test reads too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";

import { numberOf } from "../src/written_numbers.js";

const TABLE = JSON.parse(readFileSync(new URL("numbers.json", import.meta.url), "utf-8"));

it("a text is the number that it writes", () => {
  for (const [text, decimal, number] of TABLE) {
    assert.equal(numberOf(text, decimal), number, JSON.stringify([text, decimal]));
  }
});
