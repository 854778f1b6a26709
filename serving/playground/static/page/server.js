// Asks the server.

/** @typedef {import("./types.js").Question} Question */

const TOKEN = "seqkeras-token"; // in the session's storage

/** The server wants a token, or another one. */
export class TokenWanted extends Error {}

/** Keep the server's token until the tab is closed. @param {string} token */
export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

/** The headers of a request. @returns {Record<string, string>} */
export function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { authorization: `Bearer ${token}` } : {};
}

/**
 * Return the response to a request.
 *
 * @param {string} path
 * @param {RequestInit} [options]
 * @throws {TokenWanted} if the server wants a token.
 * @throws {Error} in the server's words.
 */
export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers() });
  } catch (cause) {
    if (/** @type {Error} */ (cause).name === "AbortError") throw cause;
    throw new Error("the server can not be reached", { cause });
  }
  if (response.status === 401) throw new TokenWanted("the server wants its token");
  if (!response.ok) {
    const content = await response.json().catch(() => ({}));
    throw new Error(content.error ?? `the server answers with status ${response.status}`);
  }
  return response;
}

/** Return the manifest of a bundle. @param {{files: string}} entry in page.json. */
export const manifestOf = async ({ files }) => (await request(`${files}manifest.json`)).json();

/** Return the body of a request. @param {Question} question */
export function bodyOf({ input, inputs, options }) {
  const given = Object.keys(options).length ? { options } : {};
  return JSON.stringify(inputs ? { inputs, ...given } : { input, ...given });
}

/** A bundle of the server. */
export class Server {
  /** @param {string} name */
  constructor(name) {
    this.address = `v1/bundles/${encodeURIComponent(name)}`;
  }

  /**
   * @param {Question} question
   * @param {AbortSignal} signal
   */
  async answer(question, signal) {
    const begin = performance.now();
    const response = await request(this.address, { method: "POST", body: bodyOf(question), signal });
    const content = await response.json();
    const seconds = (performance.now() - begin) / 1000;
    const refused = content.answers?.find((answer) => answer.error);
    if (refused) throw new Error(refused.error);
    return { answer: content.answers ?? content, seconds };
  }

  /**
   * @param {Question} question
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<string>}
   */
  async *stream(question, signal) {
    const response = await request(`${this.address}/stream`, { method: "POST", body: bodyOf(question), signal });
    for await (const { name, data } of events(/** @type {any} */ (response.body))) {
      if (name === "error") throw new Error(data.error);
      if (name === "end") return;
      yield data.text;
    }
  }
}

/** Yield the server-sent events of a body. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const found = text.split("\n\n");
      text = /** @type {string} */ (found.pop());
      for (const event of found) {
        const lines = event.split("\n").map((line) => line.split(/: (.*)/s));
        const { event: name = "message", data } = Object.fromEntries(lines);
        yield { name, data: JSON.parse(data) };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
