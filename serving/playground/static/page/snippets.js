// A request as code: curl, Python and JavaScript.

import { bodyOf } from "./server.js";

/** @typedef {import("./types.js").Question} Question */
/**
 * What a request goes to.
 *
 * @typedef {object} Target
 * @property {string} address of the bundle.
 * @property {boolean} needsToken
 */

const TOKEN = "SEQKERAS_TOKEN"; // the variable of the environment
const MOST_WORD = 30_000; // characters: Linux takes 128 KiB in a word of a command
const PYTHON = { null: "None", true: "True", false: "False" };
// Controls, marks of direction, and what has no width: as escapes, they are seen.
const UNSEEN = /[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * Return the code of a request to a server, by language.
 *
 * @param {Question} question
 * @param {Target} target
 * @returns {Record<string, string>}
 */
export function snippets(question, { address, needsToken }) {
  const url = question.streams ? `${address}/stream` : address;
  const body = JSON.parse(bodyOf(question));
  return {
    curl: curl(url, literal(body), Boolean(question.streams), needsToken),
    Python: python(url, literal(body, PYTHON), Boolean(question.streams), needsToken),
    JavaScript: javascript(url, literal(body), Boolean(question.streams), needsToken),
  };
}

/**
 * Return the code of a request to a bundle in a folder of the web.
 *
 * @param {Question} question
 * @param {string} files the address below which the bundle's files lie.
 * @returns {Record<string, string>}
 */
export function localSnippets(question, files) {
  const { input, inputs, options = {} } = JSON.parse(bodyOf(question));
  const given = [inputs ?? input, ...(Object.keys(options).length ? [options] : [])].map((value) => literal(value)).join(", ");
  const asks = question.streams
    ? `for await (const text of pipeline.stream(${given})) process.stdout.write(text);`
    : `console.log(await pipeline(${given}));`;
  return {
    JavaScript: `import { load } from "seqkeras-serving";
import { address } from "seqkeras-serving/address";

const ort = await import("onnxruntime-node"); // in a browser: onnxruntime-web
const pipeline = await load(address(${literal(files)}), ort);
${asks}
`,
  };
}

function curl(url, body, streams, needsToken) {
  const header = needsToken ? ` -H "authorization: Bearer $${TOKEN}"` : "";
  const start = `curl ${streams ? "-N " : ""}${quoted(url)}${header} -d `;
  return body.length < MOST_WORD ? `${start}${quoted(body)}\n` : `${start}@- <<'END'\n${body}\nEND\n`;
}

function python(url, body, streams, needsToken) {
  const [imports, names, headers] = needsToken
    ? ["import json\nimport os", "Request, urlopen", `headers = {"authorization": f"Bearer {os.environ['${TOKEN}']}"}\n`]
    : ["import json", "urlopen", ""];
  const sent = `${literal(url)}, json.dumps(request).encode()`;
  const answer = streams
    ? `    for line in response:
        if line.startswith(b"data: "):
            print(json.loads(line[6:]).get("text", ""), end="", flush=True)`
    : "    print(json.load(response))";
  return `${imports}
from urllib.request import ${names}

request = ${body}
${headers}with urlopen(${needsToken ? `Request(${sent}, headers)` : sent}) as response:
${answer}
`;
}

function javascript(url, body, streams, needsToken) {
  const headers = needsToken ? `\n  headers: { authorization: \`Bearer \${process.env.${TOKEN}}\` },` : "";
  const answer = streams
    ? `let rest = "";
for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + part).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    if (line.startsWith("data: ")) process.stdout.write(JSON.parse(line.slice(6)).text ?? "");
  }
}`
    : "console.log(await response.json());";
  return `const request = ${body};
const response = await fetch(${literal(url)}, {
  method: "POST",${headers}
  body: JSON.stringify(request),
});
${answer}
`;
}

/** Return a value of JSON as a literal, with a language's words for null, true and false. */
function literal(value, words = {}) {
  if (Array.isArray(value)) return `[${value.map((each) => literal(each, words)).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, each]) => `${literal(key)}: ${literal(each, words)}`).join(", ")}}`;
  }
  const text = JSON.stringify(value);
  return words[text] ?? text.replace(UNSEEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Return a word of a shell. */
const quoted = (text) => (/^[\w:/.%@+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
