import { expect, test } from "vitest";
import { matrixEnds } from "../src/measure/datagramTests";
import type { DatagramRun, MatrixSpec, QuickSpec, TransferRun } from "../src/measure/messages";
import type { Limits } from "../src/measure/session";
import { matrixCounts, senderTick } from "../src/measure/tests";
import { arrivals } from "../src/pure/arrivals";
import { BLOCK, capsTold, reachesRate } from "../src/pure/caps";
import { matrixOf, recordOf } from "../src/pure/record";
import { countsDatagrams, countsOf } from "../src/pure/report";
import { SEVENTEEN_PAIRS, transfers } from "../src/pure/matrixPlan";
import { matrixMs, quickMs, stepMs } from "../src/pure/timePlan";
import { around, matrixRun, measured, ticks } from "./fixture";

const NONE = { duration: null, rate: null, bytes: null, streams: null };
const QUICK: QuickSpec = {
  kind: "quick", candidates: [], versions: [], limits: NONE, key: "", roundTripMs: 0, idleMs: 2000, transferMs: 4000, datagrams: true, streamMs: 2000,
};

test("what an owner's cap made shorter is said", () => {
  const { versions } = measured();
  expect(capsTold(QUICK, versions)).toEqual([]);
  // 80 Mbit/s and 30 MB down.
  const told = capsTold({ ...QUICK, limits: { duration: 1e9, rate: 80e6, bytes: 30e6, streams: 1 } }, versions);
  expect(told).toHaveLength(4);
  for (const [n, part] of ["1.00 s", "1 parallel streams: 3 were asked for", "30 MB", "80.0 Mbit/s"].entries()) expect(told[n]).toContain(part);
  expect(capsTold({ ...QUICK, limits: { duration: 60e9, rate: null, bytes: null, streams: 3 } }, versions)).toEqual([]);
  const made = recordOf(measured(), { ...around, caps: told });
  for (const each of told) expect(made.warnings).toContain(each);
});

test("caps far above what the path carried are not said to have changed anything", () => {
  const { versions } = measured();
  const told = (limits: Partial<Limits>) => capsTold({ ...QUICK, limits: { ...NONE, ...limits } }, versions);
  expect(told({ bytes: 100e9, rate: 10e9 })).toEqual([]);
  expect(told({ rate: 90e6 })).toEqual([]);
  expect(told({ rate: 88e6 })).toHaveLength(1);
  expect(told({ bytes: 30e6 + BLOCK })).toEqual([]);
  expect(told({ bytes: 30e6 + BLOCK - 1 })).toHaveLength(1);
  expect(capsTold({ ...QUICK, limits: { ...NONE, rate: 1e6, bytes: 1e6 } }, [])).toEqual([]);
});

test("a rate is reached by a transfer that kept to it for a second, or all of its time", () => {
  expect(reachesRate(ticks(80, 3), 80e6)).toBe(true);
  expect(reachesRate([...ticks(10, 30), ...ticks(80, 10)], 80e6)).toBe(true);
  expect(reachesRate([...ticks(10, 30), ...ticks(80, 5)], 80e6)).toBe(false);
  expect(reachesRate([], 80e6)).toBe(false);
});

test("streams of datagrams that an owner's cap slowed or ended are said", () => {
  const sent = { sent: 10, notSent: 0, bytes: 2000, elapsed: 5e6, late: 0, worstLateness: 0, broken: false };
  const stream: DatagramRun = { direction: "up", outcome: "complete", length: 200, gap: 16e6, page: { did: "send", sent }, discarded: 0 };
  const versions = [{ version: "IPv4" as const, address: "192.0.2.1", streams: [stream] }];
  const told = (limits: Partial<Limits>) => capsTold({ ...QUICK, limits: { ...NONE, ...limits } }, versions);
  expect(told({ rate: 100e3 })).toHaveLength(1);
  expect(told({ rate: 1e6, bytes: 1e6 })).toEqual([]);
  expect(told({ bytes: 2100 })).toHaveLength(1);
  expect(told({ bytes: 2200 })).toEqual([]);
});

test("of a matrix only what can cut its transfers is said", () => {
  const spec: MatrixSpec = { kind: "matrix", candidates: [], versions: [], limits: { ...NONE, bytes: 1e6, streams: 1 }, key: "", roundTripMs: 0, way: "up", plan: [] };
  // 9 kB in 8 ms of the server's time, half as fast in the page's.
  const versions = [{ version: "IPv4" as const, address: "192.0.2.1", matrix: [matrixRun(10_000, 1000, 0, 8e6)] }];
  expect(capsTold(spec, versions)).toEqual([]);
  expect(capsTold({ ...spec, limits: { ...NONE, duration: 1e9 } }, versions)).toHaveLength(1);
  expect(capsTold({ ...spec, limits: { ...NONE, rate: 9e6 } }, versions)).toHaveLength(1);
  expect(capsTold({ ...spec, limits: { ...NONE, rate: 11e6 } }, versions)).toEqual([]);
});

