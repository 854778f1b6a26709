/**
 * Runs a seqkeras bundle with onnxruntime, in Node, browsers and workers, with the answers of the
 * Python package `serving`.
 *
 *     import { load } from "seqkeras-serving";
 *     import { folder } from "seqkeras-serving/folder";
 *
 *     const translate = await load(folder("bundles/dates"), await import("onnxruntime-node"));
 *     (await translate("de|Samstag, 3. Mai 2014")).text; // "2014-05-03"
 *
 * In Node, onnxruntime's telemetry, which reports each process and graph to Microsoft, is off unless
 * ORT_DISABLE_TELEMETRY is set.
 */

import { BundleError, NoFiniteNumber, Refusal } from "./refusal.js";
import { shown } from "./checks.js";
import { Bundle } from "./manifest/files.js";
import { MANIFEST, UPGRADE } from "./manifest/format.js";
import { Runtime } from "./opening.js";
import { PIPELINES } from "./pipelines/index.js";

const { process } = /** @type {any} */ (globalThis);
if (process?.versions?.node) process.env.ORT_DISABLE_TELEMETRY ??= "1";

export { BundleError, NoFiniteNumber, Refusal };

/** @typedef {import("./manifest/files.js").Read} Read */
/** @typedef {import("./opening.js").Ort} Ort */
/** @typedef {import("./opening.js").RuntimeOptions} RuntimeOptions */

/**
 * Open a bundle and return the pipeline that its manifest names: a function of inputs and options.
 * Every file is verified against the manifest's sha256.
 *
 * @param {Read} read gives the bytes of a file of the bundle, by its path there.
 * @param {Ort} ort the module onnxruntime-web or onnxruntime-node.
 * @param {RuntimeOptions} [options]
 * @returns {Promise<import("./pipelines/pipeline.js").Callable>}
 * @throws {BundleError} if the bundle is missing, damaged, or made for a newer version.
 * @throws {Refusal} if the bundle lacks the precision, or an argument is wrong.
 */
export async function load(read, ort, options = {}) {
  if (typeof read !== "function") {
    throw new Refusal(
      "load: read must be a function from a path in the bundle to bytes, such as folder(path); "
        + `received ${shown(read)}`,
    );
  }
  const runtime = new Runtime(ort, options);
  const bundle = await Bundle.open(read, runtime.tokenizers);
  const { pipeline: name } = bundle.manifest;
  if (!Object.hasOwn(PIPELINES, name)) {
    const known = Object.keys(PIPELINES).join(", ");
    throw new BundleError(
      `asks for the pipeline '${name}'; this seqkeras-serving has ${known}`,
      { where: bundle.where, subject: MANIFEST, advice: UPGRADE },
    );
  }
  const pipeline = await PIPELINES[name].open(bundle, runtime);
  return pipeline.callable();
}
