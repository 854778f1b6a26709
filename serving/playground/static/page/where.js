// The switch: who answers.

import { element } from "./element.js";
import { megabytes } from "./numbers.js";

export const SERVER = "on the server";
export const BROWSER = "in this browser";

export class Where {
  /** @type {string[]} the names of those who answer. */
  names;

  /**
   * @param {boolean} server whether a server answers too.
   * @param {string} missing why this browser can not, or "".
   * @param {import("./browser.js").Browser} browser
   * @param {() => void} changed
   */
  constructor(server, missing, browser, changed) {
    this.names = server ? [SERVER] : [];
    const size = element("span");
    if (!missing) browser.bytes().then((bytes) => { size.textContent = `loads ${megabytes(bytes)}`; });
    const why = missing ? element("p", { class: "note" }, `Not in this browser: ${missing}`) : null;
    if (!server && why) {
      this.element = why;
      return;
    }
    if (!server) {
      const load = () => {
        this.names = [BROWSER];
        this.element.remove();
        document.getElementById("main")?.focus(); // the button had it
        changed();
      };
      this.element = element("div", { class: "buttons" },
        element("button", { type: "button", class: "main", click: load }, "Answer in this browser: ", size));
      return;
    }
    const choice = (name, names, about, checked = false) => {
      const id = `where-${name.replaceAll(" ", "-")}`;
      const change = () => {
        this.names = names;
        changed();
      };
      return element("div", {},
        element("input", { type: "radio", name: "where", id, checked, disabled: Boolean(missing) && !checked, change }),
        element("label", { for: id }, name, about && element("span", { class: "note" }, " (", about, ")")));
    };
    this.element = element("fieldset", { class: "where" }, element("legend", {}, "Answer"),
      choice(SERVER, [SERVER], null, true), choice(BROWSER, [BROWSER], missing ? null : size),
      choice("both", [SERVER, BROWSER], null),
      why);
  }
}
