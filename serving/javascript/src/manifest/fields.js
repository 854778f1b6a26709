// JSON checked against declared kinds of values.

/**
 * @callback Kind checks a value, and returns it with defaults.
 * @param {any} value parsed JSON.
 * @param {string} where the path of the value, for errors; "" for the whole.
 * @param {string[]} problems every reason against the value is appended.
 * @returns {any}
 */

/** @typedef {{kind: Kind, byDefault?: () => any}} Field */

const simple = (expected, fits) => (value, where, problems) => {
  if (!fits(value)) problems.push(`${where} must be ${expected}; received ${short(value)}`);
  return value;
};

export const string = simple("a string", (value) => typeof value === "string");
export const integer = simple("a whole number", Number.isSafeInteger);
export const number = simple("a number", Number.isFinite);
export const flag = simple("true or false", (value) => typeof value === "boolean");
export const axis = simple(
  "a whole number or a string",
  (value) => typeof value === "string" || Number.isSafeInteger(value),
);
export const anything = (value) => value;
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const content = simple("an object", isObject);

/** @returns {Kind} */
export const optional = (kind) => (value, where, problems) =>
  value === null ? null : kind(value, where, problems);

/** @returns {Kind} */
export const list = (kind) => (value, where, problems) => {
  if (!Array.isArray(value)) return simple("a list", Array.isArray)(value, where, problems);
  return value.map((inner, place) => kind(inner, `${where}[${place}]`, problems));
};

/** @returns {Kind} */
export const record = (kind) => (value, where, problems) => {
  if (!isObject(value)) return content(value, where, problems);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, kind(inner, `${where}.${name}`, problems)]),
  );
};

/** A field that must be there. @returns {Field} */
export const required = (kind) => ({ kind });

/** A field that may be left out. @returns {Field} */
export const byDefault = (kind, value) => ({ kind, byDefault: () => structuredClone(value) });

/**
 * An object with these fields and no other.
 *
 * @param {Record<string, Field>} declared
 * @returns {Kind}
 */
export const object = (declared) => (value, where, problems) => {
  if (!isObject(value)) {
    problems.push(`${where || "it"} must be an object; received ${short(value)}`);
    return {};
  }
  const inside = where ? `${where}.` : "";
  const found = {};
  for (const [name, field] of Object.entries(declared)) {
    if (Object.hasOwn(value, name)) found[name] = field.kind(value[name], inside + name, problems);
    else if (field.byDefault) found[name] = field.byDefault();
    else problems.push(`${inside}${name} is missing`);
  }
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(declared, name)) problems.push(`${inside}${name} is unknown`);
  }
  return found;
};

function short(value) {
  const text = [...JSON.stringify(value)];
  return text.length <= 40 ? text.join("") : `${text.slice(0, 39).join("")}…`;
}
