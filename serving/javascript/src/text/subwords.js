// WordPiece and byte-level BPE.
//
// The library `@huggingface/tokenizers` splits words into tokens and joins tokens to texts. What
// stands before that, normalizing and splitting into words, is done here: it tells the place of each
// token in the text, and equals the library of Python on every code point.

import { Refusal } from "../refusal.js";
import { quoted } from "../checks.js";
import { requireUTF8 } from "./characters.js";
import { bertWords, normalized } from "./bert_words.js";
import { byteWords, CHARACTERS } from "./byte_words.js";
import { Encoding, fit } from "./encoding.js";
import { Template } from "./template.js";

const SPACE = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
const CONTRACTIONS = ["n't", "'m", "'s", "'ve", "'re"];
const BLANK = CHARACTERS[32]; // a space in the characters for bytes
const ADVICE = "serve this bundle by Python";

/** @typedef {import("./bert_words.js").Placed} Placed */
/** @typedef {{id: number, token: string, offset: [number, number], word: number}} Token */

/**
 * A tokenizer whose tokens are words and parts of words, as a `tokenizer.json` defines it.
 *
 * A text is searched for the file's `added_tokens`. The special tokens that the file's
 * post-processor alone names stand around texts; written in a text they are text.
 */
export class Subwords {
  #library;
  #content;
  #added;
  #matchers;
  #template;
  #specialIds;

