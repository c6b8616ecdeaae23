import { expect, test } from "vitest";
import { blockBootstrap, deviation, mad, median, mulberry32, quantile } from "../src/pure/statistics";

test("quantiles are of type 7", () => {
  const rows: [number[], number, number | undefined][] = [
    [[], 0.5, undefined],
    [[4], 0.99, 4],
    [[1, 2, 3, 4], 0.5, 2.5],
    [[1, 2, 3, 4], 0.95, 3.85],
    [[1, 2, 3, 4], 1, 4],
  ];
  for (const [values, q, want] of rows) {
    const found = quantile(values, q);
    if (want === undefined) expect(found).toBeUndefined();
    else expect(found).toBeCloseTo(want, 9);
  }
});

test("spread of few values is that of the sample", () => {
  expect(deviation([1])).toBe(0);
  expect(deviation([1, 3])).toBeCloseTo(Math.SQRT2, 9);
  expect(mad([1, 1, 2, 9])).toBe(0.5);
  expect(median([3, 1, 2])).toBe(2);
});

test("interval holds the true mean about as often as it claims", () => {
  let held = 0;
  for (let seed = 0; seed < 100; seed += 1) {
    const random = mulberry32(seed);
    const samples = Array.from({ length: 40 }, () => 100 + 20 * (random() - 0.5));
    const found = blockBootstrap(samples, 5)!;
    held += found.lo <= 100 && 100 <= found.hi ? 1 : 0;
  }
  expect(held).toBeGreaterThanOrEqual(85);
});

test("one sample has no interval", () => {
  expect(blockBootstrap([5], 5)).toBeUndefined();
  expect(blockBootstrap([], 5)).toBeUndefined();
});
