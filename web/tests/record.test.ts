import { expect, test } from "vitest";
import { csvOf } from "../src/pure/csv";
import { evidenceOf, figuresOf } from "../src/pure/figures";
import { comparePlaces } from "../src/pure/places";
import { readRecord } from "../src/pure/readRecord";
import { matrixOf, partialRecordOf, recordOf, uuidV7 } from "../src/pure/record";
import { around, matrixRun, measured, record } from "./fixture";

test("a record has the receiver's rates, never what was handed over", () => {
  const [v4] = record().versions;
  const [down, up] = v4!.tcp!;
  expect([down!.goodput, up!.goodput]).toEqual([80e6, 20e6]);
  expect([down!.pedigree.direction, up!.pedigree.direction]).toEqual(["reverse", "forward"]);
  expect([up!.bytes, up!.sender!.bytes]).toEqual([7.5e6, 9e6]);
  expect(v4!.latency!.rtt!.p50).toBe(11e6);
  expect(v4!.latency!.ipdv!.count).toBe(3);
  expect(down!.latency_under_load!.rise).toBe(24e6);
});

test("what nobody measured of a transfer is absent and not zero, and such a record is read", () => {
  const made = record();
  const [down, up] = made.versions[0]!.tcp!;
  for (const field of ["retransmits", "rtt", "min_rtt", "cwnd"]) expect(field in up!).toBe(false);
  expect(up!.sender!.cpu).toBeUndefined();
  delete down!.bytes;
  delete down!.warm_up;
  delete down!.sender;
  const read = readRecord(JSON.parse(JSON.stringify(made)));
  expect(read?.versions[0]!.tcp![0]!.goodput).toBe(80e6);
});

test("a version that did not answer is in the record with its reason", () => {
  const v6 = record().versions[1]!;
  expect(v6.version).toBe("IPv6");
  expect(v6.unreachable!.reason).toContain("2001:db8::1");
});

test("what the browser did wrong is told in the record", () => {
  const troubled = measured();
  troubled.instrument = { clockStep: 1e6, isolated: false, pauses: 3, longestPause: 2e9, lostConnections: 1 };
  const warnings = recordOf(troubled, { ...around, hidden: 4e9 }).warnings.join("\n");
  for (const part of ["1.00 ms", "hidden for 4.00 s", "3 times", "lost 1 times", "loss was not measured"]) expect(warnings).toContain(part);
});

test("a clock that is coarser than a round trip shows it as shorter than a step", () => {
  const coarse = measured();
  coarse.instrument = { ...coarse.instrument, clockStep: 1e6 };
  const made = recordOf(coarse, around);
  expect(made.request.options).toEqual({ ...around.options, clock: "1.00 ms" });
  expect(figuresOf(made).map((own) => own.clockStep)).toEqual([1e6, 1e6]);
  expect(figuresOf(record()).map((own) => own.clockStep)).toEqual([0, 0]);
});

test("identities are of version 7 and sort by time", () => {
  const [first, second] = [uuidV7(1e12, around.random), uuidV7(1e12 + 1, around.random)];
  expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(first < second).toBe(true);
});

test("a record that the page made can be read by the page, unchanged where it counts", () => {
  const made = record();
  const read = readRecord(JSON.parse(JSON.stringify(made)))!;
  expect(read.versions[0]!.tcp![0]!.goodput).toBe(made.versions[0]!.tcp![0]!.goodput);
  expect(read.versions[0]!.latency!.histogram).toEqual(made.versions[0]!.latency!.histogram);
  expect(read.label).toBe("hall A");
});

test("evidence is the careful end of each figure", () => {
  const found = evidenceOf(figuresOf(record())[0]!);
  expect(found.down).toBeLessThanOrEqual(80e6);
  expect(found.loaded).toBeGreaterThan(30e6);
});

test("a matrix cell is the median between its runs, without what the first read brought", () => {
  const runs = [matrixRun(10_000, 1000, 0, 8e6), matrixRun(10_000, 1000, 1, 4e6), matrixRun(10_000, 1000, 2, 6e6)];
  const [matrix] = matrixOf(runs, "IPv4", measured().instrument);
  const [cell] = matrix!.cells;
  expect(cell!.server_time).toEqual({ estimate: 6e6, lo: 4e6, hi: 8e6, confidence: 0.75 });
  expect(cell!.server_throughput!.estimate).toBe(Math.round((9000 * 8e9) / 6e6));
  expect(cell!.runs.map((run) => run.lost)).toEqual([0, 0, 0]);
});

test("places are compared by the median of their visits", () => {
  const visits = ["A", "B", "A"].map((place) => ({ place, record: record() }));
  const found = comparePlaces(visits, "IPv4");
  expect(found.map((place) => [place.place, place.visits])).toEqual([["A", 2], ["B", 1]]);
  expect(found[0]!.spread.down).toMatchObject({ estimate: 80e6, lo: 80e6, hi: 80e6 });
  expect(comparePlaces(visits, "IPv6")[0]!.spread).toEqual({});
});

test("a table for spreadsheets holds no formula and no broken row", () => {
  const table = csvOf([record({ label: '=cmd("x"),\n' })]);
  expect(table).toContain(`"'=cmd(""x""),\n"`);
  expect(table.split("\r\n")[0]).toContain("started_at_utc");
  expect(table).toContain(",down,80000000,");
});

test("what there is of a run is a record that ended early, replaced by the whole one", () => {
  const whole = measured();
  const [v4] = whole.versions;
  const { up: _, ...begun } = v4!;
  const partial = partialRecordOf({ ...whole, versions: [begun] }, around)!;
  expect([partial.id, partial.outcome]).toEqual([record().id, "interrupted"]);
  expect(partial.versions[0]!.tcp!.map((tcp) => tcp.pedigree.direction)).toEqual(["reverse"]);
  expect(partial.warnings[0]).toContain("closed or reloaded");
  expect(readRecord(JSON.parse(JSON.stringify(partial)))!.outcome).toBe("interrupted");
  expect(record().warnings.join()).not.toContain("closed or reloaded");
});

test("a run that has measured nothing yet leaves no record", () => {
  expect(partialRecordOf({ ...measured(), outcome: "failed", versions: [] }, around)).toBeUndefined();
});