  /**
   * @param {any} content of a `tokenizer.json`.
   * @param {{Tokenizer: any}} library the module `@huggingface/tokenizers`.
   */
  constructor(content, { Tokenizer }) {
    this.#content = content;
    this.#library = new Tokenizer(content, {});
    const added = content.added_tokens ?? [];
    this.#added = new Map(added.map((token) => [token.content, token]));
    const isPlain = (token) => !token.normalized;
    this.#matchers = [added.filter(isPlain), added.filter((token) => !isPlain(token))]
      .map(matcherOf);
    this.#template = new Template(content.post_processor);
    this.isWordPiece = content.model.type === "WordPiece";
    this.isByteLevel = content.decoder?.type === "ByteLevel";
    this.specialTokens = new Set([
      ...this.#template.specialTokens,
      ...added.filter((token) => token.special).map((token) => token.content),
    ]);
    this.#specialIds = new Set(
      Array.from(this.specialTokens, (token) => this.#library.token_to_id(token)),
    );
    this.leftStripped = new Set(added.filter((token) => token.lstrip).map((token) => token.content));
    this.length = new Set([...Object.keys(content.model.vocab), ...this.#added.keys()]).size;
  }

  /**
   * Return the tokenizer of a `tokenizer.json`.
   *
   * @param {any} content
   * @param {{Tokenizer: any}} [library] the module `@huggingface/tokenizers`; without it it is
   *   imported by that name.
   * @throws {Refusal} naming the parts that are not read here.
   */
  static async of(content, library) {
    const problems = [...partsNotRead(content)];
    if (problems.length) {
      throw new Refusal(
        `its tokenizer.json has parts that are not read in JavaScript: ${problems.join(", ")}; `
          + ADVICE,
      );
    }
    const found = library ?? await import("@huggingface/tokenizers");
    try {
      return new Subwords(content, found);
    } catch (cause) {
      const { message } = /** @type {Error} */ (cause);
      throw new Refusal(`Subwords: content must be the text of a tokenizer.json: ${message}`, { cause });
    }
  }

  idOf(token) {
    const found = this.#library.token_to_id(token);
    if (found === undefined) {
      throw new Refusal(`Subwords: the vocabulary must hold ${quoted(token)}; it does not`);
    }
    return found;
  }

  /** Return the id of a token that texts are searched for. */
  idInTexts(token) {
    const found = this.idOf(token);
    if (!this.#added.has(token)) {
      throw new Refusal(`Subwords: the tokenizer must read ${quoted(token)} in texts, as one of its `
        + "added_tokens; it does not. A learned one does so with masks=True");
    }
    return found;
  }

  tokenOf(index) {
    const found = this.#library.id_to_token(index);
    if (found === undefined) {
      throw new Refusal(`Subwords: ids must be under ${this.length}; received ${index}`);
    }
    return found;
  }

  /** Return the ids of a text, without special tokens around it. */
  encode(text) {
    return this.#split(text).map((token) => token.id);
  }

  /**
   * Return the `Encoding` of a text or of a pair, with the special tokens of the template.
   *
   * @param {string[]} texts one or two.
   * @param {object} [options]
   * @param {number} [options.maxLength] the most tokens, with special ones: the longer text is cut,
   *   token by token, until both fit.
   */
  analyze(texts, { maxLength = Infinity } = {}) {
    const parts = texts.map((text) => this.#split(text));
    const lengths = parts.map((part) => part.length);
    const numSpecial = this.#template.numSpecial(texts.length);
    const kept = fit("Subwords", lengths, numSpecial, maxLength);
    return this.#joined(parts.map((part, place) => part.slice(0, kept[place])), texts);
  }

  /**
   * Return the `Encoding`s of a text, each with a part of a long context as its pair.
   *
   * @param {string | null} text null for the parts of the context alone.
   * @param {string} context the long text.
   * @param {number} maxLength the most tokens of each, with special ones.
   * @param {number} step the distance in tokens between the starts of two parts.
   * @param {number} [textLength] the number of tokens to which the text is cut.
   */
  windows(text, context, maxLength, step, textLength = Infinity) {
    const texts = text === null ? [context] : [text, context];
    const parts = texts.map((own) => this.#split(own));
    const second = parts.at(-1) ?? [];
    const first = parts.slice(0, -1).map((part) => part.slice(0, textLength));
    const length = first.reduce((sum, part) => sum + part.length, 0);
    const room = maxLength - length - this.#template.numSpecial(texts.length);
    if (room < 1) {
      throw new Refusal(
        `Subwords: max_length must leave room for the context beside ${length} tokens; `
          + `received ${maxLength}`,
      );
    }
    const apart = room - Math.max(room - step, 0);
    const found = [];
    for (let start = 0; ; start += apart) {
      found.push(this.#joined([...first, second.slice(start, start + room)], texts));
      if (start + room >= second.length) return found;
    }
  }

  /** Return the normalised words that are split into tokens. */
  words(text) {
    return Array.from(this.#words(placed(text)), (word) =>
      word.map(({ character }) => character).join(""));
  }

  /**
   * Return the text of ids.
   *
   * @param {number[]} tokenIds
   * @param {boolean} [specialTokens] keep special tokens.
   */
  decode(tokenIds, specialTokens = false) {
    for (const index of tokenIds) this.tokenOf(index);
    const kept = specialTokens ? tokenIds : tokenIds.filter((index) => !this.#specialIds.has(index));
    if (!kept.length) return "";
    const text = this.#library.decode(kept, {
      skip_special_tokens: false, clean_up_tokenization_spaces: false,
    });
    return this.isWordPiece ? tidy(text) : text;
  }

  /** @returns {Encoding} */
  #joined(parts, texts) {
    const rows = this.#template.joined(parts);
    return new Encoding({
      tokenIds: rows.map((row) => row.token?.id ?? this.idOf(row.special)),
      tokens: rows.map((row) => row.token?.token ?? row.special),
      offsets: rows.map((row) => row.token?.offset ?? null),
      segmentIds: rows.map((row) => row.segment),
      wordIds: rows.map((row) => row.token?.word ?? null),
      texts,
    });
  }

  /** @returns {Token[]} */
  #split(text) {
    requireUTF8("Subwords", text);
    /** @type {Token[]} */
    const found = [];
    let word = 0;
    for (const section of this.#sections(placed(text))) {
      if (section.added) {
        const { id, content: token } = section.added;
        const [first, last] = [section.text[0], section.text.at(-1)];
        found.push({ id, token, offset: [first?.start ?? 0, last?.end ?? 0], word });
        word += 1;
        continue;
      }
      for (const own of this.#words(section.text)) {
        found.push(...this.#tokens(own, word));
        word += 1;
      }
    }
    const { trims, addsSpace } = this.#template;
    return trims ? found.map((token, place) => trimmed(token, place, addsSpace)) : found;
  }

  /** Split a text at added tokens: those that are found before it is normalized come first. */
  #sections(text) {
    let sections = [{ text, added: null }];
    for (const matcher of this.#matchers) {
      if (matcher === null) continue;
      sections = sections.flatMap((section) =>
        section.added ? [section] : [...splitAt(matcher, section.text, this.#added)]);
    }
    return sections;
  }

  *#words(text) {
    const { normalizer, pre_tokenizer: splitter } = this.#content;
    const own = normalizer ? normalized(text, normalizer) : text;
    if (splitter.type === "BertPreTokenizer") {
      yield* bertWords(own);
      return;
    }
    const lacksSpace = splitter.add_prefix_space && own.length && own[0].character !== " ";
    const { start = 0 } = own[0] ?? {};
    const before = lacksSpace ? [{ character: " ", start, end: start }] : [];
    yield* byteWords([...before, ...own], splitter.use_regex ?? true);
  }

  /** Yield the tokens of a word, with their places in the text. */
  *#tokens(word, number) {
    const characters = word.map((placedOne) => placedOne.character);
    const tokens = this.#library.model([characters.join("")]);
    const unknown = this.#content.model.unk_token;
    const prefix = this.#content.model.continuing_subword_prefix ?? "";
    let place = 0;
    for (const [index, token] of tokens.entries()) {
      const isWhole = tokens.length === 1 && token === unknown && this.isWordPiece;
      const own = this.isWordPiece && index > 0 ? token.slice(prefix.length) : token;
      const size = isWhole ? characters.length : token === unknown ? 1 : [...own].length;
      const [first, last] = [word[place], word[Math.min(place + size, word.length) - 1]];
      yield {
        id: this.idOf(token), token, word: number,
        offset: /** @type {[number, number]} */ ([first.start, last.end]),
      };
      place += size;
    }
  }
}

/** Remove spaces that English does not have from joined words. */
export function tidy(text) {
  let found = text;
  for (const mark of ".?!,") found = found.replaceAll(` ${mark}`, mark);
  found = found.replaceAll(" ' ", "'");
  for (const ending of CONTRACTIONS) found = found.replaceAll(` ${ending}`, ending);
  return found;
}

/** Yield the parts of a `tokenizer.json` that are not read here. */
function* partsNotRead(content) {
  const { model, normalizer, pre_tokenizer: splitter, decoder } = content;
  const isBert = model.type === "WordPiece";
  if (!isBert && model.type !== "BPE") yield `model ${model.type}`;
  for (const option of ["dropout", "byte_fallback", "fuse_unk", "end_of_word_suffix"]) {
    if (model[option]) yield `model.${option}`;
  }
  if (!isBert && model.continuing_subword_prefix) yield "model.continuing_subword_prefix";
  if (normalizer && !(isBert && normalizer.type === "BertNormalizer")) {
    yield `normalizer ${normalizer.type}`;
  }
  const expected = isBert ? "BertPreTokenizer" : "ByteLevel";
  if (splitter?.type !== expected) yield `pre_tokenizer ${splitter?.type ?? "null"}`;
  const joins = isBert ? "WordPiece" : "ByteLevel";
  if (decoder?.type !== joins) yield `decoder ${decoder?.type ?? "null"}`;
  yield* Template.problems(content.post_processor);
  for (const token of content.added_tokens ?? []) {
    if (token.single_word) yield `added token ${quoted(token.content)} of whole words`;
    if (token.normalized && normalizer) yield `normalized added token ${quoted(token.content)}`;
  }
}

/** Return the code points of a text with their places. @returns {Placed[]} */
function placed(text) {
  return Array.from(text, (character, start) => ({ character, start, end: start + 1 }));
}

/** Return the expression of added tokens, the longest first, with the spaces they absorb. */
function matcherOf(tokens) {
  if (!tokens.length) return null;
  const sources = [...tokens]
    .sort((one, other) => other.content.length - one.content.length)
    .map(({ content: token }) => token.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return new RegExp(sources.join("|"), "gu");
}

/** Yield the sections of a text: added tokens, and what stands between them. */
function* splitAt(matcher, text, added) {
  const whole = text.map(({ character }) => character).join("");
  const isSpace = (placedOne) => new RegExp(`^${SPACE}$`).test(placedOne.character);
  let done = 0;
  let seen = 0;
  let place = 0;
  for (const found of whole.matchAll(matcher)) {
    place += [...whole.slice(seen, found.index)].length;
    let [start, end] = [place, place + [...found[0]].length];
    seen = found.index + found[0].length;
    place = end;
    const token = added.get(found[0]);
    while (token.lstrip && start > done && isSpace(text[start - 1])) start -= 1;
    while (token.rstrip && end < text.length && isSpace(text[end])) end += 1;
    if (start > done) yield { text: text.slice(done, start), added: null };
    yield { text: text.slice(start, end), added: token };
    done = end;
  }
  if (done < text.length) yield { text: text.slice(done), added: null };
}

/** Return a token whose offset leaves out the white space in it, as post-processors trim it. */
function trimmed(token, place, addsSpace) {
  const isBlank = (character) => character === BLANK || /^\s$/u.test(character);
  const characters = [...token.token];
  let leading = characters.findIndex((character) => !isBlank(character));
  if (leading < 0) leading = characters.length;
  const trailing = characters.length - 1 - characters.findLastIndex((character) => !isBlank(character));
  let [start, end] = token.offset;
  if (leading && addsSpace && (place === 0 || start === 0)) leading -= 1;
  start = Math.min(start + leading, end);
  if (trailing && end >= trailing) end = Math.max(end - trailing, start);
  return { ...token, offset: [start, end] };
}
