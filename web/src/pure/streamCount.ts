// Counts a stream of numbered datagrams at its receiver: docs/methods/udp-stream.md, as far as a page can.
//
// Lost is sent and never received; the sender's number of datagrams comes from the sender. Copies cannot be seen: DTLS drops them
// before a page hears of them. What is numbered beyond `MOST` is not counted, so that nobody can make a page fill its memory.

import { summarise, type DelaySummary } from "./delay";

export interface StreamSlice {
  /** ns since the first datagram. */
  end: number;
  length: number;
  bytes: number;
  packets: number;
  /** Change of what is missing; negative when something late came. */
  lost: number;
  streams: 0;
}

/** What a receiver knows in the end; times ns. */
export interface StreamTotals {
  received: number;
  bytes: number;
  duplicates: number;
  reordered: number;
  /** Largest reordering extent in packets (RFC 4737 §4.2). */
  reorderExtent: number;
  /** Highest number plus one. */
  highest: number;
  foreign: number;
  /** First to last datagram. */
  elapsed: number;
  /** Payload of the first datagram: nobody knows how long it took. */
  first: number;
  /** RFC 3550 §6.4.1; absent before two datagrams have come. */
  jitter?: number;
  delayVariation?: DelaySummary;
  lossRuns: [number, number][];
}

export class StreamCount {
  foreign = 0;
  private readonly seen = new Map<number, number>();
  private received = 0;
  private bytes = 0;
  private duplicates = 0;
  private reordered = 0;
  private extent = 0;
  private next = 0;
  private first = Number.NaN;
  private firstBytes = 0;
  private last = 0;
  private jitter: number | undefined;
  private before: number | undefined;
  private readonly delays: number[] = [];
  private sliceAt = Number.NaN;
  private told = { bytes: 0, received: 0, missing: 0 };

  /** A datagram of `length` bytes; `sentAt` by the sender's clock, `at` by the receiver's, both ns. */
  take(seq: number, sentAt: number, length: number, at: number): void {
    if (seq >= MOST) {
      this.foreign += 1;
      return;
    }
    if (!this.mark(seq)) {
      this.duplicates += 1;
      return;
    }
    this.received += 1;
    this.bytes += length;
    if (Number.isNaN(this.first)) [this.first, this.sliceAt, this.firstBytes] = [at, at, length];
    this.last = at;
    this.delays.push(at - sentAt);
    this.follow(at - sentAt);
    if (seq < this.next) {
      this.reordered += 1;
      this.extent = Math.max(this.extent, this.next - 1 - seq);
      return;
    }
    this.next = seq + 1;
  }

  /** The slice since the last one; undefined before the first datagram. */
  cut(now: number): StreamSlice | undefined {
    if (Number.isNaN(this.first) || now <= this.sliceAt) return undefined;
    const missing = this.next - this.received;
    const slice: StreamSlice = {
      end: now - this.first,
      length: now - this.sliceAt,
      bytes: this.bytes - this.told.bytes,
      packets: this.received - this.told.received,
      lost: missing - this.told.missing,
      streams: 0,
    };
    this.sliceAt = now;
    this.told = { bytes: this.bytes, received: this.received, missing };
    return slice;
  }

  /** `sent`: what the sender says it sent, if it could say so. */
  totals(sent: number | undefined): StreamTotals {
    const least = this.delays.reduce((found, delay) => Math.min(found, delay), Number.POSITIVE_INFINITY);
    const variation = summarise(this.delays.map((delay) => delay - least));
    return {
      received: this.received,
      bytes: this.bytes,
      duplicates: this.duplicates,
      reordered: this.reordered,
      reorderExtent: this.extent,
      highest: this.next,
      foreign: this.foreign,
      elapsed: Number.isNaN(this.first) ? 0 : this.last - this.first,
      first: this.firstBytes,
      ...(this.jitter === undefined ? {} : { jitter: Math.round(this.jitter) }),
      ...(variation && variation.count > 1 ? { delayVariation: variation } : {}),
      lossRuns: this.lossRuns(Math.min(sent ?? this.next, MOST)),
    };
  }

  /** J += (|D| − J) / 16 over pairs in the order of arrival, which need not be that of the numbers (RFC 3550 §6.4.1). */
  private follow(delay: number): void {
    const jitter = this.jitter ?? 0;
    if (this.before !== undefined) this.jitter = jitter + (Math.abs(delay - this.before) - jitter) / 16;
    this.before = delay;
  }

  /** 32 numbers in a word; false where it was there already. */
  private mark(seq: number): boolean {
    const [word, bit] = [Math.floor(seq / 32), 1 << (seq % 32)];
    const bits = this.seen.get(word) ?? 0;
    this.seen.set(word, bits | bit);
    return (bits & bit) === 0;
  }

  private lossRuns(sent: number): [number, number][] {
    const runs = new Map<number, number>();
    let run = 0;
    for (let seq = 0; seq <= sent; seq += 1) {
      const here = seq === sent || ((this.seen.get(Math.floor(seq / 32)) ?? 0) & (1 << (seq % 32))) !== 0;
      if (!here) run += 1;
      else if (run > 0) {
        runs.set(run, (runs.get(run) ?? 0) + 1);
        run = 0;
      }
    }
    return [...runs].sort((a, b) => a[0] - b[0]);
  }
}

/** Four times the writes that a matrix allows. */
const MOST = 4e6;
