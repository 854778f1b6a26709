// Reads a manifest's settings as the fields that a pipeline declares.

import { BundleError } from "../refusal.js";
import { quoted } from "../checks.js";
import { MANIFEST, parseSettings } from "../manifest/format.js";
import { Rows } from "../rows.js";
import { Subwords } from "../text/subwords.js";

export const ROLE = "model";

/** @typedef {import("../manifest/format.js").TensorSpec} TensorSpec */

/**
 * Return the manifest's settings.
 *
 * @param {import("../manifest/files.js").Bundle} bundle
 * @param {Record<string, import("../manifest/fields.js").Field>} declared the fields; an `output` of
 *   null becomes the graph's only output, `rows` becomes `Rows`.
 * @param {(settings: any, outputs: Map<string, TensorSpec>) => Iterable<string>} problemsOf
 * @returns {any}
 * @throws {BundleError} with every reason, if they are invalid.
 */
export function readSettings(bundle, declared, problemsOf) {
  const { manifest, where } = bundle;
  if (!manifest.graphs[ROLE]) {
    throw new BundleError(`no ${ROLE} graph is named`, { where, subject: MANIFEST });
  }
  const { settings, problems } = parseSettings(manifest, declared);
  if (!problems.length) {
    const outputs = new Map(manifest.graphs[ROLE].outputs.map((spec) => [spec.name, spec]));
    if (outputs.size === 1 && settings.output === null) [settings.output] = outputs.keys();
    problems.push(...problemsOf(settings, outputs));
    if (settings.rows) {
      settings.rows = new Rows(settings.rows);
      problems.push(...[...settings.rows.problems()].map((reason) => `settings.rows: ${reason}`));
    }
  }
  if (problems.length) throw new BundleError(problems, { where, subject: MANIFEST });
  return settings;
}

/** Yield problems of an output that the settings name; `axes` are sizes, or names of open axes. */
export function* wrongOutput(outputs, name, axes, field = "output") {
  if (!outputs.has(name)) {
    const received = name === null ? "null" : quoted(name);
    yield `settings.${field} must be one of ${[...outputs.keys()].join(", ")}; received ${received}`;
    return;
  }
  const { shape } = outputs.get(name);
  const fits = shape.length === axes.length && shape.every((size, axis) =>
    typeof size !== "number" || typeof axes[axis] !== "number" || size === axes[axis]);
  if (!fits) {
    yield `${described(name)} must be (${axes.join(", ")}) to these settings; it is `
      + `(${shape.join(", ")})`;
  }
}

/** Yield problems of an output of logits: one logit for each label, or one without labels. */
export function* wrongLogits(outputs, name, axes, labels, noneOfThese = false) {
  const shape = outputs.get(name)?.shape ?? [];
  const expected = (labels.length || 1) + Number(noneOfThese);
  const found = shape.length === axes.length + 1 ? shape.at(-1) : null;
  if (typeof found !== "number" || found === expected) {
    yield* wrongOutput(outputs, name, [...axes, expected]);
  } else if (!labels.length) {
    yield `settings.labels is missing, and ${described(name)} has ${found} logits`;
  } else {
    yield `settings.labels names ${labels.length} label${labels.length === 1 ? "" : "s"}`
      + `${noneOfThese ? ", and none_of_these adds one" : ""}; `
      + `${described(name)} has ${found} logit${found === 1 ? "" : "s"}`;
  }
}

/** Yield problems of the stride of windows, or of null. */
export function* strideProblems(stride) {
  if (stride !== null && stride < 1) yield `settings.stride must be at least 1; received ${stride}`;
}

/** Throw a BundleError if there is a stride, and a tokenizer that makes no windows. */
export function requireWindows(bundle, stride, tokenizer) {
  if (stride !== null && !(tokenizer instanceof Subwords)) {
    const reason = "settings.stride needs WordPiece or byte-level BPE";
    throw new BundleError(reason, { where: bundle.where });
  }
}

const described = (name) => (name === "output" ? "the model's output" : `the model's output ${name}`);
