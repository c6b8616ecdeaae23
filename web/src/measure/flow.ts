// One flow of datagrams in an open data channel: echoes, a stream that is sent, a stream that is received.
//
// Runs wherever the channel is: in a worker where the browser can hand a channel over, on the page's own thread where it cannot.
// A datagram counts as sent once the browser's SCTP has taken it off `bufferedAmount`, and the next one is handed over only then: of two
// that wait, Chromium's SCTP cuts the second to fill up the packet of the first, and one lost packet would lose both. Datagrams whose
// time comes while another waits are not sent and are counted as such: congestion control is no loss of the network.

import { ECHO_LENGTH, HEADER_LENGTH, KIND, readHeader, responderTime, writeHeader } from "../pure/datagram";
import type { RoundTrip } from "../pure/delay";
import { AnswerPatience, patienceFor } from "../pure/patience";
import { StreamCount, type StreamSlice, type StreamTotals } from "../pure/streamCount";
import type { EchoRun } from "./messages";

/** Spans in ns; `flow` is the number of its test, `roundTripMs` the longest of this path so far. */
export type FlowOrder = { flow: number; roundTripMs: number } & (
  | { do: "echo"; length: number; spacing: number; duration: number }
  | { do: "send"; length: number; gap: number | null; packets: number | null; duration: number }
  | { do: "receive"; duration: number }
);

export type FlowResult =
  | { did: "echo"; run: EchoRun }
  | { did: "send"; sent: SentStream }
  | { did: "receive"; totals: StreamTotals; ticks: StreamSlice[]; reads: number };

export interface SentStream {
  sent: number;
  notSent: number;
  bytes: number;
  /** From the first given to SCTP until the last had left it. */
  elapsed: number;
  late: number;
  worstLateness: number;
  broken: boolean;
}

export interface FlowProgress {
  trips?: RoundTrip[];
  ticks?: StreamSlice[];
}

/** Told to end early; resolves with what there is. */
export interface RunningFlow {
  result: Promise<FlowResult>;
  stop(): void;
}

export function runFlow(channel: RTCDataChannel, order: FlowOrder, tell: (progress: FlowProgress) => void): RunningFlow {
  if (order.do === "echo") return new Echoes(channel, order, tell);
  return order.do === "send" ? new Sender(channel, order) : new Receiver(channel, order, tell);
}

abstract class Flow {
  readonly result: Promise<FlowResult>;
  protected readonly begun = performance.now();
  protected ended = false;
  private resolve!: (result: FlowResult) => void;

  constructor(protected readonly channel: RTCDataChannel) {
    this.result = new Promise((resolve) => (this.resolve = resolve));
    channel.binaryType = "arraybuffer";
  }

  protected end(result: FlowResult): void {
    this.ended = true;
    this.channel.onmessage = null;
    this.resolve(result);
  }

  protected get open(): boolean {
    return this.channel.readyState === "open";
  }

  protected since(): number {
    return Math.round((performance.now() - this.begun) * 1e6);
  }
}

type EchoOrder = Extract<FlowOrder, { do: "echo" }>;

/** An open loop: a slow answer delays no later request. A request that finds no room leaves its turn out. */
class Echoes extends Flow implements RunningFlow {
  private readonly sentAt: number[] = [];
  private readonly open_ = new Set<number>();
  /** Of these that are open an answer came, after the verdict. */
  private readonly lateOnes = new Set<number>();
  private readonly trips: RoundTrip[] = [];
  private readonly fresh: RoundTrip[] = [];
  private readonly request: DataView<ArrayBuffer>;
  private readonly faults = { bad: 0, implausible: 0, lateSends: 0, notSent: 0, late: 0, reordered: 0, duplicates: 0 };
  private worst = 0;
  private turn = 0;
  private highest = -1;
  private readonly patience: AnswerPatience;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly reporter = setInterval(() => this.report(), REPORT_MS);

