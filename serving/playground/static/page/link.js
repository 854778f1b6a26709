// A link that holds what is asked: #/NAME?text=…&num_beams=4&compare=OTHER.
// A browser sends no fragment to a server.

const MOST = 16_000; // characters
const COMPARED = "compare";

/**
 * Return a link to a bundle and its form.
 *
 * @param {string} name of the bundle.
 * @param {[string, string][]} values of the form's fields.
 * @param {string | undefined} compared the name of the bundle beside it.
 * @throws {Error} if it is too long.
 */
export function linkTo(name, values, compared) {
  const given = new URLSearchParams(compared ? [...values, [COMPARED, compared]] : values);
  const link = `${location.href.split("#")[0]}#/${encodeURIComponent(name)}?${given}`;
  if (link.length > MOST) {
    throw new Error(`Too long for a link: ${link.length.toLocaleString("en")} characters, of at most ${MOST.toLocaleString("en")}`);
  }
  return link;
}

/**
 * Return what a fragment holds, whoever wrote it: the bundle's name, or "", the values of fields, and
 * the name of the bundle beside it, or "". A fragment that is too long has no values.
 *
 * @param {string} fragment
 */
export function readLink(fragment) {
  const isTooLong = fragment.length > MOST;
  const [path, query = ""] = (fragment.startsWith("#/") ? fragment.slice(2) : "").split(/\?(.*)/s);
  const given = new URLSearchParams(isTooLong ? "" : query);
  const name = new URLSearchParams(`name=${path}`).get("name") ?? ""; // a wrong % is no error there
  const compared = given.get(COMPARED) ?? "";
  given.delete(COMPARED);
  return { name, given, compared, isTooLong };
}
