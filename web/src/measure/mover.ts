// Moves the bytes of one transfer in a worker of its own, so that neither the picture nor the echoes wait for it.
//
// Down: what `read` hands over is what counts, cut into slices of 100 ms on this worker's clock. Up: the server's count is the result.
// What left the browser is told beside it (supply.ts).

import { patienceFor } from "../pure/patience";
import { Supply } from "../pure/supply";
import type { Tick } from "../pure/warmUp";
import type { FromMover, Talk, ToMover } from "./messages";
import { T } from "../strings";

type Runner = Talk<FromMover, ToMover>;

export function move(runner: Runner): void {
  const given = new AbortController();
  let sockets: WebSocket[] = [];
  runner.onmessage = ({ data }) => {
    if (data.say === "receive") void receive(runner, data, given.signal);
    else if (data.say === "attach") sockets = attach(runner, data.urls);
    else if (data.say === "send") void send(runner, sockets, data, given.signal);
    else {
      given.abort();
      for (const socket of sockets) socket.close();
    }
  };
}

type Receive = Extract<ToMover, { say: "receive" }>;
type Send = Extract<ToMover, { say: "send" }>;

async function receive(runner: Runner, order: Receive, aborted: AbortSignal): Promise<void> {
  const count = new SliceCount((ticks) => runner.postMessage({ say: "ticks", ticks }));
  const streams = order.urls.map((url) => receiveStream(url, order, count, aborted));
  const timer = setInterval(() => count.report(), SLICE_MS);
  const ends = await Promise.all(streams);
  clearInterval(timer);
  count.finish();
  // One stream may have had its share of the bytes long before the others.
  const all = order.total !== null && count.hasAll(order.total);
  const broken = all ? null : (ends.find((end) => end.broken !== null)?.broken ?? null);
  runner.postMessage({ say: "received", ...count.totals(), broken, early: !all && ends.some((end) => end.early) });
}

/** How a stream ended. */
interface StreamEnd {
  /** By an error before its time. After it a reset counts as an end. */
  broken: string | null;
  /** In good order, but before its time. */
  early: boolean;
}

async function receiveStream(url: string, order: Receive, count: SliceCount, aborted: AbortSignal): Promise<StreamEnd> {
  const controller = new AbortController();
  aborted.addEventListener("abort", () => controller.abort());
  let overtime: ReturnType<typeof setTimeout> | undefined;
  const onFirst = () => {
    overtime ??= setTimeout(() => controller.abort(), order.duration / 1e6 + patienceFor(order.roundTripMs, LAST_ROUND_TRIPS, OVERTIME_MS));
  };
  try {
    // Without credentials browsers take a connection of its own, never one on which the page was asked for before: a transfer
    // begins with slow start, and the server hands the socket itself to the test.
    const response = await fetch(url, { cache: "no-store", credentials: "omit", signal: controller.signal });
    if (!response.ok || !response.body) return { broken: T.transfer.answered(response.status), early: false };
    await drain(response.body, count, onFirst);
    return { broken: null, early: !count.hasHad(order.duration) };
  } catch (error) {
    return { broken: count.hasHad(order.duration) ? null : String(error instanceof Error ? error.message : error), early: false };
  } finally {
    clearTimeout(overtime);
  }
}

/** A reader that fills our own buffer saves a copy; browsers without one hand over buffers of their own. */
async function drain(body: ReadableStream<Uint8Array>, count: SliceCount, onFirst: () => void): Promise<void> {
  let reader: ReadableStreamBYOBReader | undefined;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch {
    return drainByDefault(body, count, onFirst);
  }
  let buffer = new ArrayBuffer(BUFFER);
  for (;;) {
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (done) return;
    onFirst();
    count.add(value.byteLength);
    buffer = value.buffer as ArrayBuffer;
  }
}

async function drainByDefault(body: ReadableStream<Uint8Array>, count: SliceCount, onFirst: () => void): Promise<void> {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onFirst();
    count.add(value.byteLength);
  }
}

/** Bytes of all streams, cut at the first read after each 100 ms: a slice's length is what the clock says it was. */
class SliceCount {
  private begun = Number.NaN;
  private sliceAt = Number.NaN;
  private lastAt = Number.NaN;
  private inSlice = 0;
  private bytes = 0;
  private reads = 0;
  private first = 0;
  private fresh: Tick[] = [];

  constructor(private readonly onTicks: (ticks: Tick[]) => void) {}

