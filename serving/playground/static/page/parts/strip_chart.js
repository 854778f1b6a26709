// A signal and the answers to it, as they come: the newest at the right.

import { element } from "../element.js";
import { percent, short } from "../numbers.js";

const KEPT = 600; // frames
const [SIGNAL, ANSWERS, GAP] = [220, 110, 14]; // heights, in pixels of CSS
const WIDTH = 960; // before the chart is on the page
const HUES = [270, 30, 150, 320, 60, 200, 0, 110];
const OTHERS = 3; // the first hue of answers
const MOST_LINES = 8; // of the signal, and of scores

/**
 * A frame and its answer.
 *
 * @typedef {object} Point
 * @property {number[]} numbers of the frame.
 * @property {Record<string, number>} [scores] label -> probability.
 * @property {string} [tag]
 * @property {number[]} [forecast] the next value of each target.
 */

/** A strip chart. */
export class StripChart {
  /** @type {Point[]} */
  #points = [];
  #names;
  #canvas;
  #width = WIDTH;
  #signalKeys = element("figcaption", {});
  #answerKeys = element("p", { class: "keys" });

  /** @param {string[]} names of the numbers of a frame. */
  constructor(names) {
    this.#names = names.slice(0, MOST_LINES);
    this.#canvas = element("canvas", { role: "img", "aria-label": "The signal, and the answers below it" });
    this.element = element("figure", { class: "strip" }, this.#signalKeys, this.#canvas, this.#answerKeys);
    this.draw();
  }

  clear() {
    this.#points = [];
    this.draw();
  }

  /** @param {Point[]} points */
  add(points) {
    this.#points = [...this.#points, ...points].slice(-KEPT);
    this.draw();
  }

  draw() {
    const context = /** @type {CanvasRenderingContext2D} */ (this.#canvas.getContext("2d"));
    const style = getComputedStyle(this.#canvas);
    const ink = { line: style.borderTopColor, quiet: style.color };
    this.#width = this.#canvas.clientWidth || WIDTH;
    this.#canvas.width = this.#width * devicePixelRatio; // which clears it, too
    this.#canvas.height = (SIGNAL + GAP + ANSWERS) * devicePixelRatio;
    context.scale(devicePixelRatio, devicePixelRatio);
    context.lineWidth = 1.5;
    context.font = "13px system-ui, sans-serif";
    this.#signal(context, ink);
    const last = this.#points.findLast(({ scores, tag }) => scores ?? tag);
    this.#answerKeys.replaceChildren();
    if (last?.scores) this.#scores(context, ink);
    else if (last) this.#tags(context, ink);
  }

  /** The numbers of the frames, and the forecasts beside them. */
  #signal(context, ink) {
    const forecasts = this.#points.flatMap(({ forecast = [] }) => forecast);
    const all = [...this.#points.flatMap(({ numbers }) => numbers.slice(0, MOST_LINES)), ...forecasts]
      .filter(Number.isFinite);
    const [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
    const height = forecasts.length ? SIGNAL + GAP + ANSWERS : SIGNAL; // nothing stands below forecasts
    const y = (value) => height - 6 - ((value - low) / (high - low || 1)) * (height - 12);
    this.#frame(context, 0, height, ink.line);
    this.#names.forEach((_, place) =>
      this.#line(context, colour(place), ({ numbers }) => y(numbers[place])));
    const targets = forecasts.length ? this.#points.findLast(({ forecast }) => forecast)?.forecast?.length ?? 0 : 0;
    for (let target = 0; target < targets; target += 1) { // a forecast stands at the frame that it is of
      this.#line(context, colour(target), ({ forecast }) => y(forecast?.[target] ?? NaN), 1, [6, 4]);
    }
    context.fillStyle = ink.quiet;
    context.fillText(short(high), 6, 16);
    context.fillText(short(low), 6, height - 8);
    const keys = this.#names.map((name, place) => key(name, place));
    if (targets) keys.push(element("span", { class: "name" }, "dashed: the forecast of the next step"));
    this.#signalKeys.replaceChildren(...keys);
  }

  #scores(context, ink) {
    const top = SIGNAL + GAP;
    const labels = labelsOf(this.#points);
    this.#frame(context, top, ANSWERS, ink.line);
    labels.forEach((label, place) => this.#line(context, colour(place + OTHERS),
      ({ scores }) => top + ANSWERS - 4 - (scores?.[label] ?? NaN) * (ANSWERS - 8)));
    context.fillStyle = ink.quiet;
    context.fillText("100 %", 6, top + 16);
    context.fillText("0 %", 6, top + ANSWERS - 8);
    const { scores = {} } = this.#points.findLast((point) => point.scores) ?? {};
    this.#answerKeys.append(...labels.map((label, place) => key(`${label} ${percent(scores[label])}`, place + OTHERS)));
  }

  /** A band of the tags' colours. */
  #tags(context, ink) {
    const top = SIGNAL + GAP;
    const tags = [...new Set(this.#points.map(({ tag }) => tag).filter((tag) => tag !== undefined))].sort();
    const step = this.#width / KEPT;
    this.#points.forEach(({ tag }, place) => {
      if (tag === undefined) return;
      context.fillStyle = colour(tags.indexOf(tag) + OTHERS);
      context.fillRect(this.#x(place) - step / 2, top, step + 1, ANSWERS);
    });
    this.#frame(context, top, ANSWERS, ink.line);
    this.#answerKeys.append(...tags.map((tag, place) => key(String(tag), place + OTHERS)));
  }

  #line(context, stroke, y, shift = 0, dashes = /** @type {number[]} */ ([])) {
    context.strokeStyle = stroke;
    context.setLineDash(dashes);
    context.beginPath();
    let isDown = false;
    this.#points.forEach((point, place) => {
      const at = y(point);
      if (Number.isFinite(at)) context[isDown ? "lineTo" : "moveTo"](this.#x(place + shift), at);
      isDown = Number.isFinite(at);
    });
    context.stroke();
    context.setLineDash([]);
  }

  #frame(context, top, height, stroke) {
    context.strokeStyle = stroke;
    context.strokeRect(0.5, top + 0.5, this.#width - 1, height - 1);
  }

  #x(place) {
    return this.#width * (1 - (this.#points.length - place) / KEPT);
  }
}

const colour = (place) => `oklch(0.62 0.17 ${HUES[place % HUES.length]})`;

function key(name, place) {
  const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.setProperty("--swatch", colour(place));
  return element("span", { class: "name" }, swatch, name);
}

/** Return the most probable labels of some answers, in the order of the names. */
function labelsOf(points) {
  const best = new Map();
  for (const { scores = {} } of points) {
    for (const [label, score] of Object.entries(scores)) best.set(label, Math.max(score, best.get(label) ?? 0));
  }
  return [...best].sort(([, one], [, other]) => other - one).slice(0, MOST_LINES - 1).map(([label]) => label).sort();
}
