import { expect, test } from "vitest";
import { goodput } from "../src/pure/goodput";
import { continued, warmUpEnd, type Tick } from "../src/pure/warmUp";

const TICK = 100e6;

function series(rates: readonly number[]): Tick[] {
  return rates.map((rate, n) => ({ end: (n + 1) * TICK, length: TICK, bytes: (rate * 1e6) / 80, streams: 1 }));
}

function then(start: readonly number[], rate: number, n: number): number[] {
  return [...start, ...Array.from({ length: n }, () => rate)];
}

// The rows of crates/engines/probe/src/warm_up.rs: the page and the command line must leave out the same.
test("the end of the warm-up is where the command line finds it", () => {
  const rows: [string, number[], number | null][] = [
    ["constant", then([], 40, 20), 1],
    ["doubling", then([1, 2, 4, 8, 16, 32], 40, 20), 7],
    ["bucket", then([5, 800, 90], 40, 20), 3],
    ["bucket in the first slice", then([120], 40, 20), 1],
    ["long bucket", then(Array(8).fill(80), 40, 20), 8],
    ["overshoot and hole", then([10, 100, 12, 20, 30], 40, 20), 5],
    ["grows to the end", [1, 2, 4, 8, 16, 32], null],
    ["too short", [40, 40, 40], null],
    ["silent", Array(20).fill(0), null],
    ["nothing", [], null],
  ];
  for (const [name, rates, first] of rows) {
    const want = first === null ? { rule: "never ended", first: 0 } : { rule: "slow start over", first };
    expect(warmUpEnd(series(rates), 0, 0), name).toEqual(want);
  }
});

test("a path that changed is no burst", () => {
  expect(warmUpEnd(series(then(Array(15).fill(80), 40, 10)), 0, 0).first).toBe(1);
});

test("a long round trip makes long rounds", () => {
  const rates = [2, 4, 8, 16, 18, 18, 18, 18].flatMap((rate) => Array<number>(5).fill(rate));
  expect(warmUpEnd(series(rates), TICK * 5, 0).first).toBe(20);
});

test("settling takes five loaded rounds but never more than half", () => {
  const ticks = series(Array(40).fill(40));
  const rows = [
    [0, 1],
    [50e6, 4],
    [2000e6, 20],
  ] as const;
  for (const [loaded, first] of rows) expect(warmUpEnd(ticks, 0, loaded).first, `${loaded}`).toBe(first);
});

test("counting begins when all streams have started", () => {
  const ticks = series(then(Array(6).fill(10), 40, 20));
  for (const tick of ticks.slice(6)) tick.streams = 4;
  expect(warmUpEnd(ticks, 0, 0).first).toBe(7);
});

test("rate is bytes over time of what counts, within its interval", () => {
  const found = goodput(series(then([1, 2, 4, 8, 16, 32], 40, 30)), 0, 0);
  expect(found.rate).toBeCloseTo(40e6, 3);
  expect(found.interval!.lo).toBeLessThanOrEqual(40e6);
  expect(found.interval!.hi).toBeGreaterThanOrEqual(40e6);
  expect(found.omitted).toBe(7 * TICK);
});

test("nothing that counts is no rate", () => {
  expect(goodput([], 0, 0).rate).toBeUndefined();
});

test("rounds that each begin at zero are drawn one after the other", () => {
  expect(continued([{ end: 1 }, { end: 2 }, { end: 1 }, { end: 2 }, { end: 1 }]).map((tick) => tick.end)).toEqual([1, 2, 3, 4, 5]);
});

test("what a reset took from the last slices is no slowness of the path", () => {
  const steady = series([...Array.from({ length: 37 }, () => 10), 2, 3, 1]);
  const [orderly, reset] = [goodput(steady, 0, 50e6), goodput(steady, 0, 50e6, "reset")];
  expect(orderly.rate!).toBeLessThan(reset.rate!);
  expect(Math.abs(reset.rate! / 10e6 - 1)).toBeLessThan(0.03);
  // However long the round trip, half of what counts stays, and of the whole half counts at least.
  expect(goodput(steady, 0, 10e9, "reset").measured).toBe(10 * TICK);
});