  constructor(
    channel: RTCDataChannel,
    private readonly order: EchoOrder,
    private readonly tell: (progress: FlowProgress) => void,
  ) {
    super(channel);
    this.patience = new AnswerPatience(order.roundTripMs);
    this.request = new DataView(new ArrayBuffer(Math.max(order.length, ECHO_LENGTH)));
    channel.onmessage = (event) => this.heard(event.data);
    this.next();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.conclude(), this.patience.stoppedMs);
  }

  private next(): void {
    const now = performance.now();
    if (now >= this.begun + this.order.duration / 1e6 || !this.open) {
      this.awaitLast(now);
      return;
    }
    const due = this.dueAt();
    if (now >= due) this.send(now - due);
    this.timer = setTimeout(() => this.next(), Math.max(0, this.dueAt() - performance.now()));
  }

  /** Patience may grow meanwhile, by an answer that was slow. */
  private awaitLast(since: number): void {
    const left = since + this.patience.ms - performance.now();
    if (left <= 0) this.conclude();
    else this.timer = setTimeout(() => this.awaitLast(since), left);
  }

  private dueAt(): number {
    return this.begun + (this.turn * this.order.spacing) / 1e6;
  }

  private send(lateness: number): void {
    this.turn += 1;
    if (this.channel.bufferedAmount > 0) {
      this.faults.notSent += 1;
      return;
    }
    if (lateness > LATE_MS) this.faults.lateSends += 1;
    this.worst = Math.max(this.worst, lateness);
    const seq = this.sentAt.length;
    const now = performance.now();
    writeHeader(this.request, { kind: KIND.request, flow: this.order.flow, seq, sentAt: now * 1e6 });
    this.sentAt.push(now);
    this.open_.add(seq);
    this.channel.send(this.request);
  }

  private heard(data: unknown): void {
    const now = performance.now();
    const view = data instanceof ArrayBuffer ? new DataView(data) : undefined;
    const header = view && view.byteLength === this.request.byteLength ? readHeader(view) : undefined;
    const sentAt = header && this.sentAt[header.seq];
    if (!view || header?.kind !== KIND.reply || header.flow !== this.order.flow || sentAt === undefined) {
      this.faults.bad += 1;
      return;
    }
    this.answered(header.seq, now, sentAt, responderTime(view));
  }

  private answered(seq: number, now: number, sentAt: number, claimed: number): void {
    if (!this.open_.has(seq) || this.lateOnes.has(seq)) {
      this.faults.duplicates += 1;
      return;
    }
    const patienceMs = this.patience.ms;
    this.patience.observe(now - sentAt);
    // It was lost by then, and stays so: a figure must not change while somebody reads it.
    if (now - sentAt > patienceMs) {
      this.faults.late += 1;
      this.lateOnes.add(seq);
      return;
    }
    this.open_.delete(seq);
    if (seq < this.highest) this.faults.reordered += 1;
    this.highest = Math.max(this.highest, seq);
    const application = Math.round((now - sentAt) * 1e6);
    const believed = claimed >= 0 && claimed <= application;
    if (!believed) this.faults.implausible += 1;
    const responder = believed ? claimed : 0;
    const trip = { seq, sentAt: Math.round((sentAt - this.begun) * 1e6), rtt: application - responder, application, responder };
    this.trips.push(trip);
    this.fresh.push(trip);
    const over = performance.now() >= this.begun + this.order.duration / 1e6;
    if (over && this.open_.size === 0) this.conclude();
  }

  private report(): void {
    if (this.fresh.length > 0) this.tell({ trips: this.fresh.splice(0) });
  }

  /** What became of a request that has not had its patience when the flow is ended early, nobody knows: it is no loss. */
  private conclude(): void {
    if (this.ended) return;
    clearTimeout(this.timer);
    clearInterval(this.reporter);
    this.report();
    const now = performance.now();
    const patienceMs = this.patience.ms;
    const isUndecided = (seq: number) => !this.lateOnes.has(seq) && now - this.sentAt[seq]! < patienceMs - SLACK_MS;
    const undecided = [...this.open_].filter(isUndecided).length;
    const run: EchoRun = {
      transport: "datagrams",
      length: this.request.byteLength,
      spacing: this.order.spacing,
      trips: this.trips,
      sent: this.sentAt.length,
      unanswered: this.open_.size - undecided,
      unknown: undecided,
      patience: Math.round(patienceMs * 1e6),
      worstLateness: Math.round(this.worst * 1e6),
      elapsed: this.since(),
      ...this.faults,
    };
    this.end({ did: "echo", run });
  }
}

type SendOrder = Extract<FlowOrder, { do: "send" }>;

class Sender extends Flow implements RunningFlow {
  private readonly datagram: DataView<ArrayBuffer>;
  private handed = 0;
  private turn = 0;
  private notSent = 0;
  private late = 0;
  private worst = 0;
  private stopped = false;

  constructor(
    channel: RTCDataChannel,
    private readonly order: SendOrder,
  ) {
    super(channel);
    this.datagram = new DataView(noise(Math.max(order.length, HEADER_LENGTH)));
    void this.go();
  }

  stop(): void {
    this.stopped = true;
  }

  private async go(): Promise<void> {
    if (this.order.gap === null) await this.unpaced();
    else await this.paced(this.order.gap);
    await this.until(() => this.channel.bufferedAmount === 0, patienceFor(this.order.roundTripMs, LAST_ROUND_TRIPS, FLUSH_MS));
    const elapsed = this.since();
    const { byteLength } = this.datagram;
    // What waits there still has never left; a closed channel tells nothing, so then nothing is claimed of its last ones.
    const waiting = Math.ceil(this.channel.bufferedAmount / byteLength);
    const sent = this.handed - waiting;
    if (waiting === 0) await this.sayEnd();
    this.end({
      did: "send",
      sent: {
        sent,
        notSent: this.notSent + waiting,
        bytes: sent * byteLength,
        elapsed,
        late: this.late,
        worstLateness: Math.round(this.worst * 1e6),
        broken: !this.open,
      },
    });
  }

  private over(done: number, at: number): boolean {
    const all = this.order.packets !== null && done >= this.order.packets;
    return this.stopped || !this.open || all || at >= this.begun + this.order.duration / 1e6;
  }

