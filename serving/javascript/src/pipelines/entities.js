// Entities from the tags of words.

const LETTERS = { IOB2: "BI", IOBES: "BIES", BILOU: "BILU", BMES: "BMES" };
export const SCHEMES = Object.keys(LETTERS);
const AS_IOBES = { L: "E", U: "S", M: "I" };

/** Whether a tag is one of a scheme: "O", or a letter, "-" and a label. */
export function isTag(tag, scheme) {
  return tag === "O" || new RegExp(`^[${LETTERS[scheme]}]-.`, "s").test(tag);
}

/**
 * Return the label, first word, and word after the last of each entity in the tags of words.
 *
 * All schemes are read alike, with L for E, U for S and M for I. Invalid sequences of tags are read
 * like conlleval does: a word continues the entity before it if its own tag is I or E, the tag
 * before is B or I, and both have one label; any other tag except O begins an entity.
 *
 * Reference: Tjong Kim Sang and De Meulder 2003, https://aclanthology.org/W03-0419 (conlleval)
 */
export function entities(tags) {
  /** @type {{label: string, first: number, end: number}[]} */
  const found = [];
  let before = { letter: "O", label: "" };
  tags.forEach((tag, place) => {
    const hyphen = tag.indexOf("-");
    const [own, label] = hyphen < 0 ? [tag, ""] : [tag.slice(0, hyphen), tag.slice(hyphen + 1)];
    const letter = AS_IOBES[own] ?? own;
    const goesOn = "IE".includes(letter) && "BI".includes(before.letter) && label === before.label;
    if (goesOn) found[found.length - 1].end = place + 1;
    else if (letter !== "O") found.push({ label, first: place, end: place + 1 });
    before = { letter, label };
  });
  return found;
}
