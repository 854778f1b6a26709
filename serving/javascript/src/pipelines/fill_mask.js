// Fills the masks of a text.

import { BundleError, Refusal } from "../refusal.js";
import { requireCount, withDefaults } from "../checks.js";
import { pad } from "../arrays.js";
import { descending } from "../decoding/results.js";
import { byDefault, optional, string } from "../manifest/fields.js";
import { MANIFEST } from "../manifest/format.js";
import { leftStripped, rightStripped, stripped } from "../text/characters.js";
import { Subwords } from "../text/subwords.js";
import { encoded, TextReader, textOf } from "./inputs.js";
import { MASKED, partOf, softmax, tokenArrays, TOKENS } from "./model.js";
import { readSettings, wrongOutput } from "./settings.js";
import { DEFAULTS, SinglePass } from "./single_pass.js";

const OPTIONS = { ...DEFAULTS, top_k: 5, token_budget: 512 };
const SETTINGS = {
  output: byDefault(optional(string), null),
  mask_token: byDefault(string, "[MASK]"),
};
const CONTINUES = "##"; // begins a WordPiece token that continues a word
const SPACED = /^[\u0120\u2581]/u; // how byte-level BPE and SentencePiece write a space
const LINE_END = /[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/;

/**
 * @typedef {object} Filling
 * @property {string} text with the most probable token for each mask.
 * @property {{token: string, score: number}[][]} masks for each mask its fillers, the most probable
 *   first.
 */

const PACKING = {
  ...TOKENS,
  arrays: (rows) => ({
    ...tokenArrays(rows.map((row) => row.encoding)),
    [MASKED]: pad(rows.map((row) => row.masks)).padded,
  }),
  labels: (row) => ({ token_ids: row.encoding }),
};

/**
 * The most probable tokens for each mask of a text.
 *
 *     scores = softmax(logits at the mask), over the whole vocabulary
 *
 * A filler is joined to the word before it if it continues that word: in WordPiece, a token that
 * begins with ##; with a mask that absorbs the white space before it, like RoBERTa's, a token that
 * does not begin with a space.
 */
export class FillMask extends SinglePass {
  static async open(bundle, runtime) {
    const { where } = bundle;
    const settings = readSettings(bundle, SETTINGS, (own, outputs) =>
      wrongOutput(outputs, own.output, ["batch", "length", "vocabulary"]));
    const reader = await TextReader.open(bundle);
    if (!(reader.tokenizer instanceof Subwords)) {
      throw new BundleError("FillMask needs WordPiece or byte-level BPE", { where });
    }
    try {
      reader.tokenizer.idInTexts(settings.mask_token);
    } catch (cause) {
      const reason = `settings.mask_token: ${/** @type {Error} */ (cause).message}`;
      throw new BundleError(reason, { where, subject: MANIFEST, cause });
    }
    return this.opened(bundle, runtime, [settings.output], reader, settings, PACKING);
  }

  /**
   * Answer a text with at least one mask, or each text of a list.
   *
   * @param {any} texts
   * @param {Partial<typeof OPTIONS>} given see `serving.pipelines.FillMask`.
   * @returns {Promise<Filling | Filling[]>}
   */
  async answer(texts, given) {
    const options = withDefaults("FillMask", given, OPTIONS);
    requireCount("FillMask: top_k", options.top_k, this.reader.tokenizer.length);
    this.attention.require("FillMask", options.attention);
    const rows = encoded(texts, "FillMask: text", this.encode, options);
    const atMasks = this.model.takes(MASKED);
    const read = (place, output) => {
      const logits = rows[place].masks.map((at, mask) => partOf(output, atMasks ? mask : at).data);
      return this.#filling(rows[place], logits, options.top_k);
    };
    const answers = await this.model.answer(rows, read, options.token_budget);
    return this.finished(texts, answers, rows, options, "FillMask: text");
  }

  encode = (given, name, truncate) => {
    const text = textOf(given, name);
    const encoding = this.reader.read(text, name, truncate);
    const maskId = this.reader.tokenizer.idInTexts(this.settings.mask_token);
    const masks = encoding.tokenIds.flatMap((id, at) => (id === maskId ? [at] : []));
    if (!masks.length && this.reader.tokenizer.encode(text).includes(maskId)) {
      throw new Refusal(
        `${name} has no mask within the limit of ${this.reader.limit} tokens, to which it was `
          + "cut; shorten the text before its masks",
      );
    }
    if (!masks.length) {
      throw new Refusal(
        `${name} must hold a mask; write ${this.settings.mask_token} for what to fill in`,
      );
    }
    return { characters: [...text], encoding, masks, length: encoding.length };
  };

  /** @returns {Filling} */
  #filling(row, logits, topK) {
    const { tokenizer } = this.reader;
    const between = (start, end) => row.characters.slice(start, end).join("");
    const takesSpaces = tokenizer.leftStripped.has(this.settings.mask_token);
    let text = "";
    let done = 0;
    const masks = row.masks.map((at, place) => {
      const scores = softmax(logits[place]);
      const best = descending(scores).slice(0, topK);
      const fillers = best.map((id) => ({
        token: stripped(tokenizer.decode([id], true)), score: scores[id],
      }));
      const [start, end] = row.encoding.offsets[at] ?? [0, 0];
      const mask = between(start, end); // with the white space that it absorbs, or trimmed
      const before = between(done, end - [...leftStripped(mask)].length);
      const token = tokenizer.tokenOf(best[0]);
      const isSpaced = !tokenizer.isWordPiece && SPACED.test(token);
      const joins = tokenizer.isWordPiece ? token.startsWith(CONTINUES) : takesSpaces && !isSpaced;
      const filler = tokenizer.isWordPiece && fillers[0].token.startsWith(CONTINUES)
        ? fillers[0].token.slice(CONTINUES.length)
        : fillers[0].token;
      text += beforeFiller(before, joins, isSpaced, done === 0) + filler;
      done = start + [...rightStripped(mask)].length;
      return fillers;
    });
    return { text: text + between(done, row.characters.length), masks };
  }
}

/** Return the text before a filler, joined to it or spaced from it. */
function beforeFiller(before, joins, isSpaced, isFirst) {
  const bare = rightStripped(before);
  const space = before.slice(bare.length);
  if (isFirst && !bare) return before; // there is no word
  if (joins && !LINE_END.test(space)) return bare;
  return isSpaced && !space ? `${before} ` : before;
}
