// The request on the screen as code, to copy.

import { copyButton } from "./copy.js";
import { element } from "./element.js";

const MOST = 100_000; // characters that are shown
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/** What is open, from bundle to bundle. */
const shown = { open: false, language: "" };

export class CodeSection {
  #write;
  #code = element("code", {});
  #id;
  #pre;
  #tabs = element("div", { role: "tablist", "aria-label": "Language", keydown: (event) => this.#step(event) });
  /** @type {import("./types.js").Question | null} */
  #question = null;
  #text = "";

  /**
   * @param {(question: import("./types.js").Question) => Record<string, string>} write returns code by language.
   * @param {string} [name] of the bundle, beside another one.
   */
  constructor(write, name) {
    this.#write = write;
    this.#id = name === undefined ? "code" : "code-beside";
    this.#pre = element("div", { class: "shown", role: "tabpanel", id: this.#id, tabindex: 0 }, element("pre", {}, this.#code));
    this.element = element("details", { class: "panel code-section", open: shown.open, toggle: () => {
      shown.open = this.element.open;
      this.#draw();
    } },
    element("summary", {}, name === undefined ? "Code of this request" : `Code of this request to ${name}`),
    element("div", { class: "bar-of-tabs" }, this.#tabs, copyButton("Copy", () => this.#text)),
    this.#pre);
    this.element.hidden = true;
  }

  /** Show the code of a question; null hides it. @param {import("./types.js").Question | null} question */
  show(question) {
    this.#question = question;
    this.element.hidden = question === null;
    this.#draw();
  }

  #draw() {
    if (!this.element.open || !this.#question) return;
    const found = this.#write(this.#question);
    const languages = Object.keys(found);
    const chosen = languages.includes(shown.language) ? shown.language : languages[0];
    if (this.#tabs.childElementCount !== languages.length) this.#tabs.replaceChildren(...languages.map((language) => this.#tab(language)));
    for (const tab of this.#tabs.children) {
      const isChosen = tab.textContent === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.setAttribute("tabindex", isChosen ? "0" : "-1");
    }
    this.#pre.setAttribute("aria-label", chosen);
    this.#text = found[chosen];
    const { length } = this.#text;
    this.#code.textContent = length <= MOST ? this.#text
      : `Too long to be shown: ${length.toLocaleString("en")} characters. The button copies them.`;
  }

  #tab(language) {
    return element("button", { type: "button", role: "tab", "aria-controls": this.#id, click: () => {
      shown.language = language;
      this.#draw();
    } }, language);
  }

  /** Go to the tab beside this one. @param {KeyboardEvent} event */
  #step({ key }) {
    const tabs = /** @type {HTMLElement[]} */ ([...this.#tabs.children]);
    const place = tabs.findIndex((tab) => tab === document.activeElement);
    const next = key in STEPS && tabs.at((place + STEPS[key]) % tabs.length);
    if (!next) return;
    next.click();
    next.focus();
  }
}
