// Numbers as texts, in the form that data has, or as people write them. This is
// `serving/written_numbers.py` once more; both are tested by the cases of test/numbers.json.

import { stripped } from "./text/characters.js";

const DATA = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i;
const SPACES = " \u00a0\u202f\u2009";
const UNITS = {
  千: 3, 万: 4, 萬: 4, 百万: 6, 百萬: 6, 亿: 8, 億: 8, 万亿: 12, 萬億: 12, K: 3, k: 3, M: 6, B: 9,
};
const SIGNS = "%‰"; // 10^-2, 10^-3

function ofPeople(point, groups) {
  const ends = Object.keys(UNITS).sort((a, b) => b.length - a.length).join("|");
  return new RegExp(
    `^([+\\-\u2212]?)(?:([0-9]{1,3}(?:([${groups}])[0-9]{3})(?:\\3[0-9]{3})*)|([0-9]+))`
      + `(?:${point}([0-9]+))?[${SPACES}]?(${ends})?[${SPACES}]?([${SIGNS}])?$`,
  );
}

const DECIMALS = {
  ".": ofPeople("\\.", `,'\u2019${SPACES}`),
  ",": ofPeople(",", `.'\u2019${SPACES}`),
};

/** The decimal signs that a column may name. */
export const decimalSigns = Object.keys(DECIMALS);

/**
 * Return a text with its characters of full width as ASCII, without white space around it.
 *
 * @param {string} text
 */
export function narrow(text) {
  return stripped(text).replace(/[\uff01-\uff5e\u3000]/g, (wide) =>
    wide === "\u3000" ? " " : String.fromCharCode(wide.charCodeAt(0) - 0xfee0));
}

/**
 * Return the number that a text writes, or null if it writes none.
 *
 * @param {string} text
 * @param {string | null} [decimal] the decimal sign of a column whose numbers people write.
 * @returns {number | null}
 */
export function numberOf(text, decimal = null) {
  const plain = narrow(text);
  if (decimal !== "," && DATA.test(plain)) return Number(plain);
  const found = decimal === null ? null : DECIMALS[decimal].exec(plain);
  if (!found) return null;
  const [, sign, grouped, , whole, fraction = "0", unit, percent] = found;
  const digits = (grouped ?? whole).replace(/[^0-9]/g, "");
  const exponent = (unit ? UNITS[unit] : 0) - (percent ? SIGNS.indexOf(percent) + 2 : 0);
  const number = Number(`${digits}.${fraction}e${exponent}`);
  return sign === "" || sign === "+" ? number : -number;
}
