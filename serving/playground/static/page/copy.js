// A button that copies.

import { element } from "./element.js";

const [COPIED, SHOWN] = ["Copied", 2500]; // milliseconds

/**
 * Return a button that copies a text and says so.
 *
 * @param {string} label
 * @param {() => string} text an Error says why there is none.
 */
export function copyButton(label, text) {
  const said = element("span", { class: "note", role: "status" });
  const button = element("button", { type: "button", click: async () => {
    let message;
    try {
      message = await isCopied(text()) ? COPIED : "This browser lets no page copy";
    } catch (error) {
      message = /** @type {Error} */ (error).message;
    }
    said.textContent = message;
    setTimeout(() => { if (said.textContent === COPIED) said.textContent = ""; }, SHOWN);
    button.focus();
  } }, label);
  return element("span", { class: "copy" }, button, said);
}

async function isCopied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // browsers have no clipboard over HTTP from another machine
    const area = element("textarea", { class: "spoken" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}
