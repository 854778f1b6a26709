// The page of a bundle: its form, its examples, and the answers to them.

import { Browser } from "./browser.js";
import { element } from "./element.js";
import { Form } from "./form.js";
import { Panel } from "./panel.js";
import { VIEWS } from "./pipelines/index.js";
import { Server } from "./server.js";
import { StreamSection } from "./stream.js";
import { BROWSER, SERVER, Where } from "./where.js";

const DELAY = 120; // milliseconds from the last letter to the question
const MOST_EXAMPLES = 5;
const LONGEST_EXAMPLE = 60; // letters on a button

/**
 * A bundle in page.json.
 *
 * @typedef {object} Entry
 * @property {string} name
 * @property {string} files the address below which its files lie.
 * @property {string} unread why JavaScript does not read it, or "".
 */
/**
 * Who can answer, in page.json.
 *
 * @typedef {object} Hosts
 * @property {boolean} server whether a server does.
 * @property {{missing: string, bytes: number}} browser why a browser can not, or "", and the bytes
 *   of onnxruntime-web.
 */

export class BundlePage {
  #view;
  #manifest;
  #form;
  #browser;
  /** @type {{name: string, panel: Panel}[]} */
  #sides = [];
  #where;
  /** @type {StreamSection | null} */
  #stream = null;

  /**
   * @param {Entry} entry
   * @param {import("./types.js").Manifest} manifest
   * @param {Hosts} hosts
   */
  constructor(entry, manifest, hosts) {
    this.#manifest = manifest;
    this.#view = VIEWS[manifest.pipeline];
    this.#form = new Form(this.#view.fields(manifest), () => this.#ask(this.#view.delay ?? DELAY));
    this.#browser = new Browser(entry.files, manifest, hosts.browser.bytes);
    if (hosts.server) {
      const server = new Server(entry.name);
      this.#add(SERVER, async () => server);
    }
    this.#add(BROWSER, (report) => this.#browser.open(report));
    this.#where = new Where(hosts.server, entry.unread || hosts.browser.missing, this.#browser, () => this.#move());
    this.element = element("div", { class: "bundle" },
      element("div", { class: "title" }, element("h1", {}, entry.name), about(manifest)),
      element("div", { class: "columns" },
        element("form", { class: "ask", "aria-label": this.#view.verb, submit: (event) => event.preventDefault() },
          this.#form.inputs, this.#again(), this.#examples(), this.#form.options, this.#where.element),
        element("div", { class: "answers" }, this.#sides.map(({ panel }) => panel.element))),
      this.#streams(entry.unread || hosts.browser.missing));
    const [example] = manifest.examples;
    if (example !== undefined) this.#form.fill(this.#view.values(example, manifest));
    this.#move();
  }

  /** End what runs. */
  stop() {
    this.#stream?.stop();
    for (const { panel } of this.#sides) panel.latest.stop();
  }

  /** End everything. */
  leave() {
    this.stop();
    this.#stream?.leave();
    this.#browser.close();
  }

  #add(name, open) {
    this.#sides.push({ name, panel: new Panel(name, this.#view, this.#manifest, open) });
  }

  /** The stream of a bundle that has one, or why the page offers none. @param {string} missing */
  #streams(missing) {
    const { graphs } = this.#manifest;
    if (!graphs.stream) return null;
    const asksKnown = graphs.stream.inputs.some(({ name }) => name === "known");
    if (missing || asksKnown) {
      const why = missing || "the model reads what is known of the steps to come, which a recording lacks";
      return element("p", { class: "note" }, `No stream in this browser: ${why}`);
    }
    this.#stream = new StreamSection(this.#manifest, this.#browser);
    return this.#stream.element;
  }

  /** Ask those who shall answer. */
  #move() {
    for (const { name, panel } of this.#sides) {
      panel.element.hidden = !this.#where.names.includes(name);
      if (panel.element.hidden) panel.latest.stop();
    }
    if (!this.#where.names.includes(BROWSER) && !this.#stream) this.#browser.close();
    this.#ask(0);
  }

  #fill(example) {
    this.#form.fill(this.#view.values(example, this.#manifest));
    this.#ask(0);
  }

  #ask(delay) {
    const values = this.#form.values();
    const refused = this.#form.refused();
    let question = null;
    let problem = refused ? `${refused} is out of its bounds` : "";
    try {
      question = this.#view.question(values, this.#manifest);
    } catch (error) {
      problem ||= /** @type {Error} */ (error).message;
    }
    for (const { panel } of this.#sides) {
      if (panel.element.hidden) continue;
      if (problem) panel.refuse(problem);
      else if (question) panel.latest.ask({ question, values }, delay);
      else panel.clear();
    }
  }

  /** The buttons of a pipeline that may answer otherwise the next time. */
  #again() {
    if (!this.#view.again) return null;
    return element("div", { class: "buttons" },
      element("button", { type: "button", class: "main", click: () => this.#ask(0) }, "Again"),
      element("button", { type: "button", click: () => this.stop() }, "Stop"));
  }

  #examples() {
    const { examples } = this.#manifest;
    if (!examples.length) return null;
    const buttons = examples.slice(0, MOST_EXAMPLES).map((example) => {
      const values = this.#view.values(example, this.#manifest);
      const label = Object.values(values).filter((value) => typeof value === "string" && value).join(" · ");
      const cut = label.length > LONGEST_EXAMPLE ? `${[...label].slice(0, LONGEST_EXAMPLE).join("")}…` : label;
      return element("button", { type: "button", class: "example", dir: "auto", click: () => this.#fill(example) }, cut);
    });
    return element("div", { class: "examples", role: "group", "aria-label": "Examples" },
      element("span", { class: "caption", "aria-hidden": "true" }, "Examples"), buttons);
  }
}

/** Return what a bundle is, in a line. @param {import("./types.js").Manifest} manifest */
function about({ pipeline, task, limits, created, tokenizers }) {
  const unit = Object.keys(tokenizers).length ? "tokens" : "steps";
  const parts = [pipeline, task, `up to ${limits.source_length} ${unit}`, `made ${created.slice(0, 10)}`];
  return element("p", { class: "about" }, parts.join(" · "));
}