  private async paced(gap: number): Promise<void> {
    // Every turn that is due before the end is sent or counted as not sent, however late this page wakes.
    const due = () => this.begun + (this.turn * gap) / 1e6;
    while (!this.over(this.turn, due())) {
      const lateness = performance.now() - due();
      if (lateness < 0) {
        await rest(-lateness);
        continue;
      }
      this.turn += 1;
      this.worst = Math.max(this.worst, lateness);
      if (lateness > HOPELESS_MS || this.channel.bufferedAmount > 0) {
        this.notSent += 1;
      } else {
        if (lateness > LATE_MS) this.late += 1;
        this.hand();
      }
    }
  }

  private async unpaced(): Promise<void> {
    while (!this.over(this.handed, performance.now())) {
      if (this.channel.bufferedAmount === 0) this.hand();
      await this.room();
    }
  }

  private hand(): void {
    const { flow } = this.order;
    writeHeader(this.datagram, { kind: KIND.data, flow, seq: this.handed, sentAt: performance.now() * 1e6 });
    this.channel.send(this.datagram);
    this.handed += 1;
  }

  private async sayEnd(): Promise<void> {
    const end = new DataView(new ArrayBuffer(HEADER_LENGTH));
    for (let n = 0; n < ENDS && this.open; n += 1) {
      writeHeader(end, { kind: KIND.end, flow: this.order.flow, seq: this.handed, sentAt: performance.now() * 1e6 });
      this.channel.send(end);
      await rest(END_EVERY_MS);
    }
  }

  /** The event comes at once where a timer would wait 4 ms; the timer is for a channel that closes meanwhile. */
  private room(): Promise<void> {
    const { channel } = this;
    if (channel.bufferedAmount === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        channel.onbufferedamountlow = null;
        resolve();
      };
      const timer = setTimeout(done, ROOM_MS);
      channel.bufferedAmountLowThreshold = 0;
      channel.onbufferedamountlow = done;
    });
  }

  /** `bufferedAmount` falls without an event for every step, and events without it: both are looked at. */
  private async until(done: () => boolean, patienceMs: number): Promise<void> {
    const until = performance.now() + patienceMs;
    while (!done() && this.open && !this.stopped && performance.now() < until) await rest(1);
  }
}

type ReceiveOrder = Extract<FlowOrder, { do: "receive" }>;

class Receiver extends Flow implements RunningFlow {
  private readonly count = new StreamCount();
  private readonly ticks: StreamSlice[] = [];
  private reads = 0;
  private sent: number | undefined;
  private endedAt = Number.NaN;
  private readonly timer = setInterval(() => this.look(), SLICE_MS);

  constructor(
    channel: RTCDataChannel,
    private readonly order: ReceiveOrder,
    private readonly tell: (progress: FlowProgress) => void,
  ) {
    super(channel);
    channel.onmessage = (event) => this.heard(event.data);
  }

  stop(): void {
    this.conclude();
  }

  private heard(data: unknown): void {
    const now = performance.now();
    const view = data instanceof ArrayBuffer ? new DataView(data) : undefined;
    const header = view && readHeader(view);
    if (!header || header.flow !== this.order.flow) {
      this.count.foreign += 1;
    } else if (header.kind === KIND.data) {
      this.reads += 1;
      this.count.take(header.seq, header.sentAt, view.byteLength, Math.round((now - this.begun) * 1e6));
    } else if (header.kind === KIND.end) {
      this.sent ??= header.seq;
      if (Number.isNaN(this.endedAt)) this.endedAt = now;
    }
  }

  private look(): void {
    const slice = this.count.cut(this.since());
    if (slice) {
      this.ticks.push(slice);
      this.tell({ ticks: [slice] });
    }
    const now = performance.now();
    const settled = now - this.endedAt >= SETTLE_MS;
    const grace = patienceFor(this.order.roundTripMs, LAST_ROUND_TRIPS, GRACE_MS);
    if (settled || !this.open || now >= this.begun + this.order.duration / 1e6 + grace) this.conclude();
  }

  private conclude(): void {
    if (this.ended) return;
    clearInterval(this.timer);
    const slice = this.count.cut(this.since());
    if (slice && slice.packets > 0) this.ticks.push(slice);
    this.end({ did: "receive", totals: this.count.totals(this.sent), ticks: this.ticks, reads: this.reads });
  }
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Something that no box on the path can compress. */
function noise(length: number): ArrayBuffer {
  return crypto.getRandomValues(new Uint8Array(new ArrayBuffer(length))).buffer;
}

/** A timer fires early by less. */
const SLACK_MS = 20;
const REPORT_MS = 100;
/** A timer of a browser fires in steps of 1 to 4 ms: later than this is the host's doing. */
const LATE_MS = 5;
const HOPELESS_MS = 100;
const FLUSH_MS = 2000;
/** What waits leaves once what is on its way has been acknowledged or given up; a receiver begins to listen one before the first data. */
const LAST_ROUND_TRIPS = 4;
const ROOM_MS = 20;
const ENDS = 5;
const END_EVERY_MS = 5;
const SLICE_MS = 100;
const SETTLE_MS = 300;
const GRACE_MS = 2500;
