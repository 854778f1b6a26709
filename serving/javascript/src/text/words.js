// Splits texts into words: runs of letters and digits; any other visible character is a word of its
// own, and so is each Chinese character, as in BERT. A user-perceived character, in the sense of
// `wholeCharacters`, is never cut.
//
// Reference: https://www.unicode.org/reports/tr29/ (rules GB6 to GB9a and GB11 to GB13)

import { SPACES, requireUTF8 } from "./characters.js";

const JOINER = "\u200d"; // joins two signs to one
const EXTENDERS =
  "\\u200c\\u200d\\uff9e\\uff9f\\u0e33\\u0eb3\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}";
const LEADING = "\\u1100-\\u115f\\ua960-\\ua97c"; // consonants of Hangul that begin a syllable
const VOWELS = "\\u1160-\\u11a7\\ud7b0-\\ud7c6";
const TRAILING = "\\u11a8-\\u11ff\\ud7cb-\\ud7fb";
const SYLLABLES = "\\uac00-\\ud7a3";
const OPEN_SYLLABLES = Array.from(
  { length: Math.ceil((0xd7a4 - 0xac00) / 28) },
  (_, place) => String.fromCharCode(0xac00 + 28 * place), // which end in a vowel
).join("");
const GOES_ON = new RegExp(
  `^(?:[^][${EXTENDERS}]|[${LEADING}][${LEADING}${VOWELS}${SYLLABLES}]`
    + `|[${VOWELS}${OPEN_SYLLABLES}][${VOWELS}${TRAILING}]|[${TRAILING}${SYLLABLES}][${TRAILING}])$`,
  "u",
);
// The ranges of BERT's code (tokenization.py, _is_chinese_char).
const CHINESE = new RegExp(
  "^[\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2ceaf}"
    + "\\u{2f800}-\\u{2fa1f}]$",
  "u",
);
// Scripts without spaces between words: also kana, Thai, Lao, Burmese and Khmer.
const WITHOUT_SPACES = new RegExp(
  "^[\\u3005-\\u3007\\u3041-\\u30ff\\u31f0-\\u31ff\\uff66-\\uff9f\\u0e01-\\u0e7f\\u0e81-\\u0edf"
    + "\\u1000-\\u109f\\u1780-\\u17dd]$",
);
const SPACE = new RegExp(`^[${SPACES}]$`);
const FLAG_LETTER = /^[\u{1f1e6}-\u{1f1ff}]$/u;

/**
 * Return [start, end] of each word of a text, in code points.
 *
 * @param {string} text
 * @returns {[number, number][]}
 */
export function wordPlaces(text) {
  requireUTF8("words", text);
  /** @type {[number, number][]} */
  const places = [];
  const characters = [...text];
  let last = "nothing";
  characters.forEach((character, place) => {
    const kind = kindOf(character);
    const before = places.at(-1);
    const behind = before !== undefined && before[1] === place;
    if (
      behind
      && ((last === "letters" && (kind === "letters" || kind === "joins"))
        || continues(characters, place, before[0]))
    ) {
      before[1] = place + 1;
    } else if (["letters", "signs", "chinese"].includes(kind)) {
      places.push([place, place + 1]);
      last = kind;
    }
  });
  return places;
}

/**
 * Return [start, end] of a span of a text, widened to whole user-perceived characters.
 *
 * @param {string[]} characters of the text.
 * @param {number} start
 * @param {number} end
 * @returns {[number, number]}
 */
export function wholeCharacters(characters, start, end) {
  let [first, last] = [start, end];
  while (first > 0 && first < end && continues(characters, first)) first -= 1;
  while (last > 0 && last < characters.length && continues(characters, last)) last += 1;
  return [first, last];
}

/**
 * Whether a word may end before the character at an index of a text, without a space there: where
 * that character, or the one before it, is of a script without spaces.
 *
 * @param {string[]} characters of the text.
 * @param {number} place
 */
export function mayEndWord(characters, place) {
  const around = characters.slice(Math.max(0, place - 1), place + 1);
  return around.some((own) => CHINESE.test(own) || WITHOUT_SPACES.test(own))
    && !continues(characters, place);
}

/** Whether the character at an index belongs to the one before; one begins at `begin`. */
function continues(characters, place, begin = 0) {
  const character = characters[place];
  const before = characters[place - 1] ?? characters.at(-1);
  if (character < "\x80" || SPACE.test(before)) return false;
  if (FLAG_LETTER.test(character)) {
    let first = place;
    while (first > begin && FLAG_LETTER.test(characters[first - 1])) first -= 1;
    return (place - first) % 2 === 1;
  }
  if (/\p{M}/u.test(character) || (/\p{S}/u.test(character) && before === JOINER)) return true;
  return GOES_ON.test(before + character);
}

function kindOf(character) {
  if (CHINESE.test(character)) return "chinese";
  if (/[\p{L}\p{M}\p{N}\p{Pc}]/u.test(character)) return "letters";
  if (/\p{Cf}/u.test(character)) return "joins"; // invisible; joins or formats letters
  return /[\p{Z}\p{Cc}]/u.test(character) ? "nothing" : "signs";
}
