import { expect, test } from "vitest";
import type { LineChart } from "../src/pure/chart";
import { compare, overlays } from "../src/pure/compare";
import { csvOf } from "../src/pure/csv";
import { readRecord } from "../src/pure/readRecord";
import { matrixOf, type NetRecord } from "../src/pure/record";
import { svgOf } from "../src/pure/svg";
import { matrixRun, measured, record } from "./fixture";

function commandLine(command: string, version: Record<string, unknown>, more: Record<string, unknown> = {}): NetRecord {
  const base = JSON.parse(JSON.stringify(record()));
  return readRecord({ ...base, command, ...more, versions: Object.keys(version).length > 0 ? [{ version: "IPv4", ...version }] : [] })!;
}

const rate = (estimate: number) => ({ estimate, lo: estimate * 0.9, hi: estimate * 1.1, confidence: 0.9 });
const udp = (lost: number) =>
  commandLine("udp", { udp: [{ pedigree: { direction: "forward" }, goodput: 5e6, sent: 1000, loss: { lost }, receiver: { jitter: 3e5 } }] });
const capacity = (bound: string) => commandLine("capacity", { path_rates: [{ pedigree: { direction: "reverse" }, metric: "capacity", rate: rate(4e8), bound }] });
const host = commandLine("host", {}, { ability: { timings: { waits: [{ how: "sleep", asked: 1e5, p50: 7e4, p99: 6e5 }] }, honest: [{ way: "trains", packet: 1500, rate: 8e9 }] } });
const delays = (ms: number) => ({ lost: 1, loss: 0.01, delay: { p50: ms * 1e6, p95: ms * 2e6 } });
const owd = commandLine("owd", { owd: { forward: delays(1), reverse: delays(2) } });

function table(records: readonly NetRecord[]): Record<string, (number | undefined)[]> {
  const { rows } = compare(records.map((own, n) => ({ name: `${n + 1}`, record: own })));
  return Object.fromEntries(rows.map(({ name, cells }) => [name, cells.map((cell) => cell?.value)]));
}

test("records of every command have figures to compare", () => {
  const rows: [NetRecord[], Record<string, (number | undefined)[]>][] = [
    [[udp(0), udp(50)], { "Loss up": [0, 0.05], "Jitter up (RFC 3550)": [3e5, 3e5], "UDP up": [5e6, 5e6] }],
    [[capacity("none"), capacity("none")], { "capacity down": [4e8, 4e8] }],
    [[host, host], { "Late after sleep 100 us, median": [7e4, 7e4], "Late after sleep 100 us, p99": [6e5, 6e5], "Probes by trains of 1500 B up to": [8e9, 8e9] }],
    [[owd], { "One-way delay up, median": [1e6], "One-way delay up, p95": [2e6], "Loss up": [0.01], "One-way delay down, median": [2e6], "One-way delay down, p95": [4e6], "Loss down": [0.01] }],
  ];
  for (const [records, want] of rows) expect(table(records)).toEqual(want);
});

test("a bound is no figure: it has a row of its own, at its certain end", () => {
  const found = table([capacity("none"), capacity("at_least")]);
  expect(found["capacity down"]).toEqual([4e8, undefined]);
  expect(found["capacity down, at least"]).toEqual([undefined, 3.6e8]);
});

test("the cells of a matrix are compared", () => {
  const of = (elapsed: number) => ({ ...record(), versions: [{ version: "IPv4" as const, matrix: matrixOf([matrixRun(10_000, 1000, 0, elapsed)], "IPv4", measured().instrument) }] });
  const found = table([of(8e6), of(4e6)]);
  expect(found["TCP up, 10 kB in 1 kB: time"]).toEqual([16e6, 8e6]);
  expect(found["TCP up, 10 kB in 1 kB: rate"]!.every((value) => value! > 0)).toBe(true);
});

test("different kinds stand side by side, and each row where its own record has it", () => {
  const names = Object.keys(table([record(), udp(3)]));
  expect(names.slice(0, 3)).toEqual(["Down", "Up", "Round trip, median"]);
  expect(names).toContain("UDP up");
});

test("no record and no line is left out of a picture: each is of one figure, with a line per record", () => {
  const both = (): NetRecord => {
    const own = record();
    const [v4] = own.versions;
    return { ...own, versions: [v4!, JSON.parse(JSON.stringify(v4).replaceAll("IPv4", "IPv6"))] };
  };
  const named = Array.from({ length: 9 }, (_, n) => ({ name: `hall ${n + 1}`, record: both() }));
  const found = overlays(named);
  const titles = found.map(({ chart }) => chart.title);
  for (const line of ["Down IPv4", "Up IPv4", "Down IPv6", "Up IPv6"]) expect(titles).toContain(`Rate over time: ${line}`);
  for (const { chart, records } of found) {
    expect(records).toBe(9);
    expect(chart.kind === "lines" ? chart.series.map(({ name }) => name) : []).toEqual(named.map(({ name }) => name));
  }
  const svg = svgOf([found[0]!.chart]);
  expect(svg).toContain("hall 9");
  expect(svg.match(/stroke-dasharray/g)).toHaveLength(3);
});

test("what only some of the records have is offered last and says so", () => {
  const found = overlays([{ name: "a", record: record() }, { name: "b", record: record() }, { name: "c", record: capacity("none") }]);
  expect(found[0]!.records).toBe(2);
  expect(found.at(-1)!.chart).toMatchObject({ kind: "spreads", title: "Capacity and available bandwidth: capacity down IPv4" });
  expect(found.at(-1)!.records).toBe(1);
});

test("histograms of several records are lines, for bars would hide each other", () => {
  const [, , trips] = overlays([{ name: "a", record: record() }, { name: "b", record: record() }]);
  expect(trips!.chart.title).toBe("Round trips: IPv4");
  expect((trips!.chart as LineChart).series.map(({ look }) => look)).toEqual(["line", "line"]);
});

test("every kind of record has rows for a spreadsheet", () => {
  const rows: [NetRecord, string][] = [
    [capacity("none"), ",IPv4,capacity_down,400000000,360000000,440"],
    [capacity("at_least"), ",IPv4,capacity_down_at_least,360000000,,,bit/s"],
    [host, ",host,,late_sleep_100000_p99,600000,,,ns"],
    [owd, ",IPv4,owd_down_p50,2000000,,,ns"],
    [owd, ",IPv4,owd_up_loss,0.01,,,\r\n"],
    [udp(7), ",IPv4,udp_up,5000000,,,bit/s"],
    [commandLine("hops", { hops: { hops: [{ ttl: 3, rtt_min: 4e6, loss: 0.5 }] } }), ",IPv4,hop_3_rtt_min,4000000,,,ns"],
    [commandLine("reach", { reach_probes: [{ protocol: "echo", rtt: { p50: 5e6, p95: 6e6 } }] }), ",IPv4,reach_echo_rtt_p50,5000000,,,ns"],
  ];
  for (const [given, row] of rows) expect(csvOf([given]), row).toContain(row);
});
