import { afterEach, expect, test, vi } from "vitest";
import type { FromMover, Talk, ToMover } from "../src/measure/messages";
import { move } from "../src/measure/mover";
import { outcomeOfBytes, outcomeOfDown, outcomeOfRun } from "../src/pure/outcome";
import { matrixOf, recordOf } from "../src/pure/record";
import { around, matrixRun, measured } from "./fixture";

afterEach(() => void vi.unstubAllGlobals());

test("a phase that failed is not made up for by a later one that went well", () => {
  const run = measured();
  const [v4] = run.versions;
  expect(outcomeOfRun(run.versions, false)).toBe("complete");
  const { down: _, ...others } = v4!;
  const versions = [{ ...others, troubles: { down: "the transfer broke off" } }];
  expect(outcomeOfRun(versions, false)).toBe("interrupted");
  const made = recordOf({ ...run, versions }, around).versions[0]!;
  expect(made.failed_phases).toEqual([{ stage: "down", reason: "the transfer broke off" }]);
  expect(made.unreachable).toBeUndefined();
});

/** The command line shows the warnings of a record, and said nothing of the phases of a page that failed. */
test("why a phase failed is a warning of the record, once", () => {
  const run = measured();
  const [v4] = run.versions;
  const warningsOf = (change: Partial<typeof v4>) => {
    const made = recordOf({ ...run, versions: [{ ...v4!, ...change }] }, around).warnings;
    return made.filter((warning) => warning.includes("the connection"));
  };
  const closed = "the connection was closed";
  expect(warningsOf({})).toEqual([]);
  expect(warningsOf({ troubles: { latency: closed, loss: closed } })).toEqual([`IPv4: latency failed: ${closed}`, `IPv4: loss failed: ${closed}`]);
  // Nothing of it was stored.
  expect(warningsOf({ down: undefined, troubles: { down: closed } })).toEqual([`IPv4: down failed: ${closed}`]);
  // What there is of it ended early, for the same reason.
  const down = { ...v4!.down!, outcome: "failed" as const, reason: closed };
  expect(warningsOf({ down, troubles: { down: closed } })).toEqual([`IPv4 down: the transfer ended early: ${closed}`]);
  const { reason: _, ...slices } = down;
  expect(warningsOf({ down: { ...slices, outcome: "interrupted" }, troubles: { down: closed } })).toEqual([`IPv4 down: the transfer ended early: ${closed}`]);
  // The same reason of the other direction says nothing of this one.
  expect(warningsOf({ down, up: undefined, troubles: { up: closed, down: closed } })).toEqual([`IPv4: up failed: ${closed}`, `IPv4 down: the transfer ended early: ${closed}`]);
});

test("a step of a matrix that failed is among those that did not move all, and nothing else is said of it", () => {
  const refused = { bytes: 1000, block: 100, protocol: "tcp", round: 1, way: "up", outcome: "failed", reason: "the lease is over" } as const;
  const run = measured();
  const matrix = [matrixRun(1000, 100, 0, 1e6), refused];
  const versions = [{ version: "IPv4" as const, address: "192.0.2.1", matrix, troubles: { up: "the lease is over" } }];
  const warnings = recordOf({ ...run, versions }, around).warnings.filter((warning) => warning.includes("the lease"));
  expect(warnings).toEqual(["IPv4: 1 of 2 transfers did not begin or did not move all of their bytes: the lease is over"]);
});

test("an upload that the server calls interrupted makes the run one that ended early", () => {
  const run = measured();
  run.versions[0]!.up!.outcome = "interrupted";
  expect(outcomeOfRun(run.versions, false)).toBe("interrupted");
  expect(recordOf(run, around).warnings.join()).toContain("IPv4 up: the transfer ended early");
});

test("echoes whose connection broke make the run one that ended early", () => {
  const run = measured();
  run.versions[0]!.down!.loaded!.broken = "the echo connection was closed";
  expect(outcomeOfRun(run.versions, false)).toBe("interrupted");
  expect(recordOf(run, around).warnings.join()).toContain("the round trips beside down ended early: the echo connection was closed");
});

