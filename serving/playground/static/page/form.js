// The form of a bundle: a labelled control for each field.

import { element } from "./element.js";

/** @typedef {import("./types.js").Field} Field */

export class Form {
  #fields;
  /** @type {Map<string, any>} */
  #controls = new Map();
  /** @type {import("./types.js").Values} at the beginning. */
  #first;

  /**
   * @param {Field[]} fields
   * @param {() => void} changed is called as one types.
   */
  constructor(fields, changed) {
    this.#fields = fields;
    const rows = fields.map((field) => this.#row(field));
    const of = (isOption) => rows.filter((_, place) => Boolean(fields[place].option) === isOption);
    const options = of(true);
    this.inputs = element("div", { class: "inputs", input: changed }, of(false));
    this.options = options.length
      ? element("details", { class: "options", input: changed },
        element("summary", {}, "Options"), element("div", { class: "grid" }, options))
      : null;
    this.#first = this.values();
  }

  /** @returns {import("./types.js").Values} */
  values() {
    return Object.fromEntries(this.#fields.map(({ name, kind }) => {
      const control = this.#controls.get(name);
      if (kind === "check") return [name, control.checked];
      if (kind !== "number") return [name, control.value];
      return [name, control.value === "" ? null : control.valueAsNumber];
    }));
  }

  /** @param {import("./types.js").Values} values of some fields. */
  fill(values) {
    for (const [name, value] of Object.entries(values)) {
      const control = this.#controls.get(name);
      if (control?.type === "checkbox") control.checked = value;
      else if (control) control.value = value;
    }
  }

  /** Return the fields whose values are not those of the beginning, as texts. @returns {[string, string][]} */
  changed() {
    return Object.entries(this.values()).filter(([name, value]) => value !== this.#first[name])
      .map(([name, value]) => [name, String(value ?? "")]);
  }

  /** Fill in such texts, whoever wrote them. @param {URLSearchParams} given */
  restore(given) {
    for (const { name, kind, choices = [] } of this.#fields) {
      const text = given.get(name);
      if (text === null || (kind === "select" && !choices.includes(text))) continue;
      this.fill({ [name]: kind === "check" ? text === "true" : text });
    }
  }

  /** Return the name of the first control whose value its bounds refuse, or undefined. */
  refused() {
    return this.#fields.find(({ name }) => !this.#controls.get(name).checkValidity())?.label;
  }

  #row(field) {
    const { name, label, kind, hint } = field;
    const id = `field-${name}`;
    const control = made(field, id);
    this.#controls.set(name, control);
    const about = hint && element("small", { id: `${id}-hint` }, hint);
    if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
    const caption = element("label", { for: id }, label);
    return kind === "check"
      ? element("div", { class: "field check" }, control, caption, about)
      : element("div", { class: `field ${kind}` }, caption, control, about);
  }
}

/** @param {Field} field */
function made({ name, kind, value, choices, min, max, step, rows, code }, id) {
  const common = { id, name, autocomplete: "off", ...(code ? { class: "code", dir: "ltr" } : { dir: "auto" }) };
  if (kind === "area") {
    const area = element("textarea", { ...common, rows: rows ?? 3, spellcheck: "false" });
    area.value = String(value ?? "");
    return area;
  }
  if (kind === "select") {
    const options = (choices ?? []).map((choice) => element("option", { value: choice }, choice));
    const select = element("select", common, options);
    if (value !== undefined) select.value = String(value);
    return select;
  }
  const types = { line: "text", number: "number", check: "checkbox" };
  const input = element("input", { ...common, type: types[kind], min, max, step });
  if (kind === "check") input.checked = Boolean(value);
  else input.value = value === undefined || value === null ? "" : String(value);
  return input;
}
