// Classify: the labels of a text, a pair of texts or a tree, or its number.

import { element } from "../element.js";
import { percent, short } from "../numbers.js";
import { bars } from "../parts/bars.js";
import { named } from "../parts/labels.js";
import { attention } from "../parts/heads.js";
import { ATTENTION, attentionOption } from "./attention.js";
import { framesField, framesOf, framesText, readsFrames } from "./frames.js";

const UNFOLDED = 10; // labels, unless the user asks for more
const MOST = 1000; // labels whose scores are asked for
const readsTrees = (manifest) => "words" in manifest.tokenizers;

/** @type {import("../types.js").View} */
export const classify = {
  verb: "Classify",
  fields: (manifest) => {
    const inputs = [];
    if (readsFrames(manifest)) inputs.push(framesField);
    else if (readsTrees(manifest)) {
      inputs.push(manifest.settings.tree_shape ? { name: "text", label: "Text", kind: "area", rows: 3 }
        : { name: "text", label: "Tree, in brackets", kind: "area", rows: 5, code: true },
        { name: "nodes", label: "Every subtree", kind: "check", value: true });
    } else {
      const { pairs = null } = manifest.settings;
      inputs.push({ name: "text", label: "Text", kind: "area", rows: 3 });
      if (pairs !== false) {
        inputs.push({ name: "pair", label: pairs ? "Second text" : "Second text, if any", kind: "area", rows: 3 });
      }
    }
    return [...inputs, ...attentionOption(manifest)];
  },
  values: (example, manifest) => {
    if (readsFrames(manifest)) return { text: framesText(example) };
    if (Array.isArray(example)) return { text: example[0], pair: example[1] ?? "" };
    return typeof example === "string" ? { text: example, pair: "" } : { pair: "", ...example };
  },
  question: ({ text, pair = "", nodes, attention: wanted }, manifest) => {
    if (!text.trim() || (manifest.settings.pairs && !pair.trim())) return null;
    const options = {
      ...(nodes ? { nodes } : {}), ...(manifest.settings.labels?.length > MOST ? { top: MOST } : {}),
      ...(wanted ? ATTENTION : {}),
    };
    if (readsFrames(manifest)) return { input: framesOf(text), options };
    return { input: pair.trim() ? { text, pair } : text, options };
  },
  show: (answer, _, { settings }) => [
    Object.keys(answer.scores ?? {}).length ? classes(answer, settings.labels.length) : element("p", { class: "text" }, short(answer.score)),
    answer.nodes?.length ? element("section", {}, element("h3", {}, "Subtrees"), tree(answer.nodes)) : null,
    attention(answer, "What each word (row) attends to (column)"),
  ],
  say: ({ labels, score }) => (labels?.length ? `${named(labels)}, ${percent(score)}` : short(score)),
};

/** The labels that have a score, and how many others there are of `count`. */
function classes({ labels = [], score, scores }, count) {
  const sorted = Object.entries(scores).sort(([, one], [, other]) => other - one);
  const none = labels[0] === null ? [{ label: named(labels), share: score, chosen: true }] : [];
  const list = bars("Labels and their probabilities", [...none, ...sorted.map(([label, share]) => ({
    label, share, chosen: labels.includes(label),
  }))], UNFOLDED);
  const others = count - sorted.length;
  if (others <= 0) return list;
  const words = others === 1 ? "1 less probable label is" : `${others} less probable labels are`;
  return element("section", {}, list, element("p", { class: "note" }, `${words} not shown.`));
}

const tree = (nodes) => element("table", { class: "rows" },
  element("thead", {}, element("tr", {}, ["Words", "Label", "Probability"].map((name) => element("th", { scope: "col" }, name)))),
  element("tbody", {}, nodes.map(({ text, labels, score }) => element("tr", {},
    element("td", { dir: "auto" }, text), element("td", {}, labels.join(", ")), element("td", {}, percent(score))))));
