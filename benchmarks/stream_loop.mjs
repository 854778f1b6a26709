// node stream_loop.mjs BUNDLE ROUNDS FRAMES.json
//
// Prints as JSON the seconds of each round of frames that are pushed one by one to a stream, and the
// scores of the first round's answers.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";

const here = new URL("../serving/javascript/", import.meta.url);
const { load } = await import(new URL("src/index.js", here));
const { folder } = await import(new URL("src/folder.js", here));
const ort = createRequire(here)("onnxruntime-node");

const WARM_UP = 3; // rounds that are not timed
const [bundle, rounds, file] = process.argv.slice(2);
const frames = JSON.parse(await readFile(file, "utf-8"));
const pipeline = await load(folder(bundle), ort, { threads: 1 });
const stream = await pipeline.open();
const [scores, seconds] = [[], []];
for (const frame of frames) scores.push((await stream.push([frame]))[0].score);
for (let round = -WARM_UP; round < Number(rounds); round += 1) {
  const start = process.hrtime.bigint();
  for (const frame of frames) await stream.push([frame]);
  if (round >= 0) seconds.push(Number(process.hrtime.bigint() - start) / 1e9);
}
console.log(JSON.stringify({ scores, seconds }));
