// The labels of an answer in words.

/** Return labels, with commas; null is said. */
export const named = (labels) => labels.map((label) => label ?? "none of these").join(", ");
