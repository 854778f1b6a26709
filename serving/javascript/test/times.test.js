// Times of rows, by the table that Python's test reads too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";

import { inIso, TimeColumn } from "../src/times.js";

const TABLE = JSON.parse(readFileSync(new URL("times.json", import.meta.url), "utf-8"));
const TIME = new TimeColumn({ columns: ["t"] });

const columnOf = ({ columns = ["t"], format = null }) => new TimeColumn({ columns, format });
const valuesOf = (row) => row.values ?? [row.value];
const stepOf = ({ step, unit, day = null }) => new TimeColumn({ columns: ["t"], step, unit, day });

it("a time is read as it is written", () => {
  for (const row of TABLE.read) {
    const time = columnOf(row).read(valuesOf(row), "row");
    assert.equal(inIso(time), row.time, JSON.stringify(row));
  }
  assert.equal(inIso(TIME.read([new Date("2024-02-29T23:00+02:00")], "row")), "2024-02-29T21:00:00");
  assert.equal(inIso(TIME.read([1709247600123456n], "row")), "2024-02-29T23:00:00.123456");
});

it("what is no time is refused with its row", () => {
  for (const row of TABLE.refused) {
    assert.throws(
      () => columnOf(row).read(valuesOf(row), "row 3"),
      { name: "Refusal", message: /^row 3: '.*' must be a time .*; received / },
      JSON.stringify(row),
    );
  }
  for (const row of TABLE.no_such_day) {
    assert.throws(
      () => columnOf(row).read(valuesOf(row), "row 3"),
      { name: "Refusal", message: /; received .*: there is no such day\.$/ },
      JSON.stringify(row),
    );
  }
  for (const value of [undefined, NaN, Infinity, new Date(NaN), Symbol("x")]) {
    assert.throws(() => TIME.read([value], "row"), /^Refusal: row: 't' must be a time in ISO 8601, as /);
  }
});

it("the next times are those of pandas", () => {
  for (const row of TABLE.after) {
    const column = stepOf(row);
    assert.deepEqual([...column.problems()], []);
    const times = row.times.map((text) => TIME.read([text], "row"));
    assert.deepEqual(column.after(times[0], times.length - 1).map(inIso), row.times.slice(1), row.freq);
    for (let place = 1; place < times.length; place += 1) {
      assert.deepEqual(column.stepsBetween(times[place - 1], times[place]), { count: 1, isNear: true });
      const { count } = column.stepsBetween(times[0], times[place]);
      assert.equal(count, place);
    }
  }
});

it("a time follows near its step", () => {
  for (const row of TABLE.followed) {
    const times = row.times.map((text) => TIME.read([text], "row"));
    const found = times.slice(1).map((time, place) => stepOf(row).stepsBetween(times[place], time));
    assert.deepEqual(found.map(({ count }) => count), row.counts, row.unit);
    assert.deepEqual(found.map(({ isNear }) => isNear), row.near, row.unit);
  }
});

it("the hour that comes twice is told its way out", () => {
  const times = ["2024-10-27T02:00", "2024-10-27T02:00"].map((text) => TIME.read([text], "row"));
  assert.throws(
    () => new TimeColumn({ columns: ["t"], step: 3600 }).requireSteps(times, (row) => `row ${row}`),
    /row 1: expected the time 2024-10-27T03:00:00, 1 hour after the row before; received 2024-10-27T02:00:00; where clocks change/,
  );
});

const nameOf = (row) => `row ${row + 1}`;

it("a time of training's kind is read, one of the other kind refused", () => {
  for (const { values, has_offset: own, ...form } of TABLE.offsets) {
    const rows = values.map((value) => [value].flat());
    const requireOffsets = (has_offset) => () => (
      new TimeColumn({ columns: ["t"], ...form, has_offset }).requireOffsets(rows, nameOf));
    for (const trained of own === null ? [null, true, false] : [null, own]) requireOffsets(trained)();
    if (own !== null) {
      assert.throws(requireOffsets(!own), /^Refusal: row \d: .* a zone offset, as in training; /);
    }
  }
});

it("times with and without an offset never stand beside each other", () => {
  for (const { values, refusal, has_offset = null } of TABLE.mixed) {
    const column = new TimeColumn({ columns: ["t"], has_offset });
    const rows = values.map((value) => [value]);
    assert.throws(() => column.requireOffsets(rows, nameOf), { name: "Refusal", message: `${refusal}.` });
  }
});

it("phases are those of Python", () => {
  const cycles = ["day", "week", "year"];
  for (const { time, phases } of TABLE.phases) {
    const found = new TimeColumn({ columns: ["t"], cycles }).phases(TIME.read([time], "row"));
    found.forEach((number, place) => assert.ok(Math.abs(number - phases[place]) < 1e-9, time));
  }
});

it("a format that JavaScript can not read is told when the bundle is opened", () => {
  const told = (format) => [...new TimeColumn({ columns: ["t"], format }).problems()];
  assert.deepEqual(told("%G-W%V-%u"), [
    "the format may not have '%G' in JavaScript: serve this bundle by Python",
  ]);
  assert.deepEqual(told("%d.%m.%Y 100%%"), []);
});
