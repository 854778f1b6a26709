// The answers of a bundle: a panel for each who may answer.

import { Browser } from "./browser.js";
import { element } from "./element.js";
import { Form } from "./form.js";
import { Panel } from "./panel.js";
import { VIEWS } from "./pipelines/index.js";
import { Server } from "./server.js";
import { BROWSER, SERVER } from "./where.js";

/** @typedef {import("./types.js").Entry} Entry */
/** @typedef {import("./types.js").Content} Content */
/** @typedef {import("./types.js").Manifest} Manifest */

/** Return why a bundle can not answer in this browser, or "". @param {Entry} entry @param {Content} content */
export const missingOf = ({ unread }, { browser: { missing } }) => unread || missing;

export class Answers {
  #manifest;
  #view;
  #defaults;
  /** @type {{name: string, panel: Panel}[]} */
  #sides = [];

  /**
   * @param {Entry} entry
   * @param {Manifest} manifest
   * @param {Content} content
   */
  constructor(entry, manifest, content) {
    this.#manifest = manifest;
    this.#view = VIEWS[manifest.pipeline];
    this.#defaults = new Form(this.#view.fields(manifest), () => {}).values();
    this.name = entry.name;
    this.browser = new Browser(entry.files, manifest, content.browser.bytes);
    const server = new Server(entry.name);
    if (content.server) this.#add(SERVER, async () => server);
    this.#add(BROWSER, async (report) => {
      const missing = missingOf(entry, content);
      if (missing) throw new Error(missing);
      return this.browser.open(report);
    });
    this.element = element("div", { class: "bundle-answers" }, this.#sides.map(({ panel }) => panel.element));
  }

  #add(name, open) {
    this.#sides.push({ name, panel: new Panel(name, this.#view, this.#manifest, open) });
  }

  /** Name the bundle in the titles, or not. @param {boolean} named */
  title(named) {
    for (const { panel } of this.#sides) panel.title(named ? this.name : "");
  }

  /**
   * Choose who answers.
   *
   * @param {string[]} names
   * @param {boolean} keeps whether the browser stays open though it does not answer.
   */
  choose(names, keeps) {
    for (const { name, panel } of this.#sides) {
      panel.element.hidden = !names.includes(name);
      if (panel.element.hidden) panel.latest.stop();
    }
    if (!names.includes(BROWSER) && !keeps) this.browser.close();
  }

  /**
   * Ask, and return what is asked: null while something is missing or wrong.
   *
   * @param {import("./types.js").Values} given the values of a form, whose fields may be another bundle's.
   * @param {string} refused what is wrong with them, or "".
   * @param {number} delay milliseconds in which a newer question may come.
   */
  ask(given, refused, delay) {
    const values = Object.fromEntries(Object.entries(this.#defaults)
      .map(([name, value]) => [name, name in given ? given[name] : value]));
    let question = null;
    let problem = refused;
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
    return problem ? null : question;
  }

  /** End what runs. */
  stop() {
    for (const { panel } of this.#sides) panel.latest.stop();
  }

  /** End everything. */
  leave() {
    this.stop();
    this.browser.close();
  }
}
