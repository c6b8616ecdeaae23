// Sizes, rates and times as people type and read them. 1 kB is 1000 bytes and 1 KiB is 1024, and so is 1 K, as on the command line.

/** Bytes of "10kB", "1.5 MB", "64KiB", "64K" or "500"; undefined for anything else: "8Mb" is in bits. */
export function parseSize(text: string): number | undefined {
  const found = /^\s*(\d{1,12}(?:\.\d{1,6})?)\s*(?:([kKmMgG])(i?))?(B?)\s*$/.exec(text);
  if (!found) return undefined;
  const isDecimal = found[4] === "B" && !found[3];
  const bytes = Number(found[1]) * (isDecimal ? 1000 : 1024) ** POWERS.indexOf((found[2] ?? "").toLowerCase());
  return Number.isInteger(bytes) && bytes <= Number.MAX_SAFE_INTEGER ? bytes : undefined;
}

const POWERS = ["", "k", "m", "g"];

export function showSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [size, unit] = scaled(bytes, ["kB", "MB", "GB", "TB"]);
  return `${threeDigits(size).replace(/\.0+$/, "")} ${unit}`;
}

/** "15.0 to 37.4 ms": the unit once where both have the same. */
export function showBounds(lo: number, hi: number, split: (value: number) => [string, string], to: string): string {
  const [[low, lowUnit], [high, highUnit]] = [split(lo), split(hi)];
  return lowUnit === highUnit ? `${low} ${to} ${high} ${highUnit}` : `${low} ${lowUnit} ${to} ${high} ${highUnit}`;
}

/** "94.1 Mbit/s". */
export function showRate(bits: number): string {
  const [value, unit] = splitRate(bits);
  return `${value} ${unit}`;
}

export function splitRate(bits: number): [string, string] {
  if (bits < 1000) return [threeDigits(bits), "bit/s"];
  const [value, unit] = scaled(bits, ["kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  return [threeDigits(value), unit];
}

/** Of a share of 0 to 1. */
export function splitShare(share: number): [string, string] {
  return [threeDigits(share * 100), "%"];
}

/** "12.4 ms", of nanoseconds. */
export function showSpan(ns: number): string {
  const [value, unit] = splitSpan(ns);
  return `${value} ${unit}`;
}

/** Of nanoseconds, where a person waits. */
export function wholeSeconds(ns: number): number {
  return Math.round(ns / 1e9);
}

export function splitSpan(ns: number): [string, string] {
  const size = Math.abs(ns);
  if (size < 1000) return [`${Math.round(ns)}`, "ns"];
  if (size < 1e6) return [threeDigits(ns / 1e3), "us"];
  if (size < 1e9) return [threeDigits(ns / 1e6), "ms"];
  return [threeDigits(ns / 1e9), "s"];
}

/**
 * Of a round trip on a clock with such steps, ns; 0 where they are not known. What is shorter than a step is known to be shorter, and no
 * more: two readings may be alike, and nothing takes no time.
 */
export function splitTrip(ns: number, step: number): [string, string] {
  if (ns >= step) return splitSpan(ns);
  const [value, unit] = splitSpan(step);
  return [`<${value}`, unit];
}

export function showTrip(ns: number, step: number): string {
  return splitTrip(ns, step).join(" ");
}

/** ns of "1.00 ms", as showSpan writes it; 0 of anything else. */
export function parseSpan(text: string | undefined): number {
  const found = /^(\d{1,6}(?:\.\d{1,3})?) (ns|us|ms|s)$/.exec(text ?? "");
  return found ? Number(found[1]) * SPANS[found[2]!]! : 0;
}

const SPANS: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

/** Three significant digits without an exponent: 0.75, 7.50, 94.1, 812. */
export function threeDigits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return `${Math.round(value)}`;
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

function scaled(value: number, units: readonly string[]): [number, string] {
  let size = value / 1000;
  let step = 0;
  while (size >= 999.5 && step + 1 < units.length) {
    size /= 1000;
    step += 1;
  }
  return [size, units[step]!];
}
