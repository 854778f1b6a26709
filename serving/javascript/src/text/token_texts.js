// The bytes that each token of a tokenizer adds to a text.
//
//     text(y_1 … y_n) = first(y_1) + later(y_2) + … + later(y_n)
//
// Tokens that add nothing have no text: special tokens, and tokens that the tokenizer never writes;
// nor do WordPiece tokens with an apostrophe, whose spaces depend on the tokens after them.

import { BYTES } from "./byte_words.js";
import { CharacterTable, WordTable } from "./tables.js";

const encoder = new TextEncoder();

/** @typedef {(Uint8Array | null)[]} Texts of each token. */

/**
 * Return the bytes that each token adds as the first token of a text, and as a later one.
 *
 * @param {any} tokenizer
 * @returns {{first: Texts, later: Texts}}
 */
export function tokenTexts(tokenizer) {
  const places = Array.from({ length: tokenizer.length }, (_, place) => place);
  if (tokenizer instanceof CharacterTable || tokenizer instanceof WordTable) {
    const own = tokenizer.entries.map((entry, place) => (place < tokenizer.numSpecial ? "" : entry));
    const between = tokenizer instanceof WordTable ? " " : "";
    return { first: own.map(bytesOf), later: own.map((text) => bytesOf(text && between + text)) };
  }
  if (tokenizer.isByteLevel) {
    const own = places.map((place) => ofByteLevel(tokenizer, place));
    return { first: own, later: own };
  }
  const isAnchor = (place) => /^[\p{L}\p{N}]+$/u.test(decode(tokenizer, [place]));
  const anchor = places.find(isAnchor) ?? 0;
  const before = decode(tokenizer, [anchor]);
  const written = places.map((place) => {
    const token = tokenOf(tokenizer, place);
    if (token === null || token === "<unk>" || (token.includes("'") && !token.startsWith("##"))) {
      return ["", ""];
    }
    const both = decode(tokenizer, [anchor, place]);
    return [decode(tokenizer, [place]), both.startsWith(before) ? both.slice(before.length) : ""];
  });
  return {
    first: written.map(([text]) => bytesOf(text)), later: written.map(([, text]) => bytesOf(text)),
  };
}

const bytesOf = (text) => (text ? encoder.encode(text) : null);

function ofByteLevel(tokenizer, place) {
  const token = tokenOf(tokenizer, place);
  if (!token || tokenizer.specialTokens.has(token)) return null;
  const bytes = Array.from(token, (character) => BYTES.get(character) ?? -1);
  return bytes.includes(-1) ? null : Uint8Array.from(bytes);
}

/** Return the token of an id; null where the vocabulary has a gap. */
function tokenOf(tokenizer, place) {
  try {
    return tokenizer.tokenOf(place);
  } catch {
    return null;
  }
}

function decode(tokenizer, tokenIds) {
  return tokenIds.some((place) => tokenOf(tokenizer, place) === null)
    ? ""
    : tokenizer.decode(tokenIds);
}
