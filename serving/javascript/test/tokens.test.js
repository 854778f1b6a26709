// Every tokenizer gives the ids, offsets and texts of Python, on every code point.

import assert from "node:assert/strict";
import { it } from "node:test";

import { Subwords } from "../src/text/subwords.js";
import { describeCases, readJSON } from "./cases.js";

// The library of Python reorders marks before it drops some; the last offset is then one less.
const MOST_OTHER_OFFSETS = 1e-3;

describeCases("tokens are those of Python", () => {
  const { texts, tokenizers } = readJSON("tokens.json");
  for (const [name, expected] of Object.entries(tokenizers)) {
    it(`${name}, of ${texts.length} texts`, async () => {
      const tokenizer = await Subwords.of(expected.file);
      let others = 0;
      texts.forEach((text, place) => {
        const { tokenIds, offsets } = tokenizer.analyze([text]);
        assert.deepEqual(tokenIds, expected.ids[place], text);
        assert.equal(tokenizer.decode(tokenIds), expected.texts[place], text);
        if (!(place in expected.offsets)) return;
        if (JSON.stringify(offsets) !== JSON.stringify(expected.offsets[place])) others += 1;
      });
      assert.ok(others <= MOST_OTHER_OFFSETS * texts.length, `${others} texts with other offsets`);
      const pair = tokenizer.analyze(["the cat", "sat on"]);
      assert.deepEqual({ ids: pair.tokenIds, segments: pair.segmentIds }, expected.pair);
    });
  }
});
