// Streams give the answers and the errors of Python; states go from each to the other.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { crc32 } from "node:zlib";

import { folder } from "../src/folder.js";
import { load } from "../src/index.js";
import { assertSame, describeCases, FOLDER, readJSON } from "./cases.js";

const ort = await import("onnxruntime-node");
const NUMBERS = "stream-numbers";
const opened = (name, options = {}) => load(folder(join(FOLDER, name)), ort, options);

/** Push what Python pushed; the answers and the errors are Python's, and an error changes no state. */
async function pushAll(pushes, push, stateOf) {
  for (const [place, { frames, answers, error }] of pushes.entries()) {
    const where = `push ${place}`;
    const before = stateOf();
    if (!error) assertSame(await push(frames), answers, where);
    else {
      await assert.rejects(push(frames), { message: error }, where);
      assert.deepEqual(stateOf(), before, where);
    }
  }
}

/** Return the answers to chunks of frames. */
async function answersTo(stream, chunks) {
  const answers = [];
  for (const frames of chunks) answers.push(...await stream.push(frames));
  return answers;
}

/** Return the frames of the pushes to a bundle that are answered, and the answers. */
function recorded(name) {
  const good = readJSON("streams.json")[name].one.filter(({ answers }) => answers);
  return { frames: good.flatMap(({ frames }) => frames), answers: good.flatMap(({ answers }) => answers) };
}

for (const runtime of ["onnxruntime-node", "onnxruntime-web"]) {
  describeCases(`streams by ${runtime} are those of Python`, () => {
    for (const [name, { precision, one, cut, state, several }] of Object.entries(readJSON("streams.json"))) {
      it(name, async () => {
        const own = await import(runtime);
        if (own.env.wasm) own.env.wasm.numThreads = 1;
        const pipeline = await load(folder(join(FOLDER, name)), own, { precision });
        const stream = await pipeline.open();
        const statesOf = (of) => () => of.state.bytes();
        await pushAll(one.slice(0, cut), stream.push.bind(stream), statesOf(stream));
        const saved = stream.state.bytes();
        writeFileSync(join(FOLDER, `${name}.state`), saved);
        for (const given of [Buffer.from(state, "base64"), saved, stream.state]) {
          const going = await pipeline.open({ state: given });
          await pushAll(one.slice(cut), going.push.bind(going), statesOf(going));
        }
        const streams = await pipeline.open({ streams: 3 });
        await pushAll(several, streams.push.bind(streams), () =>
          [0, 1, 2].map((index) => streams.state(index).bytes()));
        await pipeline.release();
      });
    }
  });
}

