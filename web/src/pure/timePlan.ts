// How long a run is expected to take: for so long a place in the server's queue is asked for. What is too short ends it in the middle, and
// what is too long makes others' forecasts longer than their wait. Opening, attaching and closing take round trips, whatever is moved.

import type { Transfer } from "./matrixPlan";

/** Parallel connections of a transfer: enough that one lost segment does not halve the rate, few enough for a phone's CPU. */
export const STREAMS = 3;

/** ms */
export interface QuickTimes {
  idleMs: number;
  transferMs: number;
  streamMs: number;
}

/** One transfer of a quick test with all around it, ms. */
export function transferMs({ transferMs: ms }: QuickTimes, roundTripMs: number): number {
  return ms + OVERHEAD_MS + STEP_ROUND_TRIPS * roundTripMs;
}

/** Echoes and streams of datagrams of a quick test with all around them, ms. */
export function datagramsMs({ idleMs, streamMs }: QuickTimes, roundTripMs: number): number {
  return idleMs + streamMs + OVERHEAD_MS + 2 * (CHANNEL_ROUND_TRIPS + STEP_ROUND_TRIPS) * roundTripMs;
}

/** A quick test over one version, from the first datagram on, ms. */
export function quickMs(times: QuickTimes, roundTripMs: number): number {
  return 2 * transferMs(times, roundTripMs) + datagramsMs(times, roundTripMs);
}

/** One transfer of a matrix, ms. Datagrams need a channel first, and go as fast as SCTP lets them on a lossy path. */
export function stepMs(step: Transfer, roundTripMs: number): number {
  const around = STEP_ROUND_TRIPS * roundTripMs;
  if (step.protocol !== "udp") return MATRIX_STEP_MS + around;
  return CHANNEL_MS + CHANNEL_ROUND_TRIPS * roundTripMs + around + step.bytes / LOSSY_BYTES_PER_MS;
}

/** What is left of a matrix over one version, ms. */
export function matrixMs(left: readonly Transfer[], roundTripMs: number): number {
  return left.reduce((total, step) => total + stepMs(step, roundTripMs), 0);
}

/** What a path takes beside its round trips: a lost segment, a browser's own pace. */
const OVERHEAD_MS = 2500;
/** `open`, a connection and its head, `start`, slow start and the end: six or seven were counted. */
const STEP_ROUND_TRIPS = 8;
const MATRIX_STEP_MS = 300;
const CHANNEL_MS = 1500;
/** ICE, DTLS and SCTP. */
const CHANNEL_ROUND_TRIPS = 8;
/** 2 Mbit/s. */
const LOSSY_BYTES_PER_MS = 250;
