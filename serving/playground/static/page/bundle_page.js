// The page of a bundle: its form, its examples, and the answers to them.

import { Answers, missingOf } from "./answers.js";
import { bytesOf } from "./browser.js";
import { CodeSection } from "./code.js";
import { copyButton } from "./copy.js";
import { element } from "./element.js";
import { Form } from "./form.js";
import { linkTo } from "./link.js";
import { VIEWS } from "./pipelines/index.js";
import { headers, manifestOf, Server } from "./server.js";
import { localSnippets, snippets } from "./snippets.js";
import { StreamSection } from "./stream.js";
import { Where } from "./where.js";

const DELAY = 120; // milliseconds from the last letter to the question
const MOST_EXAMPLES = 5;
const LONGEST_EXAMPLE = 60; // letters on a button

/** @typedef {import("./types.js").Entry} Entry */
/** @typedef {import("./types.js").Content} Content */

export class BundlePage {
  #view;
  #manifest;
  #content;
  #form;
  #answers;
  /** @type {Answers | null} those of the bundle beside it. */
  #others = null;
  #place = element("div", { class: "answers" });
  #problem = element("p", { class: "problem", role: "alert" });
  #compare;
  #where;
  #code;
  /** @type {CodeSection | null} that of the bundle beside it. */
  #otherCode = null;
  /** @type {StreamSection | null} */
  #stream = null;

  /**
   * @param {Entry} entry
   * @param {import("./types.js").Manifest} manifest
   * @param {Content} content
   * @param {{given: URLSearchParams, compared: string}} link what is filled in: if nothing, the first example.
   */
  constructor(entry, manifest, content, { given, compared }) {
    this.#manifest = manifest;
    this.#content = content;
    this.#view = VIEWS[manifest.pipeline];
    this.#form = new Form(this.#view.fields(manifest), () => this.#ask(this.#view.delay ?? DELAY));
    this.#answers = new Answers(entry, manifest, content);
    const missing = missingOf(entry, content);
    this.#where = new Where(content.server, missing, () => bytesOf(this.#all().map(({ browser }) => browser)), () => this.#move());
    this.#compare = this.#comparison(entry);
    this.#code = new CodeSection((question) => this.#written(question, entry));
    this.#place.append(this.#answers.element, this.#code.element);
    this.#problem.hidden = true;
    const link = () => {
      const found = linkTo(entry.name, this.#form.changed(), this.#others?.name);
      history.replaceState(null, "", found);
      return found;
    };
    this.element = element("div", { class: "bundle" },
      element("div", { class: "title" },
        element("h1", {}, entry.name), copyButton("Copy link", link), about(manifest)),
      element("div", { class: "columns" },
        element("form", { class: "ask", "aria-label": this.#view.verb, submit: (event) => event.preventDefault() },
          this.#form.inputs, this.#again(), this.#examples(), this.#form.options, this.#where.element,
          this.#compare?.parentElement, this.#problem),
        this.#place),
      this.#streams(missing));
    const [example] = manifest.examples;
    if (given.size) this.#form.restore(given);
    else if (example !== undefined) this.#form.fill(this.#view.values(example, manifest));
    this.#move();
    if (this.#compare && [...this.#compare.options].some(({ value }) => value && value === compared)) {
      this.#compare.value = compared;
      this.#beside();
    }
  }

  /** End what runs. */
  stop() {
    this.#stream?.stop();
    for (const answers of this.#all()) answers.stop();
  }

  /** End everything. */
  leave() {
    this.#stream?.leave();
    for (const answers of this.#all()) answers.leave();
  }

  #all() {
    return this.#others ? [this.#answers, this.#others] : [this.#answers];
  }

  /** The choice of a bundle beside this one, where there is another of its pipeline. @param {Entry} entry */
  #comparison(entry) {
    const names = this.#content.bundles
      .filter(({ name, pipeline }) => name !== entry.name && pipeline === entry.pipeline).map(({ name }) => name);
    if (!names.length) return null;
    const select = element("select", { id: "compare", change: () => this.#beside() },
      element("option", { value: "" }, "none"), names.map((name) => element("option", { value: name }, name)));
    element("div", { class: "field select" }, element("label", { for: "compare" }, "Second model"), select);
    return select;
  }

  /** Put the chosen bundle beside this one. */
  async #beside() {
    this.#others?.leave();
    this.#others?.element.remove();
    this.#otherCode?.element.remove();
    this.#others = this.#otherCode = null;
    const name = this.#compare?.value;
    const entry = this.#content.bundles.find((other) => name && other.name === name);
    this.#tell("");
    if (entry) {
      try {
        const manifest = await manifestOf(entry);
        if (this.#compare?.value !== name || !this.element.isConnected) return;
        this.#others = new Answers(entry, manifest, this.#content);
        this.#answers.element.after(this.#others.element);
        this.#otherCode = new CodeSection((question) => this.#written(question, entry), entry.name);
        this.#code.element.after(this.#otherCode.element);
      } catch (error) {
        this.#tell(/** @type {Error} */ (error).message);
      }
    }
    this.element.classList.toggle("comparing", this.#others !== null);
    for (const answers of this.#all()) answers.title(this.#others !== null);
    this.#where.measure();
    this.#move();
  }

  #tell(problem) {
    this.#problem.textContent = problem;
    this.#problem.hidden = !problem;
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
    this.#stream = new StreamSection(this.#manifest, this.#answers.browser);
    return this.#stream.element;
  }

  /** Ask those who shall answer. */
  #move() {
    for (const answers of this.#all()) {
      answers.choose(this.#where.names, answers === this.#answers && this.#stream !== null);
    }
    this.#ask(0);
  }

  #fill(example) {
    this.#form.fill(this.#view.values(example, this.#manifest));
    this.#ask(0);
  }

  #ask(delay) {
    const values = this.#form.values();
    const refused = this.#form.refused();
    const [question, other] = this.#all().map((answers) => answers.ask(values, refused ? `${refused} is out of its bounds` : "", delay));
    this.#code.show(question);
    this.#otherCode?.show(other);
  }

  /** Return the code of a question, by language. */
  #written(question, entry) {
    const absolute = (path) => new URL(path, document.baseURI).href;
    if (!this.#content.server) return localSnippets(question, absolute(entry.files));
    return snippets(question, { address: absolute(new Server(entry.name).address), needsToken: "authorization" in headers() });
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
  return element("p", { class: "about" }, parts.map((part, place) => element("span", {}, place < parts.length - 1 ? `${part} · ` : part)));
}
