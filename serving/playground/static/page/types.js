// The types of the page's parts.

/** @typedef {import("../../../javascript/src/manifest/format.js").Manifest} Manifest */
/**
 * A bundle in page.json.
 *
 * @typedef {object} Entry
 * @property {string} name
 * @property {string} pipeline
 * @property {string} files the address below which its files lie.
 * @property {string} unread why JavaScript does not read it, or "".
 */
/**
 * page.json: which bundles there are, and who can answer.
 *
 * @typedef {object} Content
 * @property {Entry[]} bundles
 * @property {boolean} server whether a server does.
 * @property {{missing: string, bytes: number}} browser why a browser can not, or "", and the bytes
 *   of onnxruntime-web.
 */
/** @typedef {string | number | boolean | null} Value of a field. */
/** @typedef {Record<string, any>} Values of the fields, by name. */
/**
 * A control of a form.
 *
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {"line" | "area" | "select" | "number" | "check"} kind
 * @property {Value} [value] at first.
 * @property {string[]} [choices] of a select.
 * @property {number} [min]
 * @property {number} [max]
 * @property {number | "any"} [step]
 * @property {number} [rows] of an area.
 * @property {string} [hint]
 * @property {boolean} [option] whether it is one of the options, below the inputs.
 * @property {boolean} [code] whether it is read by programs: from left to right, in even letters.
 */
/**
 * What is asked: one input, or several.
 *
 * @typedef {object} Question
 * @property {any} [input]
 * @property {any[]} [inputs]
 * @property {Record<string, any>} options
 * @property {boolean} [streams] whether the answer comes piece by piece.
 */
/**
 * How the page shows a pipeline.
 *
 * @typedef {object} View
 * @property {string} verb what it does, as a heading.
 * @property {(manifest: Manifest) => Field[]} fields
 * @property {(example: any, manifest: Manifest) => Values} values of the fields for an example.
 * @property {(values: Values, manifest: Manifest) => Question | null} question null while something
 *   is missing; an Error says what is wrong.
 * @property {(answer: any, values: Values, manifest: Manifest) => (Node | null)[]} show an answer,
 *   or a list of them to several inputs.
 * @property {(answer: any) => string} say it in a line, for those who hear the page.
 * @property {number} [delay] milliseconds from the last letter to the question.
 * @property {boolean} [again] whether the same question may have another answer.
 */
/**
 * Who answers: the server, or this browser.
 *
 * @typedef {object} Side
 * @property {(question: Question, signal: AbortSignal) => Promise<{answer: any, seconds: number}>} answer
 * @property {(question: Question, signal: AbortSignal) => AsyncGenerator<string>} stream
 */
export {};
