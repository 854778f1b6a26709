// A stream: a recording that is played back, or the accelerometer, and the answer to each frame.

import { element } from "./element.js";
import { megabytes, percent, short } from "./numbers.js";
import { named } from "./parts/labels.js";
import { StripChart } from "./parts/strip_chart.js";
import { drawnOf, readsOf, rowsOf } from "./recording.js";

const SPEEDS = [10, 50, 200, 1000]; // frames a second
const MOST_AT_ONCE = 200; // frames of a chunk, so that the page stays awake
const AXES = ["x", "y", "z"]; // of the accelerometer

/** @typedef {import("./types.js").Manifest} Manifest */

export class StreamSection {
  #browser;
  #reads;
  #chart;
  #file = element("input", { type: "file", id: "recording", accept: ".csv,.txt,text/csv,text/plain", change: () => this.#choose() });
  #speed = element("select", { id: "speed" },
    SPEEDS.map((speed) => element("option", { value: speed }, speed)));
  #play = element("button", { type: "button", class: "main", click: () => this.#toggle() }, "Play");
  #step = element("button", { type: "button", click: () => this.#pushNext(1) }, "Step");
  #restart = element("button", { type: "button", click: () => this.#begin() }, "Restart");
  #now = element("p", { class: "text", role: "status" });
  #time = element("span", { class: "time" });
  #problem = element("p", { class: "problem", role: "alert" });
  /** @type {any[]} rows of the recording. */
  #rows = [];
  #done = 0; // rows that were pushed
  #series; // of the last of them
  #frames = 0; // that were answered
  #seconds = 0; // that they took
  #isPlaying = false;
  #plays = 0; // how often Play was pressed: the loop of an earlier one ends
  /** @type {AbortController | null} of the accelerometer, while it is heard. */
  #listening = null;
  #sensor;
  /** @type {Promise<void>} the pushes so far, one after the other. */
  #pushes = Promise.resolve();
  #leave = new AbortController();

  /**
   * @param {Manifest} manifest
   * @param {import("./browser.js").Browser} browser
   */
  constructor(manifest, browser) {
    this.#browser = browser;
    this.#reads = readsOf(manifest);
    this.#chart = new StripChart(this.#reads.drawn);
    this.#speed.value = String(SPEEDS[1]);
    this.#problem.hidden = true;
    this.#sensor = this.#accelerometer();
    const columns = this.#reads.names?.join(", ") ?? `${this.#reads.drawn.length} numbers a line`;
    this.element = element("section", { class: "panel stream", "aria-label": "Stream" },
      element("header", {}, element("h2", {}, "Stream, in this browser"), this.#time),
      element("div", { class: "source" },
        element("div", { class: "field" }, element("label", { for: "recording" }, "Recording, as CSV"), this.#file,
          element("small", {}, columns)),
        element("div", { class: "field" }, element("label", { for: "speed" }, "Frames a second"), this.#speed)),
      element("div", { class: "buttons" }, this.#play, this.#step, this.#restart, this.#sensor),
      this.#problem, this.#now, this.#chart.element);
    this.#enable();
    const { signal } = this.#leave;
    const draw = () => this.#chart.draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal });
    window.addEventListener("resize", draw, { signal });
  }

  /** End what plays. */
  stop() {
    this.#listening?.abort();
    this.#listening = null;
    this.#pause();
  }

  leave() {
    this.stop();
    this.#leave.abort();
  }

  async #choose() {
    const [file] = this.#file.files ?? [];
    if (!file) return;
    await this.#begin();
    try {
      this.#rows = rowsOf(await file.text(), this.#reads);
      this.#tell("");
    } catch (error) {
      this.#rows = [];
      this.#tell(/** @type {Error} */ (error).message);
    }
    this.#enable();
  }

  /** Begin anew, at the first row and without a state. */
  #begin() {
    this.stop();
    [this.#done, this.#frames, this.#seconds] = [0, 0, 0];
    this.#series = undefined;
    this.#beginStream();
    return this.#pushes.then(() => {
      this.#chart.clear();
      this.#now.textContent = "";
      this.#time.textContent = "";
      this.#tell("");
      this.#enable();
    });
  }

  #pause() {
    this.#isPlaying = false;
    this.#enable();
  }

  async #toggle() {
    if (this.#isPlaying) {
      this.#pause();
      return;
    }
    this.#isPlaying = true;
    this.#plays += 1;
    const play = this.#plays;
    this.#enable();
    await this.#push([]); // the clock begins when the model is there
    let [start, before] = [performance.now(), this.#done];
    let speed = this.#speed.value;
    while (this.#isPlaying && play === this.#plays && this.#done < this.#rows.length) {
      if (speed !== this.#speed.value) [start, before, speed] = [performance.now(), this.#done, this.#speed.value];
      const due = before + ((performance.now() - start) / 1000) * Number(speed) - this.#done;
      if (due >= 1) await this.#pushNext(Math.min(Math.floor(due), MOST_AT_ONCE));
      else await new Promise((resolve) => { setTimeout(resolve, 15); });
    }
    if (play === this.#plays) this.#pause();
  }

  /** Push the next rows; a stream begins with each series. @param {number} count */
  #pushNext(count) {
    const rows = this.#rows.slice(this.#done, this.#done + count);
    this.#done += rows.length;
    this.#enable();
    for (let start = 0, end = 0; start < rows.length; start = end) {
      const series = this.#seriesOf(rows[start]);
      while (end < rows.length && this.#seriesOf(rows[end]) === series) end += 1;
      if (this.#series !== undefined && series !== this.#series) this.#beginStream();
      this.#series = series;
      this.#push(rows.slice(start, end));
    }
    return this.#pushes;
  }

  #seriesOf(row) {
    return this.#reads.series === null ? null : row[this.#reads.series];
  }

  #beginStream() {
    this.#pushes = this.#pushes.then(() => this.#browser.beginStream());
  }

  /** Push rows; one that is refused is told and left out, and the stream goes on. */
  #push(rows) {
    this.#pushes = this.#pushes.then(async () => {
      try {
        await this.#pushed(rows);
      } catch (error) {
        if (rows.length < 2) this.#tell(/** @type {Error} */ (error).message);
        for (const row of rows.length < 2 ? [] : rows) {
          await this.#pushed([row]).catch(({ message }) => this.#tell(message));
        }
      }
    });
    return this.#pushes;
  }

  async #pushed(rows) {
    await this.#browser.open((done, all) => {
      this.#now.textContent = done < all ? `Loading ${megabytes(all)} …` : "";
    });
    if (!rows.length) return;
    const { answers, seconds, bytes } = await this.#browser.push(rows);
    this.#frames += rows.length;
    this.#seconds += seconds;
    this.#chart.add(rows.map((row, place) => ({ numbers: drawnOf(row, this.#reads), ...traceOf(answers[place]) })));
    const answer = answers.findLast((found) => found !== null);
    this.#now.textContent = answer === undefined ? "The first frames have no answer." : said(answer);
    const each = Math.round((this.#seconds / this.#frames) * 1e6);
    const count = this.#frames === 1 ? "1 frame" : `${this.#frames.toLocaleString("en")} frames`;
    this.#time.textContent = `${count} · ${each.toLocaleString("en")} µs a frame · state of ${bytes.toLocaleString("en")} bytes`;
  }

  /** The button of the accelerometer, where the model reads three numbers and there is one. */
  #accelerometer() {
    const { names, drawn } = this.#reads;
    const { DeviceMotionEvent: Motion } = /** @type {any} */ (window);
    if (!Motion || drawn.length !== AXES.length || (names && names.length !== AXES.length)) return null;
    const axes = names?.every((name) => AXES.includes(name)) ? names : AXES; // in the order of the model
    return element("button", { type: "button", click: async () => {
      if (this.#listening) {
        this.stop();
        return;
      }
      if (Motion.requestPermission && (await Motion.requestPermission()) !== "granted") {
        this.#tell("the accelerometer is not allowed");
        return;
      }
      await this.#begin();
      this.#listening = new AbortController();
      this.#enable();
      const hear = ({ accelerationIncludingGravity: found }) => {
        if (found?.x === null || found?.x === undefined) return;
        this.#push([axes.map((axis) => found[axis])]);
      };
      window.addEventListener("devicemotion", hear, { signal: this.#listening.signal });
    } });
  }

  #enable() {
    const isOver = this.#done >= this.#rows.length;
    this.#play.textContent = this.#isPlaying ? "Pause" : "Play";
    this.#play.disabled = isOver || this.#listening !== null;
    this.#step.disabled = this.#play.disabled || this.#isPlaying;
    this.#restart.disabled = !this.#rows.length;
    this.#sensor?.replaceChildren(this.#listening ? "Stop the accelerometer" : "Accelerometer");
  }

  #tell(problem) {
    this.#problem.textContent = problem;
    this.#problem.hidden = !problem;
  }
}

/** Return what the chart shows of an answer. */
function traceOf(answer) {
  if (answer === null) return {};
  if (answer.values) return { forecast: answer.values[0] };
  if (answer.tag !== undefined) return { tag: answer.tag };
  if (Object.keys(answer.scores).length) return { scores: answer.scores };
  return { forecast: [answer.score] };
}

/** Return an answer in a few words. */
function said(answer) {
  if (answer.values) return `next: ${answer.values[0].map(short).join(", ")}`;
  if (answer.tag !== undefined) return `${answer.tag}, ${percent(answer.score)}`;
  return answer.labels.length ? `${named(answer.labels)}, ${percent(answer.score)}` : short(answer.score);
}
