// The rate of a transfer at its receiver, after its warm-up, with an interval: bytes over time of the slices that count.
//
// Biased: the interval of a single transfer knows nothing of the next one and is too narrow for comparing two of them.

import { blockBootstrap, median, sum, type Interval } from "./statistics";
import { rateOf, warmUpEnd, type Tick, type WarmUpEnd } from "./warmUp";

export interface Goodput {
  /** bit/s; absent when no time counted. */
  rate: number | undefined;
  interval: Interval | undefined;
  /** Time that counted, ns. */
  measured: number;
  /** Time left out, ns. */
  omitted: number;
  warmUp: WarmUpEnd;
}

/**
 * How the receiver saw the end. A reset drops what had arrived behind a segment that was lost, as long as that one had not been sent
 * again: up to some round trips' worth that had its time on the path and is missing from the last slices.
 */
export type End = "orderly" | "reset";

export function goodput(ticks: readonly Tick[], rtt: number, loadedRtt: number, end: End = "orderly"): Goodput {
  const warmUp = warmUpEnd(ticks, rtt, loadedRtt);
  const counted = ticks.slice(warmUp.first, end === "reset" ? wholeUntil(ticks, warmUp.first, loadedRtt) : undefined);
  const measured = sum(counted.map((tick) => tick.length));
  const rate = measured > 0 ? rateOf(counted) : undefined;
  return {
    rate,
    interval: rate === undefined ? undefined : around(rate, counted),
    measured,
    omitted: sum(ticks.slice(0, warmUp.first).map((tick) => tick.length)),
    warmUp,
  };
}

/** Index behind the last slice from which nothing can be missing; at least half of those that count stay. */
function wholeUntil(ticks: readonly Tick[], first: number, loadedRtt: number): number {
  const over = (ticks[ticks.length - 1]?.end ?? 0) - Math.max(loadedRtt * MISSING_ROUNDS, LEAST_MISSING_NS);
  const whole = ticks.findIndex((tick) => tick.end > over);
  return Math.max(whole, first + Math.ceil((ticks.length - first) / 2));
}

/** A slice shorter than half of the longest would weigh as much as the others and know less. */
function around(rate: number, counted: readonly Tick[]): Interval | undefined {
  const longest = Math.max(0, ...counted.map((tick) => tick.length));
  const full = counted.filter((tick) => tick.length * 2 >= longest);
  const typical = median(full.map((tick) => tick.length)) ?? 0;
  const block = typical > 0 ? Math.max(1, Math.floor(CORRELATED_NS / typical)) : 1;
  const drawn = blockBootstrap(full.map((tick) => rateOf([tick])), block);
  return drawn && { ...drawn, estimate: rate, lo: Math.min(drawn.lo, rate), hi: Math.max(drawn.hi, rate) };
}

/** A segment is missed, asked for and sent again behind a full queue within two; a third for one that is lost twice. */
const MISSING_ROUNDS = 3;
const LEAST_MISSING_NS = 100e6;
/** Slices this close belong together: several round trips of a long path, a few sawteeth of a short one. */
const CORRELATED_NS = 500e6;
