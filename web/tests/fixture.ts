// A run as the workers tell it, small enough to check by hand.

import type { Measured, MeasuredTransfer } from "../src/measure/messages";
import type { RoundTrip } from "../src/pure/delay";
import { recordOf, type Circumstances, type NetRecord } from "../src/pure/record";
import type { Tick } from "../src/pure/warmUp";

const MS = 1e6;

export function trips(rtts: readonly number[]): RoundTrip[] {
  return rtts.map((rtt, seq) => ({ seq, sentAt: seq * 10 * MS, rtt: rtt * MS, application: (rtt + 1) * MS, responder: MS }));
}

export function ticks(mbits: number, count: number): Tick[] {
  return Array.from({ length: count }, (_, n) => ({ end: (n + 1) * 100 * MS, length: 100 * MS, bytes: (mbits * 1e6) / 80, streams: 1 }));
}

const echoes = (rtts: readonly number[]) => ({
  length: 64,
  spacing: 10 * MS,
  trips: trips(rtts),
  sent: rtts.length,
  unanswered: 0,
  bad: 0,
  patience: 1e9,
  lateSends: 1,
  worstLateness: 7 * MS,
  implausible: 0,
  elapsed: rtts.length * 10 * MS,
});

export function measured(): Measured {
  const run = { streams: 1, outcome: "complete" as const, elapsed: 3e9, calls: 10, streamEnds: [], capped: false };
  return {
    outcome: "complete",
    elapsed: 12e9,
    cancelled: false,
    versions: [
      {
        version: "IPv4",
        address: "192.0.2.1",
        greeting: 4 * MS,
        responder: { name: "lab-b", kernel: "Linux 6.18", cpu: "x", cores: 2, virtualisation: "kvm", software: "0.1.0" },
        idle: echoes([10, 12, 10, 14]),
        down: { ...run, direction: "down", ticks: ticks(80, 30), bytes: 30e6, loaded: echoes([30, 40]) },
        up: { ...run, direction: "up", ticks: ticks(20, 30), bytes: 7.5e6, handedOver: 9e6 },
      },
    ],
    missing: [{ version: "IPv6", reason: "noAnswer", tried: ["2001:db8::1"], waited: 3e9 }],
    instrument: { clockStep: 100_000, isolated: false, pauses: 0, longestPause: 0, lostConnections: 0 },
  };
}

export const around: Circumstances = {
  command: "test",
  startedAt: Date.UTC(2026, 10, 24, 12),
  random: new Uint8Array(10).fill(0x5a),
  host: "192.0.2.1",
  port: 14233,
  options: { from: "web page" },
  label: "hall A",
  prober: { name: "Chrome 156 on Android", kernel: "Android", cpu: "", cores: 8, virtualisation: "", software: "0.1.0" },
  hidden: 0,
  caps: [],
};

export function record(change: Partial<Circumstances> = {}): NetRecord {
  return recordOf(measured(), { ...around, ...change });
}

export function matrixRun(bytes: number, block: number, round: number, elapsed: number): MeasuredTransfer {
  return {
    bytes,
    block,
    round,
    protocol: "tcp",
    way: "up",
    outcome: "complete",
    page: { bytes, calls: Math.ceil(bytes / block), elapsed: elapsed * 2, first: 0 },
    server: { bytes, calls: 3, elapsed, first: block },
    retransmits: 0,
  };
}
