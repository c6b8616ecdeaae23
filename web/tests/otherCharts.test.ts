import { expect, test } from "vitest";
import { seriesCharts } from "../src/pure/otherCharts";
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

test("the points of a scan are one picture, in the order of the plan", () => {
  const at = (index: number) => ({ ...record(), series: { id: "0190", kind: "scan", index, planned: 3, point: { streams: `${index}` } } });
  const all = [at(2), at(0), at(1), record()];
  const [rates, trips] = seriesCharts(all[0]!, all);
  expect(rates!.kind === "lines" && rates!.series[0]!.points.map(([x]) => x)).toEqual([1, 2, 3]);
  expect(trips!.title).toContain("Round trip");
  expect(seriesCharts(record(), all)).toEqual([]);
});
