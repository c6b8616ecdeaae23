import { expect, test } from "vitest";
import { check, SEVENTEEN_PAIRS, transfers, type Wish } from "../src/pure/matrixPlan";
import { parseSize, showBounds, showRate, showSize, showSpan, showTrip, parseSpan, splitSpan } from "../src/pure/units";

test("there are 17 pairs and no block is larger than its total", () => {
  expect(SEVENTEEN_PAIRS).toHaveLength(17);
  for (const { bytes, block } of SEVENTEEN_PAIRS) expect(block).toBeLessThanOrEqual(bytes);
});

test("every cell runs once in each round and protocols take turns to go first", () => {
  const planned = transfers([{ bytes: 1000, block: 50 }, { bytes: 1000, block: 100 }], ["tcp", "tcp_nodelay"], 2);
  expect(planned).toHaveLength(8);
  const firsts = [0, 2, 4, 6].map((n) => planned[n]!.protocol);
  expect(firsts).toEqual(["tcp", "tcp_nodelay", "tcp_nodelay", "tcp"]);
});

test("absurd wishes are explained at their field", () => {
  const wish = (total: string, block: string, runs = "3"): Wish => ({ udp: false, sweep: false, total, block, runs });
  const rows: [Wish, "total" | "block" | "runs", string][] = [
    [wish("1kB", "2kB"), "block", "blockOverTotal"],
    [wish("lots", "1kB"), "total", "notASize"],
    [wish("0", "1kB"), "total", "nothing"],
    [wish("2GB", "1kB"), "total", "tooLarge"],
    [wish("10MB", "2MB"), "block", "blockTooLarge"],
    [wish("1GB", "10"), "block", "tooManyWrites"],
    [wish("1kB", "50", "0"), "runs", "notACount"],
    [wish("1kB", "50", "2.5"), "runs", "notACount"],
    [wish("<b>", "50"), "total", "notASize"],
  ];
  for (const [given, field, reason] of rows) {
    const found = check(given, null);
    expect("complaints" in found && found.complaints[field]?.reason, JSON.stringify(given)).toBe(reason);
  }
  expect(check(wish("10kB", "50"), null)).toEqual({ cells: [{ bytes: 10_000, block: 50 }], runs: 3 });
  expect(check(wish("10kB", "50"), 5000)).toHaveProperty("complaints.total.reason", "overCap");
});

test("sizes are read as on the command line", () => {
  const rows: [string, number | undefined][] = [
    ["10kB", 10_000],
    ["64KiB", 65_536],
    ["1.5 MB", 1_500_000],
    ["500", 500],
    ["500B", 500],
    ["64K", 65_536],
    ["64k", 65_536],
    ["64KB", 64_000],
    ["2Mi", 2_097_152],
    ["8Mb", undefined],
    ["64kib", undefined],
    ["5i", undefined],
    ["0.3B", undefined],
    ["-1", undefined],
    ["1e9", undefined],
    ["", undefined],
    ["9999999999GB", undefined],
  ];
  for (const [text, want] of rows) expect(parseSize(text), text).toBe(want);
});

test("figures are shown with three digits and their unit", () => {
  expect([showRate(94_120_000), showRate(999_700), showRate(7), showRate(1_204_000_000)]).toEqual([
    "94.1 Mbit/s",
    "1.00 Mbit/s",
    "7.00 bit/s",
    "1.20 Gbit/s",
  ]);
  expect([showSpan(312_000), showSpan(12_340_000), showSpan(0), showSize(64_000), showSize(1500)]).toEqual(["312 us", "12.3 ms", "0 ns", "64 kB", "1.50 kB"]);
  expect([showTrip(0, 1e6), showTrip(980_000, 1e6), showTrip(1e6, 1e6), showTrip(312_000, 0)]).toEqual(["<1.00 ms", "<1.00 ms", "1.00 ms", "312 us"]);
  expect(["1.00 ms", "16.7 ms", "0 ns", "1 year", undefined].map(parseSpan)).toEqual([1e6, 16.7e6, 0, 0, 0]);
});

test("bounds name their unit once where both have the same", () => {
  expect(showBounds(15e6, 37.4e6, splitSpan, "to")).toBe("15.0 to 37.4 ms");
  expect(showBounds(900e3, 1.2e6, splitSpan, "to")).toBe("900 us to 1.20 ms");
});
