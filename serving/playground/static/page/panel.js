// The answer of one side: the server, or this browser.

import { element } from "./element.js";
import { Latest } from "./latest.js";
import { duration, megabytes } from "./numbers.js";
import { TokenWanted } from "./server.js";

/** @typedef {import("./types.js").Question} Question */
/** @typedef {import("./types.js").Values} Values */
/** @typedef {{question: Question, values: Values}} Asked */

export class Panel {
  #side;
  #view;
  #manifest;
  #open;
  #title = element("h2", {});
  #time = element("span", { class: "time" });
  #said = element("p", { class: "spoken", role: "status" });
  #body = element("div", { class: "body" });
  #note = element("p", { class: "problem" });

  /**
   * @param {string} side who answers.
   * @param {import("./types.js").View} view
   * @param {import("./types.js").Manifest} manifest
   * @param {(report: import("./browser.js").Report) => Promise<import("./types.js").Side>} open returns
   *   the side, when it is ready.
   */
  constructor(side, view, manifest, open) {
    this.#side = side;
    this.#view = view;
    this.#manifest = manifest;
    this.#open = open;
    /** @type {Latest<Asked>} */
    this.latest = new Latest((asked, signal) => this.#run(asked, signal));
    this.#note.hidden = true;
    this.element = element("section", { class: "panel" },
      element("header", {}, this.#title, this.#time), this.#said, this.#note, this.#body);
    this.title("");
  }

  /** Name the bundle that answers; "" where there is one only. @param {string} bundle */
  title(bundle) {
    this.#title.textContent = bundle ? `${this.#side}: ${bundle}` : this.#side;
    this.element.setAttribute("aria-label", `Answer ${bundle ? `of ${bundle}, ` : ""}${this.#side}`);
  }

  /** Show that nothing is asked. */
  clear() {
    this.latest.stop();
    this.#tell("", "");
    this.#body.replaceChildren(element("p", { class: "note" }, "The answer appears as you type."));
  }

  /** Show what is wrong with a question. @param {string} problem */
  refuse(problem) {
    this.latest.stop();
    this.#tell("", problem);
  }

  /** @param {Asked} asked @param {AbortSignal} signal */
  async #run({ question, values }, signal) {
    this.element.setAttribute("aria-busy", "true");
    try {
      const side = await this.#opened();
      if (signal.aborted) return;
      if (question.streams) await this.#stream(side, question, values, signal);
      else {
        const { answer, seconds } = await side.answer(question, signal);
        if (!signal.aborted) this.#show(answer, values, duration(seconds));
      }
    } catch (error) {
      if (error instanceof TokenWanted) window.dispatchEvent(new Event("token-wanted"));
      if (!signal.aborted) this.#tell("", String(/** @type {Error} */ (error).message ?? error));
    } finally {
      this.element.removeAttribute("aria-busy");
    }
  }

  async #opened() {
    try {
      return await this.#open((done, all) => this.#load(done, all));
    } catch (error) {
      this.#body.replaceChildren(); // it shows what is loaded
      throw error;
    }
  }

  #load(done, all) {
    const said = `Loading ${megabytes(all)}`;
    const progress = element("progress", { max: all, value: Math.min(done, all), "aria-label": said });
    this.#tell("", "", said);
    this.#body.replaceChildren(element("p", { class: "note" }, `${said} …`), progress);
  }

  async #stream(side, question, values, signal) {
    const begin = performance.now();
    let [text, first] = ["", 0];
    for await (const piece of side.stream(question, signal)) {
      first ||= performance.now() - begin;
      text += piece;
      if (signal.aborted) return;
      this.#replace({ text, streams: true }, values);
    }
    if (signal.aborted) return;
    const whole = performance.now() - begin;
    const time = first ? `first letters after ${duration(first / 1000)}, all in ${duration(whole / 1000)}` : duration(whole / 1000);
    this.#show({ text }, values, time);
  }

  #show(answer, values, time) {
    this.#tell(time, "", this.#view.say(answer));
    this.#replace(answer, values);
  }

  /** Show an answer; what was unfolded in the one before it stays so. */
  #replace(answer, values) {
    const unfolded = [...this.#body.querySelectorAll("details")].map(({ open }) => open);
    this.#body.replaceChildren(...this.#view.show(answer, values, this.#manifest).filter((node) => node !== null));
    this.#body.querySelectorAll("details").forEach((details, place) => { details.open = unfolded[place] ?? false; });
  }

  #tell(time, problem, said = problem) {
    this.#time.textContent = time;
    this.#note.textContent = problem;
    this.#note.hidden = !problem;
    this.#body.classList.toggle("old", Boolean(problem));
    this.#said.textContent = said;
  }
}
