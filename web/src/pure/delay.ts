// From single round trips to the figures of docs/methods/latency.md: quantiles, IPDV, PDV, RFC 3550 jitter, a histogram.
//
// Measures what a program in a browser sees over TCP. Leans high by the browser's own queues and by its clock's steps; a lost
// segment shows as a long round trip, never as a loss.

import { ascending, deviation, mean, quantile } from "./statistics";

/** One answered request. Times in ns on the page's clock; `responder` is the time inside the server, already taken out of `rtt`. */
export interface RoundTrip {
  seq: number;
  sentAt: number;
  rtt: number;
  application: number;
  responder: number;
}

/** `DelaySummary` of the record, ns. */
export interface DelaySummary {
  count: number;
  min: number;
  p50: number;
  p95: number;
  p99: number;
  p999: number;
  max: number;
  mean: number;
  /** Absent of a single sample. */
  sd?: number;
}

export function summarise(values: readonly number[]): DelaySummary | undefined {
  if (values.length === 0) return undefined;
  const sorted = ascending(values);
  const at = (q: number) => Math.round(quantile(sorted, q)!);
  const max = Math.round(sorted[sorted.length - 1]!);
  return {
    count: sorted.length,
    min: Math.round(sorted[0]!),
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    p999: sorted.length < 1000 ? max : at(0.999),
    max,
    mean: Math.round(mean(sorted)!),
    ...(sorted.length > 1 ? { sd: Math.round(deviation(sorted)) } : {}),
  };
}

/** |rtt[i] − rtt[i−1]| of neighbours that were both answered (RFC 3393). */
export function ipdv(trips: readonly RoundTrip[]): number[] {
  return neighbours(trips).map(([before, after]) => Math.abs(after.rtt - before.rtt));
}

/** Excess over the smallest round trip (RFC 5481 §4.2); one alone does not vary. */
export function pdv(trips: readonly RoundTrip[]): number[] {
  if (trips.length < 2) return [];
  const least = Math.min(...trips.map((trip) => trip.rtt));
  return trips.map((trip) => trip.rtt - least);
}

/** J += (|D| − J) / 16 over neighbours (RFC 3550 §6.4.1); undefined where no two neighbours were answered. */
export function smoothedJitter(trips: readonly RoundTrip[]): number | undefined {
  const changes = ipdv(trips);
  if (changes.length === 0) return undefined;
  let jitter = 0;
  for (const change of changes) jitter += (change - jitter) / 16;
  return Math.round(jitter);
}

function neighbours(trips: readonly RoundTrip[]): [RoundTrip, RoundTrip][] {
  const ordered = [...trips].sort((a, b) => a.seq - b.seq);
  const pairs: [RoundTrip, RoundTrip][] = [];
  for (let i = 1; i < ordered.length; i += 1) {
    const [before, after] = [ordered[i - 1]!, ordered[i]!];
    if (after.seq === before.seq + 1) pairs.push([before, after]);
  }
  return pairs;
}

/** Bins of two significant digits, as the HDR histograms of the command line: `[lower edge in ns, entries]`, ascending. */
export function histogram(values: readonly number[]): [number, number][] {
  const bins = new Map<number, number>();
  for (const value of values) {
    const edge = twoDigits(value);
    bins.set(edge, (bins.get(edge) ?? 0) + 1);
  }
  return [...bins].sort((a, b) => a[0] - b[0]);
}

function twoDigits(value: number): number {
  const whole = Math.max(0, Math.floor(value));
  if (whole < 100) return whole;
  const step = 10 ** (Math.floor(Math.log10(whole)) - 1);
  return Math.floor(whole / step) * step;
}

/** Middles of bins: those of equal width begin at zero, which has no place on a logarithmic axis. Bins that grow move by half of the narrowest. */
export function binned(bins: readonly (readonly [number, number])[]): [number, number][] {
  const steps = bins.slice(1).map(([edge], n) => edge - bins[n]![0]);
  const half = Math.max(1, Math.min(...steps, 1e9)) / 2;
  return bins.map(([edge, count]) => [edge + half, count]);
}
