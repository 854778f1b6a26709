// What is wrong with a bundle or an argument is one clear error.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";

import { folder } from "../src/folder.js";
import { BundleError, load, Refusal } from "../src/index.js";
import { describeCases, FOLDER } from "./cases.js";

const ort = await import("onnxruntime-node");
const decode = (bytes) => new TextDecoder().decode(bytes);
const encode = (text) => new TextEncoder().encode(text);

/** Return a reader of a bundle, with some files replaced. */
function altered(changes, name = "translate") {
  const own = folder(join(FOLDER, name));
  const read = async (path) => {
    const bytes = new Uint8Array(await own(path));
    return path in changes ? changes[path](bytes) : bytes;
  };
  return Object.assign(read, { where: "toy" });
}

const manifestWith = (change) => ({
  "manifest.json": (bytes) => {
    const manifest = JSON.parse(decode(bytes));
    change(manifest);
    return encode(JSON.stringify(manifest));
  },
});
const PIECES = encode('{"type": "sentencepiece"}');
const PIECES_SHA256 = createHash("sha256").update(PIECES).digest("hex");
const missing = () => {
  throw Object.assign(new Error("no such file"), { code: "ENOENT" });
};
const flipped = (bytes) => bytes.map((byte, place) => (place === bytes.length - 1 ? byte ^ 1 : byte));
const CASES = {
  "a changed byte": [
    { "onnx/encoder.onnx": flipped },
    /^toy: onnx\/encoder\.onnx does not have the manifest's sha256: altered\. Copy or export/,
  ],
  "a truncated file": [
    { "tokenizer/target.json": (bytes) => bytes.subarray(1) },
    /^toy: tokenizer\/target\.json has \d+ bytes, expected \d+: truncated or altered\. Copy/,
  ],
  "a missing file": [
    { "onnx/decoder_step.onnx": missing },
    /^toy: onnx\/decoder_step\.onnx is missing\. Copy or export the bundle again\.$/,
  ],
  "no manifest": [
    { "manifest.json": missing },
    /^toy has no manifest\.json; expected a bundle, as seqkeras export makes it\.$/,
  ],
  "half a manifest": [
    { "manifest.json": (bytes) => bytes.subarray(0, 99) },
    /^toy: manifest\.json: is not valid JSON \(.*\): it is truncated or altered\. Copy or export/,
  ],
  "a newer schema": [
    manifestWith((manifest) => { manifest.schema_version = 99; }),
    /^toy: manifest\.json: has schema 99; this seqkeras-serving reads schema 3\. Upgrade/,
  ],
  "an older schema": [
    manifestWith((manifest) => { manifest.schema_version = 2; }),
    /^toy: manifest\.json: has schema 2; this seqkeras-serving reads schema 3\. Export the bundle/,
  ],
  "another pipeline": [
    manifestWith((manifest) => { manifest.pipeline = "Dream"; }),
    /^toy: manifest\.json: asks for the pipeline 'Dream'; this seqkeras-serving has Translate, .*\./,
  ],
  "two wrong fields": [
    manifestWith((manifest) => {
      manifest.limits.source_length = 0;
      manifest.decoding.num_beams = 0;
    }),
    /limits\.source_length must be at least 1; received 0; decoding\.num_beams must be at least 1/,
  ],
  "fields of other kinds": [
    manifestWith((manifest) => {
      manifest.task = 5;
      manifest.colour = "red";
      delete manifest.limits;
    }),
    /task must be a string; received 5; limits is missing; colour is unknown\.$/,
  ],
  "a path outside": [
    manifestWith((manifest) => {
      manifest.files["../secret"] = Object.values(manifest.files)[0];
      manifest.tokenizers.source = "../secret";
    }),
    /path '\.\.\/secret' must lie inside the bundle\.$/,
  ],
  "an address of memory as a file": [
    manifestWith((manifest) => {
      manifest.files["onnx/*/_ORT_MEM_ADDR_/*"] = Object.values(manifest.files)[0];
    }),
    /path 'onnx\/\*\/_ORT_MEM_ADDR_\/\*' must lie inside the bundle\.$/,
  ],
  "other inputs than the graph's": [
    manifestWith((manifest) => { manifest.graphs.encoder.inputs[0].dtype = "int8"; }),
    /encoder\.onnx is not the encoder graph expected: input token_ids is int64 \(.*\), not int8 \(/,
  ],
  "no graph": [
    manifestWith((manifest) => { delete manifest.graphs.encoder; }),
    /^toy: manifest\.json: no encoder graph is named\. Export the bundle again\.$/,
  ],
  "no tokenizer": [
    manifestWith((manifest) => { delete manifest.tokenizers.source; }),
    /^toy: manifest\.json: no source tokenizer is named\. Export the bundle again\.$/,
  ],
};

describeCases("a wrong bundle is refused in one line", () => {
  for (const [name, [changes, message]] of Object.entries(CASES)) {
    it(name, async () => {
      await assert.rejects(load(altered(changes), ort), (error) => {
        assert.ok(error instanceof BundleError);
        assert.match(error.message, /** @type {RegExp} */ (message));
        assert.ok(!error.message.includes("\n"));
        return true;
      });
    });
  }

  it("rows of a table whose columns have one name", async () => {
    const columns = [{ name: "a" }, { name: "a" }];
    const change = manifestWith((manifest) => { manifest.settings.rows = { columns }; });
    await assert.rejects(load(altered(change, "forecast"), ort), {
      name: "BundleError",
      message: "toy: manifest.json: settings.rows: rows must have columns of different names; "
        + "received a, a. Export the bundle again.",
    });
  });

  it("a SentencePiece model, before a graph is read", async () => {
    const changes = manifestWith((manifest) => {
      manifest.files["tokenizer/target.json"] = { bytes: PIECES.length, sha256: PIECES_SHA256 };
    });
    const read = [];
    const reader = altered({ ...changes, "tokenizer/target.json": () => PIECES });
    const noted = Object.assign((path) => { read.push(path); return reader(path); }, { where: "toy" });
    await assert.rejects(load(noted, ort), {
      message: "toy: tokenizer/target.json: a SentencePiece model is not read in JavaScript: "
        + "serve this bundle by Python.",
    });
    assert.deepEqual(read.filter((path) => path.endsWith(".onnx")), []);
  });

  it("a precision that the bundle lacks", async () => {
    await assert.rejects(load(altered({}), ort, { precision: "int3" }), {
      name: "Refusal",
      message: "load: precision must be one of the bundle's, float32; received 'int3'.",
    });
  });

  it("an option that there is not", async () => {
    const translate = await load(altered({}), ort);
    await assert.rejects(translate("up|a", /** @type {any} */ ({ beams: 3 })), TypeError);
  });
});

it("a bundle of version 0.2.0 is read", async () => {
  const released = new URL("../../../tests/serving/released/0.2.0", import.meta.url);
  const translate = await load(folder(fileURLToPath(released)), ort);
  assert.equal((await translate("up|bad")).text, "cbe");
});

it("arguments that are no reader and no runtime are refused", async () => {
  await assert.rejects(load(/** @type {any} */ ("toy"), ort), Refusal);
  await assert.rejects(load(() => new Uint8Array(), /** @type {any} */ ({})), {
    message: /^load: ort must be the module onnxruntime-web or onnxruntime-node; received Object/,
  });
  await assert.rejects(load(() => new Uint8Array(), ort, { threads: 0 }), {
    message: "load: threads must be a whole number from 1 to 1024; received number 0.",
  });
});

it("onnxruntime's telemetry is off unless the user has set it", () => {
  assert.equal(process.env.ORT_DISABLE_TELEMETRY, "1");
});
