// Order statistics, spread and a block bootstrap: the part of crates/base/stats that the page needs, by the same rules, so that
// a figure of the page and one of the command line mean the same.

/** Quantile of type 7 (Hyndman and Fan 1996), as everywhere in netaware. `sorted` ascends. */
export function quantile(sorted: readonly number[], q: number): number | undefined {
  if (sorted.length === 0) return undefined;
  const place = (sorted.length - 1) * q;
  const below = Math.floor(place);
  const low = sorted[below]!;
  const high = sorted[Math.min(below + 1, sorted.length - 1)]!;
  return low + (high - low) * (place - below);
}

export function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

export function median(values: readonly number[]): number | undefined {
  return quantile(ascending(values), 0.5);
}

/** Median absolute deviation from the median, not scaled. */
export function mad(values: readonly number[]): number | undefined {
  const middle = median(values);
  return middle === undefined ? undefined : median(values.map((value) => Math.abs(value - middle)));
}

export function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : sum(values) / values.length;
}

export function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** Sample standard deviation; zero for fewer than two values. */
export function deviation(values: readonly number[]): number {
  const middle = mean(values);
  if (middle === undefined || values.length < 2) return 0;
  return Math.sqrt(sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1));
}

/** An estimate between its bounds, as `Interval` of the record. */
export interface Interval {
  estimate: number;
  lo: number;
  hi: number;
  confidence: number;
}

/**
 * 95 % interval of the mean by a bootstrap of blocks of neighbours (Künsch 1989). Too narrow when neighbours stay alike for
 * longer than a block, and it knows nothing of other rounds. The seed is fixed, so equal samples give equal bounds.
 */
export function blockBootstrap(samples: readonly number[], block: number): Interval | undefined {
  const middle = mean(samples);
  if (middle === undefined || samples.length < 2) return undefined;
  const length = Math.max(1, Math.min(block, Math.ceil(samples.length / 3)));
  const random = mulberry32(SEED);
  const means: number[] = [];
  for (let n = 0; n < RESAMPLES; n += 1) means.push(resampledMean(samples, length, random));
  const sorted = ascending(means);
  const lo = Math.min(middle, quantile(sorted, 0.025)!);
  const hi = Math.max(middle, quantile(sorted, 0.975)!);
  return { estimate: middle, lo, hi, confidence: 0.95 };
}

function resampledMean(samples: readonly number[], block: number, random: () => number): number {
  let total = 0;
  let taken = 0;
  while (taken < samples.length) {
    const from = Math.floor(random() * (samples.length - block + 1));
    for (let i = from; i < from + block && taken < samples.length; i += 1, taken += 1) total += samples[i]!;
  }
  return total / samples.length;
}

/** A small generator that is the same in every browser (public domain, T. Ettinger). */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** As many as the command line takes. */
const RESAMPLES = 2000;
const SEED = 14233;

/** `of` out of `all` with Wilson's 95 % interval (Wilson 1927): it holds at zero and at few, where the plain one has no width. */
export function wilson(of: number, all: number): Interval {
  const [share, z] = [of / all, 1.959964];
  const [centre, spread] = [share + z ** 2 / (2 * all), z * Math.sqrt((share * (1 - share)) / all + z ** 2 / (4 * all ** 2))];
  const bound = (value: number) => Math.min(1, Math.max(0, value / (1 + z ** 2 / all)));
  return { estimate: share, lo: of === 0 ? 0 : bound(centre - spread), hi: of === all ? 1 : bound(centre + spread), confidence: 0.95 };
}