test("a run of which nothing was moved has failed", () => {
  const nothing = { ...matrixRun(1000, 100, 0, 1e6), outcome: "failed" as const, page: undefined, server: undefined };
  const [v4] = measured().versions;
  const versions = [{ version: v4!.version, address: v4!.address, matrix: [nothing] }];
  expect(outcomeOfRun(versions, false)).toBe("failed");
  expect(outcomeOfRun([{ ...versions[0]!, matrix: [nothing, matrixRun(1000, 100, 1, 1e6)] }], false)).toBe("interrupted");
});

test("a download that was cut off after a second is not complete", () => {
  const plan = { duration: 4e9, roundTrip: 20e6 };
  const cut = { broken: null, early: true, bytes: 1e6, elapsed: 1e9 };
  expect(outcomeOfDown(cut, plan, undefined)).toEqual({ outcome: "failed", early: true });
  expect(outcomeOfDown(cut, plan, "interrupted").outcome).toBe("interrupted");
  // Something on the way took the server's data and did not pass it on.
  expect(outcomeOfDown(cut, plan, "complete")).toEqual({ outcome: "interrupted", early: true });
  // Its first segment was lost, and what the server says counts.
  expect(outcomeOfDown({ ...cut, elapsed: 3e9 }, plan, "complete").outcome).toBe("complete");
  // All of what the owner allows.
  expect(outcomeOfDown(cut, { ...plan, bytes: 1e6 }, undefined).outcome).toBe("complete");
  // A window, and then the time was over.
  expect(outcomeOfDown(cut, { duration: 2e9, roundTrip: 1.2e9 }, "complete").outcome).toBe("complete");
});

test("a transfer of a matrix that ran out of patience does not count with the whole ones", () => {
  const wanted = { bytes: 1000, block: 100, protocol: "tcp", round: 0 } as const;
  expect(outcomeOfBytes("complete", wanted, 1000)).toBe("complete");
  expect(outcomeOfBytes("complete", wanted, 999)).toBe("interrupted");
  expect(outcomeOfBytes("complete", wanted, undefined)).toBe("interrupted");
  expect(outcomeOfBytes("failed", wanted, 0)).toBe("failed");
});

test("a transfer of a matrix that could not begin is in the record, without counts", () => {
  const refused = { bytes: 1000, block: 100, protocol: "tcp", round: 1, way: "up", outcome: "failed", reason: "the lease is over" } as const;
  const run = measured();
  run.versions[0]!.matrix = [matrixRun(1000, 100, 0, 1e6), refused];
  const [matrix] = matrixOf(run.versions[0]!.matrix, "IPv4", run.instrument);
  expect(matrix!.cells[0]!.runs[1]).toEqual({ round: 1, outcome: "failed", lost: 0 });
  expect(recordOf(run, around).warnings.join()).toContain("IPv4: 1 of 2 transfers did not begin or did not move all of their bytes: the lease is over");
});

/** A body of so many bytes that ends in good order. */
async function received(bytes: number, order: { duration: number; total: number | null }): Promise<Extract<FromMover, { say: "received" }>> {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(new Uint8Array(bytes))));
  return new Promise((resolve) => {
    const runner: Talk<FromMover, ToMover> = { postMessage: (told) => told.say === "received" && resolve(told), onmessage: null, close: () => {} };
    move(runner);
    runner.onmessage!({ data: { say: "receive", urls: ["x", "y"], roundTripMs: 1, ...order } } as MessageEvent<ToMover>);
  });
}

test("a body that ends in good order before its time was cut off", async () => {
  expect(await received(5000, { duration: 4e9, total: null })).toMatchObject({ bytes: 10_000, broken: null, early: true });
  expect(await received(5000, { duration: 4e9, total: 10_001 })).toMatchObject({ early: true });
  expect(await received(5000, { duration: 4e9, total: 10_000 })).toMatchObject({ broken: null, early: false });
});
