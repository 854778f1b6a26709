// Starts the page: which models there are, and which one is shown.

import { BundlePage } from "./bundle_page.js";
import { element } from "./element.js";
import { VIEWS } from "./pipelines/index.js";
import { readLink } from "./link.js";
import { keepToken, manifestOf, request, TokenWanted } from "./server.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const models = /** @type {HTMLElement} */ (document.getElementById("bundles"));
/** @type {BundlePage | null} */
let shown = null;
/** @type {import("./types.js").Entry | null} the bundle that was chosen last. */
let chosen = null;

/** Show the bundle that the address names, or the first; unless another is chosen meanwhile. */
async function show(content) {
  const given = readLink(location.hash);
  const named = content.bundles.find(({ name }) => name === given.name);
  const entry = named ?? content.bundles[0];
  chosen = entry;
  for (const link of models.querySelectorAll("a")) {
    const isCurrent = link.textContent === entry.name;
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (isCurrent) link.scrollIntoView({ block: "nearest", inline: "center" });
  }
  let manifest;
  try {
    manifest = await manifestOf(entry);
  } catch (error) {
    if (chosen === entry) throw error;
  }
  if (chosen !== entry) return;
  if (!Object.hasOwn(VIEWS, manifest.pipeline)) {
    throw new Error(`${entry.name} is of ${manifest.pipeline}, which this page does not know`);
  }
  shown?.leave();
  shown = new BundlePage(entry, manifest, content, named ? given : readLink(""));
  const problem = problemOf(given, named);
  main.replaceChildren(...(problem ? [element("p", { class: "problem", role: "alert" }, problem)] : []), shown.element);
  document.title = `${entry.name} – seqkeras`;
}

/** Return why a link is not followed, or "". */
function problemOf({ name, isTooLong }, named) {
  if (isTooLong) return "The link is too long: nothing of it is filled in.";
  return name && !named ? `There is no model “${name}” here.` : "";
}

async function start() {
  const content = await (await request("page.json")).json();
  models.replaceChildren(...content.bundles.map(({ name }) =>
    element("a", { href: `#/${encodeURIComponent(name)}` }, name)));
  models.hidden = content.bundles.length < 2;
  window.addEventListener("hashchange", () => {
    if (location.hash.startsWith("#/")) attempt(() => show(content));
  });
  await show(content);
}

/** Do something, and say what went wrong. */
async function attempt(something) {
  try {
    await something();
  } catch (error) {
    if (error instanceof TokenWanted) askForToken();
    else main.replaceChildren(element("p", { class: "problem", role: "alert" }, /** @type {Error} */ (error).message));
  }
}

/** Ask for the token of the server, then start again. */
function askForToken() {
  const field = element("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const submit = (event) => {
    event.preventDefault();
    keepToken(field.value.trim());
    attempt(start);
  };
  main.replaceChildren(element("form", { class: "token", submit },
    element("label", { for: "token" }, "This server wants a token"), field,
    element("button", {}, "Go on")));
  field.focus();
}

window.addEventListener("token-wanted", askForToken);
attempt(start);
