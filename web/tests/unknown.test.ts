import { expect, test } from "vitest";
import { figuresOf, lossOf, lostTrips, shareOf } from "../src/pure/figures";
import { readRecord } from "../src/pure/readRecord";
import { recordOf } from "../src/pure/record";
import { around, measured } from "./fixture";

test("requests over TCP that had no answer when the connection broke are unknown, and in the record", () => {
  const run = measured();
  const { idle } = run.versions[0]!;
  Object.assign(idle!, { sent: 1000, unanswered: 996 });
  const made = recordOf(run, around).versions[0]!.latency!;
  expect([made.sent, made.received, made.lost, made.unknown]).toEqual([1000, 4, 0, 996]);
});

test("datagrams that had not had their patience are unknown, and no part of the share that was lost", () => {
  const run = measured();
  const own = run.versions[0]!;
  own.datagrams = { ...own.idle!, transport: "datagrams", sent: 10, unanswered: 1, unknown: 5 };
  const read = readRecord(JSON.parse(JSON.stringify(recordOf(run, around))))!;
  const latency = read.versions[0]!.latency!;
  expect([latency.sent, latency.received, latency.lost, latency.unknown]).toEqual([10, 4, 1, 5]);
  expect(lossOf(read.versions[0]!)).toBe(1 / 5);
  expect(lostTrips(figuresOf(read)[0]!)).toEqual({ lost: 1, of: 5 });
});

test("where a loss could not be seen none is shown", () => {
  expect(lostTrips(figuresOf(recordOf(measured(), around))[0]!)).toBeUndefined();
});

test("of nothing that was sent no share is lost", () => {
  expect(shareOf("loss", 0, 0)).toEqual({});
  expect(shareOf("loss", 1, 4)).toEqual({ loss: 0.25 });
});
