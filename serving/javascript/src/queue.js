// Calls that run one after the other.

export class Queue {
  #last = Promise.resolve();

  /**
   * Return what a call gives, which begins when all calls before it have ended.
   *
   * @template Result
   * @param {() => Result | Promise<Result>} call
   * @returns {Promise<Result>}
   */
  run(call) {
    const done = this.#last.then(call);
    this.#last = done.then(() => {}, () => {}); // a call that fails does not stop the next one
    return done;
  }
}