describeCases("a stream", () => {
  it("answers pushes that overlap one after the other", async () => {
    const { frames, answers } = recorded(NUMBERS);
    const stream = await (await opened(NUMBERS)).open();
    const found = await Promise.all(frames.map((frame) => stream.push([frame])));
    assertSame(found.flat(), answers, "answers");
    assert.equal(stream.state.frames, frames.length);
  });

  it("follows a source, asynchronous or not", async () => {
    const { frames, answers } = recorded(NUMBERS);
    const pipeline = await opened(NUMBERS);
    const sensor = async function* sensor() { yield* frames; };
    for (const source of [frames, sensor(), frames.map((frame) => Float32Array.from(frame))]) {
      const found = [];
      for await (const answer of (await pipeline.open()).follow(source)) found.push(answer);
      assertSame(found, answers, "answers");
    }
  });

  it("takes the place of another one, behind what was pushed before", async () => {
    const { frames, answers } = recorded(NUMBERS);
    const pipeline = await opened(NUMBERS);
    const stream = await pipeline.open();
    await stream.push(frames.slice(0, 4));
    const streams = await pipeline.open({ streams: 2 });
    const first = streams.push([frames, frames.slice(0, 2)]);
    const replaced = streams.replace(0, stream.state);
    const second = streams.push([frames.slice(4), frames.slice(2, 3)]);
    await streams.replace(1);
    const third = await streams.push([null, frames.slice(0, 1)]);
    assert.equal(await replaced, undefined);
    assertSame(await first, [answers, answers.slice(0, 2)], "first");
    assertSame(await second, [answers.slice(4), answers.slice(2, 3)], "second");
    assertSame(third, [[], answers.slice(0, 1)], "third");
  });

  it("opens its graph when the first stream is opened, and verifies the file", async () => {
    const own = folder(join(FOLDER, NUMBERS));
    const read = /** @type {string[]} */ ([]);
    let isDamaged = true;
    const noted = Object.assign(async (path) => {
      read.push(path);
      const bytes = new Uint8Array(await own(path));
      return isDamaged && path === "onnx/stream.onnx" ? bytes.map((byte) => byte ^ 1) : bytes;
    }, { where: "toy" });
    const pipeline = await load(noted, ort);
    assert.ok(!read.includes("onnx/stream.onnx"));
    await assert.rejects(pipeline.open(), {
      name: "BundleError", message: /^toy: onnx\/stream\.onnx does not have the manifest's sha256/,
    });
    isDamaged = false;
    await Promise.all([pipeline.open(), pipeline.open()]);
    assert.equal(read.filter((path) => path === "onnx/stream.onnx").length, 2);
    await pipeline.release();
  });

  it("of a pipeline that was released is refused", async () => {
    const { frames } = recorded(NUMBERS);
    const pipeline = await opened(NUMBERS);
    const stream = await pipeline.open();
    await pipeline.release();
    const message = /: it was released: load it again to ask it\.$/;
    await assert.rejects(stream.push(frames), { message });
    await assert.rejects(pipeline.open(), { message });
  });

  it("whose state or options do not fit is refused in one line", async () => {
    const { frames } = recorded(NUMBERS);
    const pipeline = await opened(NUMBERS);
    const ended = await pipeline.open();
    const saved = ended.state.bytes();
    ended.end();
    const streams = await pipeline.open({ streams: 2 });
    const withHead = (change) => {
      const [magic, , head, rest] = Buffer.from(saved).toString("latin1").split("\n");
      const content = Buffer.from([change(head), rest].join("\n"), "latin1");
      const checksum = crc32(content).toString(16).padStart(8, "0");
      return Buffer.concat([Buffer.from(`${magic}\n${checksum}\n`), content]);
    };
    const whole = /^open: state must be the bytes of a stream's state, whole; /.source;
    const open = (options) => () => pipeline.open(options);
    for (const [call, message] of /** @type {[() => Promise<any>, string | RegExp][]} */ ([
      [open({ state: Buffer.from("state\n1\n2") }), `${whole}they do not begin as those of a state do`],
      ...[20, 27, 60, saved.length - 1].map((length) =>
        [open({ state: saved.subarray(0, length) }), `${whole}their checksum is another one`]),
      ...Array.from(saved, (_, place) => place).filter((place) => place % 5 === 0).map((place) =>
        [open({ state: saved.with(place, saved[place] ^ 4) }), whole]),
      [open({ state: withHead((head) => head.slice(1)) }), `${whole}their head is no JSON`],
      [open({ state: withHead((head) => head.replace("[3]", "[4]")) }), `${whole}there are fewer of them`],
      [open({ state: withHead((head) => head.replace("[3]", "[2]")) }), `${whole}there are more of them`],
      [open({ state: withHead((head) => head.replace('"series":null', '"series":1')) }), `${whole}memory.ser`],
      [open({ state: withHead((head) => head.replace("float32", "float8")) }), `${whole}total is no arr`],
      [open({ state: withHead((head) => head.replace('"frames":0,', "")) }), `${whole}frames is missing`],
      [open({ state: (await (await opened("stream-types")).open()).state.bytes() }),
        "^Classify: state is that of another bundle or precision; open it there, or begin anew"],
      [open({ state: 3 }), "^Classify: state must be the state of a stream, or its bytes; received num"],
      [open({ streams: 0 }), "^Classify: streams must be a whole number of at least 1"],
      [open({ streams: 2, state: saved }), "^Classify: state is of one stream; give those of several"],
      [() => streams.push([null]), "^Classify: frames must be a list of 2, one for each stream, null"],
      [() => streams.push([frames, [[1, 2]]]), "^Classify: frames of stream 1 must have shape \\(frames, 3"],
      [() => streams.replace(2), "^Classify: a stream's index must be from 0 to 1; received number 2"],
      [() => ended.push(frames), "^Classify: the stream has ended; open another one"],
      [async () => (await opened("frames")).open(), "^Classify: this bundle has no stream; export the run"],
      [async () => (await opened("classify")).open(), "^Classify: a stream is of frames; this bundle re"],
    ])) {
      await assert.rejects(call, (error) => {
        const { name, message: found } = /** @type {Error} */ (error);
        assert.equal(name, "Refusal");
        assert.match(found, new RegExp(message));
        assert.ok(!found.includes("\n"));
        return true;
      });
    }
    assert.equal(streams.state(1).frames, 0);
    await assert.rejects(pipeline.open(/** @type {any} */ ({ number: 2 })), TypeError);
  });

  it("of a type that JavaScript does not keep is refused", async () => {
    await assert.rejects((await opened("stream-halves")).open(), {
      name: "BundleError",
      message: /manifest\.json: state total is float16; JavaScript keeps float32, .*, bool\. Serve this/,
    });
  });

  it("of 50 frames one by one gives the answers of the whole", async () => {
    const pipeline = await opened("stream-tags");
    const frames = Array.from({ length: 50 }, (_, t) => [Math.sin(t), Math.cos(3 * t), (t % 7) / 7]);
    const [one, whole] = [await pipeline.open(), await pipeline.open()];
    const found = await answersTo(one, frames.map((frame) => [frame]));
    assertSame(found, await whole.push(frames), "answers");
    assert.deepEqual([one.delay, one.warmUp, found[0], found[49].start], [1, 1, null, 48]);
  });
});
