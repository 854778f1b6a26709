// A recording of frames, as text: a line for each frame, its values between commas.

/** @typedef {import("./types.js").Manifest} Manifest */

/**
 * What a stream reads.
 *
 * @typedef {object} Reads
 * @property {string[] | null} names of a row's values, in their order; null where frames are numbers.
 * @property {string[]} drawn the names of the numbers in the chart.
 * @property {string | null} series the name of the column that tells recordings apart; null for none.
 */

/** Return what the stream of a bundle reads. @param {Manifest} manifest @returns {Reads} */
export function readsOf({ graphs, settings: { rows } }) {
  if (rows) {
    const numbers = rows.columns.filter(({ categories = [] }) => !categories.length);
    const names = [...(rows.time?.columns ?? []), ...rows.columns.map(({ name }) => name)];
    return { names, drawn: numbers.map(({ name }) => name), series: rows.series ?? null };
  }
  const frames = graphs.stream.inputs.find(({ name }) => ["frames", "window"].includes(name));
  const size = Number(frames?.shape[2] ?? 1);
  const drawn = Array.from({ length: size }, (_, place) => `number ${place + 1}`);
  return { names: null, drawn, series: null };
}

/**
 * Return the rows of a recording: objects by name where there is a header, else lists.
 *
 * @param {string} text
 * @param {Reads} reads
 * @throws {Error} if there are none.
 */
export function rowsOf(text, { names }) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim()).map(cellsOf);
  const [first = []] = lines;
  const isHeader = names
    ? names.every((name) => first.includes(name))
    : first.some((cell) => !Number.isFinite(Number(cell || "x")));
  const rows = lines.slice(isHeader ? 1 : 0);
  if (!rows.length) throw new Error("the recording has no frame: expected a line of numbers for each");
  if (!names) return rows.map((row) => row.map((cell) => (cell === "" ? NaN : Number(cell))));
  if (!isHeader) return rows;
  return rows.map((row) => Object.fromEntries(first.map((name, place) => [name, row[place] ?? ""])));
}

/** Return the numbers of a row that are drawn. @param {any} row @param {Reads} reads @returns {number[]} */
export function drawnOf(row, { names, drawn }) {
  if (!names) return row;
  const number = (value) => (value === "" || value === undefined ? NaN : Number(value));
  return drawn.map((name) => number(Array.isArray(row) ? row[names.indexOf(name)] : row[name]));
}

/** Return the cells of a line; a cell in quotation marks may hold commas. @param {string} line */
function cellsOf(line) {
  const separator = line.includes(",") || !line.includes(";") ? "," : ";";
  const cells = line.match(separator === "," ? /("([^"]|"")*"|[^,]*)(,|$)/g : /("([^"]|"")*"|[^;]*)(;|$)/g) ?? [];
  const found = cells.map((cell) => cell.replace(/[,;]$/, "").trim()
    .replace(/^"(.*)"$/, (_, inner) => inner.replaceAll('""', '"')));
  if (!line.trimEnd().endsWith(separator)) found.pop(); // the match at the line's end is empty
  return found;
}
