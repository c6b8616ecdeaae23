import { expect, test } from "vitest";
import type { LineChart } from "../src/pure/chart";
import { readRecord } from "../src/pure/readRecord";
import type { NetRecord } from "../src/pure/record";
import { quantity, seriesCharts } from "../src/pure/seriesCharts";
import { record } from "./fixture";

const SERIES = "01900000-0000-7000-8000-000000000000";

function at(index: number, point: Record<string, string>, version: Record<string, unknown> = {}): NetRecord {
  const base = JSON.parse(JSON.stringify(record()));
  const versions = [{ ...base.versions[0], ...version }];
  return readRecord({ ...base, versions, series: { id: SERIES, kind: "scan", index, planned: 3, point } })!;
}

function drawn(all: readonly NetRecord[]): LineChart[] {
  return seriesCharts(all[0]!, all);
}

test("the axis is the scanned value in its unit, in the order of the plan", () => {
  const all = [at(2, { spacing: "30us" }), at(0, { spacing: "10us" }), at(1, { spacing: "20us" }), record()];
  const [rates, trips] = drawn(all);
  expect(rates!.series[0]!.points.map(([x]) => x)).toEqual([10, 20, 30]);
  expect([rates!.x.label, rates!.x.log]).toEqual(["spacing, us", false]);
  expect(trips!.title).toBe("Delay over the series");
  expect(seriesCharts(record(), all)).toEqual([]);
});

test("a scan over powers is drawn by ratios, and units that differ meet in the smallest", () => {
  const [rates] = drawn([at(0, { length: "1kB" }), at(1, { length: "64KiB" }), at(2, { length: "1MB" })]);
  expect(rates!.x).toEqual({ label: "length, B", log: true });
  expect(rates!.series[0]!.points.map(([x]) => x)).toEqual([1000, 65_536, 1e6]);
});

test("of two scanned options the second has lines of its own", () => {
  const points = [1, 2].flatMap((streams) => ["10ms", "20ms"].map((delay, n) => at(streams * 2 + n, { delay, streams: `${streams}` })));
  const [rates] = drawn(points);
  expect(rates!.series.map(({ name }) => name)).toEqual(["Down IPv4, streams 1", "Up IPv4, streams 1", "Down IPv4, streams 2", "Up IPv4, streams 2"]);
  expect(rates!.series[0]!.points.map(([x]) => x)).toEqual([10, 20]);
});

test("names and repetitions are drawn over the number of the point", () => {
  for (const points of [[{ congestion: "cubic" }, { congestion: "bbr" }], [{}, {}]]) {
    const [rates] = drawn(points.map((point, n) => at(n, point as Record<string, string>)));
    expect(rates!.x.label).toBe("point");
    expect(rates!.series[0]!.points.map(([x]) => x)).toEqual([1, 2]);
  }
});

test("loss is drawn in percent", () => {
  const udp = (lost: number) => ({ udp: [{ pedigree: { direction: "forward" }, sent: 200, loss: { lost } }] });
  const charts = drawn([at(0, { rate: "1Mbit/s" }, udp(0)), at(1, { rate: "2Mbit/s" }, udp(5))]);
  const loss = charts.find((chart) => chart.title === "Loss over the series")!;
  expect(loss.series).toEqual([{ name: "Loss up IPv4", points: [[1, 0], [2, 2.5]], look: "line" }]);
});

test("quantities are read as records write them", () => {
  const rows: [string, number | undefined][] = [["20us", 20_000], ["1500Mbit/s", 1.5e9], ["64KiB", 65_536], ["8", 8], ["cubic", undefined], ["1constructor", undefined], ["", undefined], ["-3", undefined]];
  for (const [text, value] of rows) expect(quantity(text)?.value, text).toBe(value);
});
