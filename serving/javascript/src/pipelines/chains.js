// The tags of a linear-chain conditional random field; see `serving/pipelines/chains.py`.
//
// The potentials of a word are K + 1 rows of K numbers, one behind the other: of each tag behind each
// tag, and, in the last row, of each tag of the first word.

import { mostProbable } from "../decoding/choosing.js";

/**
 * Return the most probable tags of words, by Viterbi's algorithm.
 *
 * @param {ArrayLike<number>[]} potentials of each word.
 * @param {number} K the number of tags.
 */
export function mostProbableTags(potentials, K) {
  const last = [];
  let best = potentials.length ? Array.from({ length: K }, (_, tag) => potentials[0][K * K + tag]) : [];
  for (const own of potentials.slice(1)) {
    const before = Array(K).fill(0);
    best = before.map((_, tag) => {
      const energies = best.map((energy, from) => energy + own[from * K + tag]);
      [before[tag]] = mostProbable(energies, 1);
      return energies[before[tag]];
    });
    last.push(before);
  }
  if (!best.length) return [];
  const tags = mostProbable(best, 1);
  for (const before of last.reverse()) tags.unshift(before[tags[0]]);
  return tags;
}

/**
 * Return the probability of each tag of each word, over all sequences of tags.
 *
 * @param {ArrayLike<number>[]} potentials of each word.
 * @param {number} K the number of tags.
 * @returns {number[][]}
 */
export function marginals(potentials, K) {
  const tags = Array.from({ length: K }, (_, tag) => tag);
  /** @type {number[][]} */
  const forward = [];
  for (const own of potentials) {
    const before = forward.at(-1);
    forward.push(tags.map((tag) => (before
      ? logSum(before.map((value, from) => value + own[from * K + tag]))
      : own[K * K + tag])));
  }
  let behind = tags.map(() => 0);
  return potentials.map((_, place) => potentials.length - 1 - place).map((place) => {
    const sums = tags.map((tag) => forward[place][tag] + behind[tag]);
    const all = logSum(sums);
    const next = behind;
    behind = tags.map((from) => logSum(next.map((value, tag) => value + potentials[place][from * K + tag])));
    return sums.map((sum) => Math.exp(sum - all));
  }).reverse();
}

function logSum(values) {
  const most = Math.max(...values);
  return most + Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0));
}