test("the place in the queue that is asked for lasts on a path of 300 ms", () => {
  const plan = transfers(SEVENTEEN_PAIRS, ["tcp", "tcp_nodelay"], 3);
  const versions = 2;
  // Seven round trips for each transfer.
  const needed = plan.length * versions * 7 * 300;
  expect(plan).toHaveLength(102);
  expect(needed).toBe(428_400);
  expect(matrixMs(plan, 300) * versions).toBeGreaterThan(needed);
  expect(matrixMs(plan, 0) * versions).toBe(61_200);
  expect(matrixMs(plan.slice(101), 300)).toBe(2700);
});

test("each step of a run takes round trips", () => {
  const udp = { bytes: 100_000, block: 1000, protocol: "udp", round: 0 } as const;
  expect(stepMs(udp, 0)).toBe(1900);
  expect(stepMs(udp, 100)).toBe(1900 + 1600);
  const times = { idleMs: 2000, transferMs: 4000, streamMs: 2000 };
  expect(quickMs(times, 0)).toBe(2 * 6500 + 6500);
  expect(quickMs(times, 100)).toBe(2 * 7300 + 6500 + 3200);
});

test("a report that stands for an end that never began is no count", () => {
  const cpu = { cores: 2 };
  expect(countsOf({ bytes: 0, elapsed: 0, outcome: "failed" })).toBeUndefined();
  expect(countsOf({ bytes: 0, elapsed: 4e9, outcome: "failed", cpu })).toEqual({ bytes: 0, elapsed: 4e9 });
  expect(countsOf({ elapsed: 5 })).toBeUndefined();
  expect(countsDatagrams({ received: 0, outcome: "failed" }, "received")).toBe(false);
  expect(countsDatagrams({ received: 0, outcome: "failed", cpu }, "received")).toBe(true);
  expect(countsDatagrams({ received: 0, outcome: "complete" }, "received")).toBe(true);
  expect(countsDatagrams({ received: 3, outcome: "failed" }, "received")).toBe(true);
  expect(countsDatagrams({ sent: 0, not_sent: 4, outcome: "failed" }, "sent")).toBe(true);
  expect(countsDatagrams({}, "sent")).toBe(false);
});

const WANTED = { bytes: 1000, block: 100, protocol: "tcp", round: 0 } as const;

function transferRun(change: Partial<TransferRun>): TransferRun {
  return { direction: "down", streams: 1, outcome: "complete", ticks: [], bytes: 1000, elapsed: 5e6, calls: 3, first: 100, streamEnds: [], capped: false, ...change };
}

test("what the server did not tell of a transfer of a matrix is absent and not zero", () => {
  const down = matrixCounts(WANTED, "down", transferRun({ report: { bytes: 1000, elapsed: 5e6 }, streamEnds: [{ retransmits: 2 }] }));
  expect(down).toMatchObject({ retransmits: 2, server: { bytes: 1000 } });
  expect(matrixCounts(WANTED, "down", transferRun({}))).not.toHaveProperty("retransmits");
  const up = matrixCounts(WANTED, "up", transferRun({ direction: "up", handedOver: 1000, streamEnds: [{ retransmits: 0 }] }));
  expect(up).toMatchObject({ outcome: "interrupted", page: { bytes: 1000 } });
  for (const field of ["retransmits", "server"]) expect(up).not.toHaveProperty(field);
  const [matrix] = matrixOf([up], "IPv4", measured().instrument);
  expect(matrix!.cells[0]!.runs[0]).toMatchObject({ lost: 0, unknown: 1000 });
  expect(matrix!.cells[0]!.runs[0]).not.toHaveProperty("retransmits");
});

test("datagrams of a matrix whose receiver never reported are unknown and not lost", () => {
  const page = { did: "send", sent: { sent: 10, notSent: 0, bytes: 1000, elapsed: 5e6, late: 0, worstLateness: 0, broken: false } } as const;
  const run: DatagramRun = { direction: "up", outcome: "failed", length: 100, gap: null, page, discarded: 0 };
  const ends = matrixEnds(run, 100);
  expect(ends).not.toHaveProperty("server");
  const [matrix] = matrixOf([{ ...WANTED, protocol: "udp", way: "up", outcome: "failed", ...ends }], "IPv4", measured().instrument);
  expect(matrix!.cells[0]!.runs[0]).toMatchObject({ lost: 0, unknown: 1000 });
});

test("slices of a sender hold what its system told, and no zeros for the rest", () => {
  expect(senderTick({ end: 2, length: 1, bytes: 5, acked: 7, held: null })).toEqual({ end: 2, length: 1, bytes: 5, acked: 7 });
  expect(arrivals([{ end: 2, length: 2, bytes: 5 }], 10, 1)).toBeUndefined();
});
