// The special tokens around texts: the post-processor of a `tokenizer.json`.

const SPECIAL = "SpecialToken";

/** @typedef {import("./subwords.js").Token} Token */
/** @typedef {{special: string, token: null, segment: number}} SpecialRow */
/** @typedef {SpecialRow | {special: null, token: Token, segment: number}} Row */

export class Template {
  #single;
  #pair;

  /** @param {any} processor null for none. */
  constructor(processor) {
    const parts = partsOf(processor);
    const levels = parts.filter((part) => ["ByteLevel", "RobertaProcessing"].includes(part.type));
    this.trims = levels.some((part) => part.trim_offsets ?? true);
    this.addsSpace = levels.some((part) => part.add_prefix_space ?? true);
    this.specialTokens = parts.flatMap((part) =>
      Object.values(part.special_tokens ?? {}).flatMap((/** @type {any} */ { tokens }) => tokens));
    const own = parts.find((part) => part.type !== "ByteLevel");
    [this.#single, this.#pair] = own ? templateOf(own) : templateOf({ type: "none" });
  }

  /** Yield the parts of a post-processor that are not read. */
  static *problems(processor) {
    const parts = partsOf(processor);
    const others = parts.filter((part) => part.type !== "ByteLevel");
    for (const part of others) {
      if (!["TemplateProcessing", "BertProcessing", "RobertaProcessing"].includes(part.type)) {
        yield `post_processor ${part.type}`;
      }
    }
    if (others.length > 1) yield "several post-processors that add tokens";
  }

  /** Return the number of special tokens around one text or two. */
  numSpecial(count) {
    return this.#of(count).filter((piece) => piece.special !== null).length;
  }

  /**
   * Return the tokens of one text or two, with the special ones.
   *
   * @param {Token[][]} parts
   * @returns {Row[]}
   */
  joined(parts) {
    return this.#of(parts.length).flatMap(({ special, text, segment }) =>
      special !== null
        ? [{ special, token: null, segment }]
        : parts[text].map((token) => ({ special: null, token, segment })));
  }

  #of(count) {
    return count === 2 ? this.#pair : this.#single;
  }
}

const partsOf = (processor) => {
  if (!processor) return [];
  return processor.type === "Sequence" ? processor.processors.flatMap(partsOf) : [processor];
};

/** Return the pieces around one text, and around two. */
function templateOf(processor) {
  const special = (token, segment = 0) => ({ special: token, text: 0, segment });
  const text = (place, segment = place) => ({ special: null, text: place, segment });
  if (processor.type === "TemplateProcessing") {
    return [processor.single, processor.pair].map((pieces) => pieces.flatMap((piece) => {
      const { id, type_id: segment } = piece[SPECIAL] ?? piece.Sequence;
      if (!(SPECIAL in piece)) return [text(id === "A" ? 0 : 1, segment)];
      return processor.special_tokens[id].tokens.map((token) => special(token, segment));
    }));
  }
  if (processor.type === "none") return [[text(0)], [text(0), text(1)]];
  const [begin, end] = [processor.cls[0], processor.sep[0]];
  const single = [special(begin), text(0), special(end)];
  if (processor.type === "BertProcessing") return [single, [...single, text(1), special(end, 1)]];
  return [single, [...single, special(end), text(1, 0), special(end)]];
}
