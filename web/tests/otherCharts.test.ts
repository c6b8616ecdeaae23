import { expect, test } from "vitest";
import { readRecord } from "../src/pure/readRecord";
import type { NetRecord } from "../src/pure/record";
import { chartsOf } from "../src/pure/recordCharts";
import { svgOf } from "../src/pure/svg";
import { record } from "./fixture";

function commandLine(change: Record<string, unknown>, version: Record<string, unknown> = {}): NetRecord {
  const base = JSON.parse(JSON.stringify(record()));
  return readRecord({ ...base, ...change, versions: [{ version: "IPv4", ...version }] })!;
}

test("records of the command line have the picture that fits them", () => {
  const udp = [
    {
      pedigree: { direction: "forward" },
      goodput: 5e6,
      ticks: [{ end: 1e8, length: 1e8, bytes: 1000 }, { end: 2e8, length: 1e8, bytes: 2000 }],
      receiver: { bins: { bins: [[0, 5], [10_000, 7]] } },
    },
  ];
  const rate = { estimate: 4e8, lo: 3e8, hi: 5e8, confidence: 0.9 };
  const rows: [NetRecord, string[]][] = [
    [commandLine({ command: "udp" }, { udp }), ["UDP rate over time, IPv4", "Times between arrivals, IPv4"]],
    [
      commandLine({ command: "capacity" }, { path_rates: [{ pedigree: { direction: "reverse" }, metric: "capacity", rate }] }),
      ["Capacity and available bandwidth"],
    ],
    [
      commandLine({ command: "host", ability: { timings: { waits: [{ how: "sleep", asked: 1e5, p50: 7e4, p99: 6e5 }] } } }),
      ["How late this host's timers are: median and p99"],
    ],
  ];
  for (const [given, titles] of rows) {
    const charts = chartsOf(given);
    expect(charts.map((chart) => chart.title)).toEqual(titles);
    for (const chart of charts) expect(svgOf([chart])).not.toMatch(/NaN|Infinity/);
  }
});

test("fields of another type draw nothing and break nothing", () => {
  const odd = commandLine({ ability: { timings: "x" } }, { udp: [{ pedigree: 4 }], path_rates: { a: 1 } });
  expect(chartsOf(odd)).toEqual([]);
});

test("modes of packet pairs are drawn as wide as they are, and the one that was taken once more", () => {
  const modes = [{ lo: 9e7, hi: 1e8, share: 0.5, merit: 1.5, chosen: true }, { lo: 4e7, hi: 5e7, share: 0.2, merit: 0.4 }, { lo: "x" }];
  const rate = { estimate: 9.6e7, lo: 9e7, hi: 1e8, confidence: 0.9 };
  const path_rates = [{ pedigree: { direction: "forward" }, metric: "capacity", rate, modes }];
  const [, chart] = chartsOf(commandLine({ command: "capacity" }, { path_rates }));
  expect(chart!.title).toBe("Where packet pairs gathered");
  const series = chart!.kind === "lines" ? chart!.series : [];
  expect(series.map(({ name, points }) => [name, points])).toEqual([
    ["capacity up IPv4", [[40, 0], [40, 20], [50, 20], [50, 0], [90, 0], [90, 50], [100, 50], [100, 0]]],
    ["capacity up IPv4: taken", [[90, 0], [90, 50], [100, 50], [100, 0]]],
  ]);
});

test("a path that was followed is drawn over time, without the instants at which nothing was known", () => {
  const point = (at: number, estimate?: number) => ({ at, ...(estimate ? { rate: { estimate, lo: 1, hi: 2 } } : {}) });
  const over_time = [point(1e9, 9e6), point(2e9), point(3e9, 5e6)];
  const path_rates = [{ pedigree: { direction: "forward" }, metric: "available", over_time }];
  const [chart] = chartsOf(commandLine({ command: "available" }, { path_rates }));
  expect(chart!.kind === "lines" && chart!.series[0]!.points).toEqual([[1, 9], [3, 5]]);
});

test("bins of equal width that a latency measurement was asked for are kept and drawn by their middles", () => {
  const latency = { ...record().versions[0]!.latency!, bins: { bins: [[0, 3], [10_000, 5], [20_000, 1]], width: 10_000, underflow: 0, overflow: 2 } };
  const read = commandLine({ command: "latency" }, { latency });
  expect(read.versions[0]!.latency!.bins).toEqual(latency.bins);
  const [chart] = chartsOf(read);
  expect(chart!.kind === "lines" && chart!.series[0]!.points).toEqual([[0.005, 3], [0.015, 5], [0.025, 1]]);
});

test("one-way delays are drawn each way", () => {
  const way = (edge: number) => ({ lost: 0, histogram: { bins: [[edge, 4], [edge + 1e5, 2]], digits: 2, underflow: 0, overflow: 0 } });
  const [chart] = chartsOf(commandLine({ command: "owd" }, { owd: { forward: way(1e6), reverse: way(3e6) } }));
  expect(chart!.title).toBe("One-way delays");
  expect(chart!.kind === "lines" && chart!.series.map(({ name }) => name)).toEqual(["Up IPv4", "Down IPv4"]);
});
