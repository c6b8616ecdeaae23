// Sends small messages at even distances and takes the time until they come back, in a worker that does nothing else.
//
// rtt = t1 − t0 − (answered − received): the server's own time is taken out where its claim can be true. An open loop: a slow
// answer delays no later request, so a stall shows in every request that was due in it.

import type { RoundTrip } from "../pure/delay";
import { AnswerPatience } from "../pure/patience";
import type { EchoRun, FromEchoer, Talk, ToEchoer } from "./messages";
import { T } from "../strings";

type Runner = Talk<FromEchoer, ToEchoer>;

export function echo(runner: Runner): void {
  let loop: EchoLoop | undefined;
  let socket: WebSocket | undefined;
  runner.onmessage = ({ data }) => {
    if (data.say === "open") {
      socket = new WebSocket(data.url);
      socket.binaryType = "arraybuffer";
      socket.onopen = () => runner.postMessage({ say: "open" });
      socket.onclose = () => loop?.end(T.session.echoClosed);
    } else if (data.say === "go" && socket) {
      loop = new EchoLoop(runner, socket, data);
    } else {
      loop?.stop();
    }
  };
}

type Order = Extract<ToEchoer, { say: "go" }>;

class EchoLoop {
  private readonly begun = performance.now();
  private readonly sentAt: number[] = [];
  private readonly open = new Set<number>();
  private readonly trips: RoundTrip[] = [];
  private readonly fresh: RoundTrip[] = [];
  private readonly payload: Uint8Array<ArrayBuffer>;
  private bad = 0;
  private implausible = 0;
  private lateSends = 0;
  private worstLateness = 0;
  private ended = false;
  private readonly patience: AnswerPatience;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly reporter = setInterval(() => this.report(), REPORT_MS);

  constructor(
    private readonly runner: Runner,
    private readonly socket: WebSocket,
    private readonly order: Order,
  ) {
    this.patience = new AnswerPatience(order.roundTripMs);
    this.payload = new Uint8Array(new ArrayBuffer(order.length)).map((_, n) => (n * 167 + 13) & 0xff);
    socket.onmessage = (event) => this.answered(event.data);
    this.next();
  }

  /** No more requests; answers are awaited a little longer. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(null), this.patience.stoppedMs);
  }

  end(broken: string | null): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    clearInterval(this.reporter);
    this.socket.onmessage = null;
    this.socket.onclose = null;
    this.socket.close();
    // The server closes it when its own time for the test is over, and may do so before the last answers.
    this.runner.postMessage({ say: "ended", run: this.run(), broken: this.over() ? null : broken });
  }

  private next(): void {
    const now = performance.now();
    const due = this.begun + (this.sentAt.length * this.order.spacing) / 1e6;
    if (now >= this.begun + this.order.duration / 1e6) return this.awaitLast(now);
    if (now >= due) this.send(now - due);
    const wait = this.begun + (this.sentAt.length * this.order.spacing) / 1e6 - performance.now();
    this.timer = setTimeout(() => this.next(), Math.max(0, wait));
  }

  /** Patience may grow meanwhile, by an answer that was slow. */
  private awaitLast(since: number): void {
    const left = since + this.patience.ms - performance.now();
    if (left <= 0) this.end(null);
    else this.timer = setTimeout(() => this.awaitLast(since), left);
  }

  private send(lateness: number): void {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    if (lateness > LATE_MS) this.lateSends += 1;
    this.worstLateness = Math.max(this.worstLateness, lateness);
    const seq = this.sentAt.length;
    new DataView(this.payload.buffer).setUint32(0, seq);
    this.open.add(seq);
    this.sentAt.push(performance.now());
    this.socket.send(this.payload);
  }

  private answered(data: unknown): void {
    const now = performance.now();
    if (!(data instanceof ArrayBuffer) || data.byteLength !== this.order.length + STAMPS) {
      this.bad += 1;
      return;
    }
    const view = new DataView(data);
    const seq = view.getUint32(STAMPS);
    if (!this.open.delete(seq)) {
      this.bad += 1;
      return;
    }
    this.keep(seq, now, Number(view.getBigUint64(8) - view.getBigUint64(0)));
    if (this.open.size === 0 && this.over()) this.end(null);
  }

  private keep(seq: number, now: number, claimed: number): void {
    const sentAt = this.sentAt[seq]!;
    this.patience.observe(now - sentAt);
    const application = Math.round((now - sentAt) * 1e6);
    const believed = claimed >= 0 && claimed <= application;
    if (!believed) this.implausible += 1;
    const responder = believed ? claimed : 0;
    const trip = { seq, sentAt: Math.round((sentAt - this.begun) * 1e6), rtt: application - responder, application, responder };
    this.trips.push(trip);
    this.fresh.push(trip);
  }

  private over(): boolean {
    return performance.now() >= this.begun + this.order.duration / 1e6;
  }

  private report(): void {
    if (this.fresh.length > 0) this.runner.postMessage({ say: "trips", trips: this.fresh.splice(0) });
  }

  private run(): EchoRun {
    this.report();
    return {
      length: this.order.length,
      spacing: this.order.spacing,
      trips: this.trips,
      sent: this.sentAt.length,
      unanswered: this.open.size,
      bad: this.bad,
      patience: Math.round(this.patience.ms * 1e6),
      lateSends: this.lateSends,
      worstLateness: Math.round(this.worstLateness * 1e6),
      implausible: this.implausible,
      elapsed: Math.round((performance.now() - this.begun) * 1e6),
    };
  }
}

/** Received-at and answered-at, u64 each, before the request's own bytes. */
const STAMPS = 16;
const REPORT_MS = 100;
/** A timer of a browser fires in steps of 1 to 4 ms: later than this is the host's doing. */
const LATE_MS = 5;
