// Batches of rows of different lengths with little padding, and their answers in order.

export const TOKEN_BUDGET = 4096; // tokens of a batch, with padding
export const MOST_PADDING = 64; // tokens; with more, an additional call of the graph is cheaper

/**
 * Yield the indices of the rows of each batch, the shortest rows first.
 *
 * @param {number[]} lengths the number of tokens of each row.
 * @param {number} tokenBudget the most tokens of a batch; a longer row is a batch of its own.
 * @param {number} [mostPadding] the most tokens of a batch that are padding.
 */
export function* batches(lengths, tokenBudget, mostPadding = Infinity) {
  /** @type {number[]} */
  let batch = [];
  let tokens = 0;
  const order = lengths.map((_, place) => place).sort((one, other) => lengths[one] - lengths[other]);
  for (const place of order) {
    const padded = (batch.length + 1) * lengths[place];
    const padding = padded - tokens - lengths[place];
    if (batch.length && (padded > tokenBudget || padding > mostPadding)) {
      yield batch;
      [batch, tokens] = [[], 0];
    }
    batch.push(place);
    tokens += lengths[place];
  }
  if (batch.length) yield batch;
}

/**
 * Return the answers to rows, in their order.
 *
 * @param {number[]} lengths of the rows.
 * @param {(places: number[]) => Promise<any[]>} answer to the rows at these places.
 * @param {number} tokenBudget
 * @param {number} [mostPadding]
 */
export async function answerInBatches(lengths, answer, tokenBudget, mostPadding) {
  const answers = Array(lengths.length);
  for (const places of batches(lengths, tokenBudget, mostPadding)) {
    const found = await answer(places);
    places.forEach((place, index) => { answers[place] = found[index]; });
  }
  return answers;
}

/**
 * Return, for each group, the list of as many of the values, which stand in the groups' order.
 *
 * @template T
 * @param {T[]} values one for each member of each group.
 * @param {{length: number}[]} groups
 */
export function inGroups(values, groups) {
  let end = 0;
  return groups.map(({ length }) => {
    end += length;
    return values.slice(end - length, end);
  });
}