  add(bytes: number): void {
    const now = performance.now();
    if (Number.isNaN(this.begun)) {
      this.begun = now;
      this.sliceAt = now;
      this.first = bytes;
    } else {
      this.inSlice += bytes;
    }
    this.bytes += bytes;
    this.reads += 1;
    this.lastAt = now;
    if (now - this.sliceAt >= SLICE_MS) this.cut(now);
  }

  /** Posts what is new; closes a slice in which nothing came, so that silence is seen as silence. */
  report(): void {
    const now = performance.now();
    if (now - this.sliceAt >= 2 * SLICE_MS) this.cut(now);
    if (this.fresh.length > 0) this.onTicks(this.fresh.splice(0));
  }

  finish(): void {
    if (this.lastAt > this.sliceAt) this.cut(this.lastAt);
    this.report();
  }

  /** Whether a stream that ends now ends with the plan's time: the server closes about then, and a closed socket may look like a reset. */
  hasHad(duration: number): boolean {
    const ms = duration / 1e6;
    return performance.now() - this.begun >= ms - Math.min(EARLY_MS, ms / 2);
  }

  hasAll(total: number): boolean {
    return this.bytes >= total;
  }

  totals(): { bytes: number; elapsed: number; reads: number; first: number } {
    const elapsed = Number.isNaN(this.begun) ? 0 : Math.round((this.lastAt - this.begun) * 1e6);
    return { bytes: this.bytes, elapsed, reads: this.reads, first: this.first };
  }

  private cut(now: number): void {
    const [end, length] = [now - this.begun, now - this.sliceAt].map((ms) => Math.round(ms * 1e6)) as [number, number];
    this.fresh.push({ end, length, bytes: this.inSlice, streams: 1 });
    this.sliceAt = now;
    this.inSlice = 0;
  }
}

function attach(runner: Runner, urls: readonly string[]): WebSocket[] {
  let open = 0;
  return urls.map((url) => {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      open += 1;
      if (open === urls.length) runner.postMessage({ say: "attached" });
    };
    return socket;
  });
}

async function send(runner: Runner, sockets: readonly WebSocket[], order: Send, aborted: AbortSignal): Promise<void> {
  const begun = performance.now();
  const supply = new Supply(order, noise(order.length), begun, () => performance.now());
  while (!supply.over() && !aborted.aborted && sockets.every((socket) => socket.readyState === WebSocket.OPEN)) {
    const handed = sockets.map((socket) => supply.fill(socket, sockets));
    // Asking over and over whether there is room would take a core from the browser's own sending. What waits lasts for long.
    await (handed.some(Boolean) ? breath() : rest(FULL_MS));
  }
  const broken = supply.over() || aborted.aborted ? null : T.transfer.broke;
  if (broken) supply.broke(sockets.filter((socket) => socket.readyState !== WebSocket.OPEN));
  await Promise.all(sockets.map((socket) => closed(socket, patienceFor(order.roundTripMs, LAST_ROUND_TRIPS, CLOSING_MS))));
  runner.postMessage({ say: "sent", ...supply.totals(sockets), elapsed: Math.round((performance.now() - begun) * 1e6), broken });
}

/** A closing socket first sends what it holds; on a path that is gone it would wait for ever. */
function closed(socket: WebSocket, patienceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, patienceMs);
    socket.onclose = () => {
      clearTimeout(timer);
      resolve();
    };
    if (socket.readyState === WebSocket.CLOSED) resolve();
    socket.close();
  });
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Lets events in. A chain of timers would wait 4 ms each time, a message does not. */
function breath(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    pipe.port2.postMessage(null);
  });
}

const pipe = new MessageChannel();
const waiting: (() => void)[] = [];
pipe.port1.onmessage = () => waiting.shift()?.();

/** Something that no box on the path can compress. */
function noise(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(length));
  for (let from = 0; from < length; from += 65_536) crypto.getRandomValues(bytes.subarray(from, Math.min(from + 65_536, length)));
  return bytes;
}

const SLICE_MS = 100;
/** Measured in Chromium: larger buffers gain nothing, smaller ones cost calls. */
const BUFFER = 1024 * 1024;
/** The end of a body may be late by a full queue. */
const OVERTIME_MS = 3000;
const EARLY_MS = 700;
const CLOSING_MS = 4000;
/** A segment that is lost once at the end comes within these. */
const LAST_ROUND_TRIPS = 4;
/** Browsers make 4 of it in a chain of timers; what is held back for 100 ms does not run dry meanwhile. */
const FULL_MS = 2;
