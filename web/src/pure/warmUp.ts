// From when on a transfer counts: the rule of docs/methods/tcp-throughput.md, on the receiver's slices.
//
// Slow start is over when the rate has not grown by a quarter over its best for three rounds (BBR's "full pipe",
// draft-ietf-ccwg-bbr §5.3.1.2); then leading slices go that are not like the second half. Where we differ from the command
// line: the page does not know the loaded round trip before it has measured it, and takes it from the echoes beside the transfer.

import { mad, median, sum } from "./statistics";

/** What a receiver saw in one slice of time, as `ReceiverTick` of the record. Times in ns. */
export interface Tick {
  end: number;
  length: number;
  bytes: number;
  streams: number;
}

export interface WarmUpEnd {
  rule: "slow start over" | "never ended";
  /** Index of the first slice that counts. */
  first: number;
}

/** `rtt` is the round trip without load and `loadedRtt` the one beside the transfer, ns; zero where unknown. */
export function warmUpEnd(ticks: readonly Tick[], rtt: number, loadedRtt: number): WarmUpEnd {
  const begun = allStreamsStarted(ticks);
  const full = fullPipe(ticks.slice(begun), rtt);
  if (full === undefined) return { rule: "never ended", first: 0 };
  const first = begun + full;
  return { rule: "slow start over", first: settled(first + transient(ticks.slice(first)), ticks, loadedRtt) };
}

/** Payload rate of slices, bit/s. */
export function rateOf(ticks: readonly Tick[]): number {
  const time = sum(ticks.map((tick) => tick.length));
  return time > 0 ? (sum(ticks.map((tick) => tick.bytes)) * 8e9) / time : 0;
}

/** Rounds of one measurement follow each other in a list, each from zero; here one after the other, as a picture needs them. */
export function continued<T extends { end: number }>(ticks: readonly T[]): T[] {
  let offset = 0;
  let last = 0;
  return ticks.map((tick) => {
    if (tick.end < last) offset += last;
    last = tick.end;
    return { ...tick, end: tick.end + offset };
  });
}

function allStreamsStarted(ticks: readonly Tick[]): number {
  const most = Math.max(0, ...ticks.map((tick) => tick.streams));
  return Math.max(0, ticks.findIndex((tick) => tick.streams === most));
}

function fullPipe(ticks: readonly Tick[], rtt: number): number | undefined {
  const tick = median(ticks.map((each) => each.length));
  if (tick === undefined) return undefined;
  const perRound = Math.min(Math.max(Math.ceil(rtt / Math.max(tick, 1)), 1), ticks.length);
  let best = 0;
  let lastGrowth = 0;
  for (let round = 0; (round + 1) * perRound <= ticks.length; round += 1) {
    const rate = rateOf(ticks.slice(round * perRound, (round + 1) * perRound));
    if (rate >= best * GROWTH) {
      best = rate;
      lastGrowth = round;
    } else if (round - lastGrowth >= FLAT_ROUNDS) {
      return best > 0 ? (lastGrowth + 1) * perRound : undefined;
    }
  }
  return undefined;
}

function transient(ticks: readonly Tick[]): number {
  const rates = ticks.map((tick) => rateOf([tick]));
  const later = rates.slice(Math.floor(rates.length / 2));
  const typical = median(later);
  const spread = mad(later);
  if (typical === undefined || spread === undefined) return 0;
  const allowed = Math.max(NORMAL_SD_PER_MAD * spread * OUTLIER_SDS, typical * ALWAYS_ALLOWED);
  const like = rates.findIndex((rate) => Math.abs(rate - typical) <= allowed);
  const leading = like < 0 ? rates.length : like;
  return leading * 2 <= rates.length ? leading : 0;
}

/** Slow start's queue must drain, and what was dropped from it be sent again; at least half of the transfer stays. */
function settled(first: number, ticks: readonly Tick[], loadedRtt: number): number {
  const start = ticks[first];
  if (!start) return first;
  const over = start.end - start.length + loadedRtt * SETTLING_ROUNDS;
  const found = ticks.findIndex((tick) => tick.end - tick.length >= over);
  const drained = found < 0 ? ticks.length : found;
  return Math.max(Math.min(drained, Math.floor(ticks.length / 2)), first);
}

/** The reasons for these values stand beside their namesakes in crates/engines/probe/src/warm_up.rs. */
const GROWTH = 1.25;
const FLAT_ROUNDS = 3;
const SETTLING_ROUNDS = 5;
const NORMAL_SD_PER_MAD = 1.4826;
const OUTLIER_SDS = 3;
const ALWAYS_ALLOWED = 0.05;
