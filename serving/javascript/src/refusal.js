/**
 * Something can not be used.
 *
 *     where: subject: reason; reason. Advice.
 */
export class Refusal extends Error {
  /**
   * @param {string | string[]} reasons parts of a sentence.
   * @param {object} [more]
   * @param {string} [more.where] what is refused, such as a folder; without it the reasons name it.
   * @param {string} [more.subject] the part that is wrong, such as a file; without it the whole.
   * @param {string} [more.advice] a sentence that names a way out; "" if the reasons do.
   * @param {unknown} [more.cause] the error behind this one.
   */
  constructor(reasons, { where, subject, advice = "", cause } = {}) {
    const all = [reasons].flat();
    const places = [where, subject].filter((place) => place !== undefined);
    const text = [...places, all.join("; ")].join(": ");
    super([text.endsWith(".") ? text : `${text}.`, advice].filter(Boolean).join(" "), { cause });
    this.name = new.target.name;
    this.reasons = all;
    this.where = where;
    this.subject = subject;
    this.advice = advice;
  }
}

/** A bundle that can not be used; the message is one line and names a way out. */
export class BundleError extends Refusal {
  /**
   * @param {string | string[]} reasons as of `Refusal`.
   * @param {ConstructorParameters<typeof Refusal>[1]} [more] as of `Refusal`.
   */
  constructor(reasons, more = {}) {
    super(reasons, { advice: "Export the bundle again.", ...more });
  }
}

/** An input for which a model gives NaN or infinity. */
export class NoFiniteNumber extends BundleError {
  /** @param {string} name of the input. */
  constructor(name) {
    super("the model gives no finite number for it", { where: name, advice: "" });
  }
}
