// The switch: who answers.

import { element } from "./element.js";
import { megabytes } from "./numbers.js";

export const SERVER = "on the server";
export const BROWSER = "in this browser";

export class Where {
  #bytes;
  #size = element("span");
  /** @type {string[]} the names of those who answer. */
  names;

  /**
   * @param {boolean} server whether a server answers too.
   * @param {string} missing why this browser can not, or "".
   * @param {() => Promise<number>} bytes returns how many this browser loads.
   * @param {() => void} changed
   */
  constructor(server, missing, bytes, changed) {
    this.names = server ? [SERVER] : [];
    this.#bytes = missing ? null : bytes;
    this.measure();
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
        element("button", { type: "button", class: "main", click: load }, "Answer in this browser", this.#size));
      return;
    }
    const choice = (name, names, size = /** @type {Node | null} */ (null), checked = false) => {
      const id = `where-${name.replaceAll(" ", "-")}`;
      const change = () => {
        this.names = names;
        changed();
      };
      return element("div", {},
        element("input", { type: "radio", name: "where", id, checked, disabled: Boolean(missing) && !checked, change }),
        element("label", { for: id }, name, size));
    };
    this.element = element("fieldset", { class: "where" }, element("legend", {}, "Answer"),
      choice(SERVER, [SERVER], null, true), choice(BROWSER, [BROWSER], this.#size),
      choice("both", [SERVER, BROWSER]),
      why);
  }

  /** Say how much this browser loads. */
  async measure() {
    if (this.#bytes) this.#size.textContent = ` (loads ${megabytes(await this.#bytes())})`;
  }
}
