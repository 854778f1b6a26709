// Scores as bars.

import { element } from "../element.js";
import { percent } from "../numbers.js";

/** Whether long lists are unfolded, from answer to answer. */
let unfolded = false;

/**
 * @typedef {object} Bar
 * @property {string} label
 * @property {number} share how long it is, from 0 to 1.
 * @property {string} [value] what is written beside it; the share as a percentage without it.
 * @property {boolean} [chosen] whether it is the answer.
 */

/**
 * Return a list of bars.
 *
 * @param {string} name of the list.
 * @param {Bar[]} rows
 * @param {number} [most] how many are shown, the others being folded; those that are chosen always are.
 */
export function bars(name, rows, most = rows.length) {
  const first = Math.max(most, rows.findLastIndex(({ chosen }) => chosen) + 1);
  const items = rows.map(({ label, share, value = percent(share), chosen = false }) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(Math.max(0, Math.min(share, 1))));
    return element("li", { class: chosen ? "chosen" : null },
      element("span", { class: "label", dir: "auto" }, label.split(/(?<=[_./-])/).flatMap((part) => [part, element("wbr")])), bar,
      element("span", { class: "value" }, value));
  });
  if (first < rows.length) items.splice(first, 0, more(rows.length - first));
  const list = element("ul", { class: "bars", "aria-label": name }, items);
  fold(list);
  return list;
}

/** The button that unfolds the rows after it, in each list of the page. */
const more = (count) => element("li", { class: "more" }, element("button", { type: "button", click: () => {
  unfolded = !unfolded;
  document.querySelectorAll(".bars").forEach(fold);
} }, `more (${count})`));

function fold(list) {
  list.querySelector(".more button")?.setAttribute("aria-expanded", String(unfolded));
  for (const item of list.querySelectorAll(".more ~ li")) item.hidden = !unfolded;
}
