// The runner's part in data channels: asks the page for one, agrees on it with the server over the control session, and runs one flow
// in it (docs/protocol.md §9).

import { readEnd, type ChannelEnd } from "../pure/channelEnd";
import { within } from "./crew";
import { runFlow, type FlowOrder, type FlowProgress, type FlowResult, type RunningFlow } from "./flow";
import type { PeerAnswer, PeerRequest, PeerTrouble } from "./peers";
import { TimedOut } from "./session";
import type { Line } from "./tests";
import { T } from "../strings";

/** No datagrams for this browser on this path; everything else can still be measured. */
export class NoDatagrams extends Error {
  /** `waited` is in ns. */
  constructor(
    readonly reason: PeerTrouble,
    readonly waited: number,
  ) {
    super(reason === "blocked" ? T.channel.blocked(Math.round(waited / 1e9)) : T.channel[reason]);
  }
}

type Tell = (answer: PeerAnswer) => void;

/** All channels of a run, by the number that the page knows them by. */
export class Channels {
  private count = 0;
  private readonly peers = new Map<number, Tell>();

  constructor(private readonly ask: (request: PeerRequest) => void) {}

  heard(answer: PeerAnswer): void {
    this.peers.get(answer.peer)?.(answer);
  }

  /** A channel for an opened test; the test is ready then. Rejects with `NoDatagrams`. */
  async open(line: Line, test: number): Promise<Channel> {
    this.count += 1;
    const channel = new Channel(this.count, this.ask);
    this.peers.set(this.count, (answer) => channel.heard(answer));
    try {
      await channel.agree(line, test);
      return channel;
    } catch (error) {
      await this.close(channel);
      throw error;
    }
  }

  /** Packets that the browser itself dropped on the way out. */
  async close(channel: Channel): Promise<number> {
    const discarded = await channel.close();
    this.peers.delete(channel.peer);
    return discarded;
  }
}

export class Channel {
  private handed: RTCDataChannel | undefined;
  private running: RunningFlow | undefined;
  private progress: (progress: FlowProgress) => void = () => {};
  private readonly offer = signal<ChannelEnd>();
  private readonly opened = signal<void>();
  private readonly flowed = signal<FlowResult>();
  private readonly closed = signal<number>();
  private readonly trouble = signal<never>();
  private readonly begun = performance.now();

  constructor(
    readonly peer: number,
    private readonly ask: (request: PeerRequest) => void,
  ) {}

  heard(answer: PeerAnswer): void {
    switch (answer.told) {
      case "channel":
        return this.take(answer.channel);
      case "offer":
        return this.offer.resolve(answer.end);
      case "open":
        return this.opened.resolve();
      case "failed":
        return this.trouble.reject(this.without(answer.reason));
      case "progress":
        return this.progress(answer.progress);
      case "flow":
        return this.flowed.resolve(answer.result);
      case "closed":
        return this.closed.resolve(answer.discarded);
    }
  }

  async agree(line: Line, test: number): Promise<void> {
    const { session, target } = line;
    const patienceMs = session.patience(OPEN_ROUND_TRIPS, OPEN_MS);
    this.ask({ say: "peer", ask: "open", peer: this.peer });
    const offered = await this.orTrouble(this.offer.promise, patienceMs);
    const [answer, ready] = [session.next("channel", test), session.next("ready", test, patienceMs)];
    session.tell({ type: "channel", test, end: offered });
    const end = readEnd((await answer).end);
    if (!end) throw this.without("refused");
    this.ask({ say: "peer", ask: "answer", peer: this.peer, end, address: target.address, port: portOf(target.origin) });
    await this.orTrouble(Promise.all([ready, this.opened.promise]), patienceMs);
  }

  /** Once for a channel. */
  run(order: FlowOrder, progress: (progress: FlowProgress) => void): RunningFlow {
    if (this.handed) {
      this.running = runFlow(this.handed, order, progress);
      return this.running;
    }
    this.progress = progress;
    this.ask({ say: "peer", ask: "flow", peer: this.peer, order });
    return { result: this.flowed.promise, stop: () => this.ask({ say: "peer", ask: "stop", peer: this.peer }) };
  }

  async close(): Promise<number> {
    this.running?.stop();
    this.ask({ say: "peer", ask: "close", peer: this.peer });
    return within(this.closed.promise, CLOSE_MS, T.channel.open).catch(() => 0);
  }

  private take(channel: RTCDataChannel): void {
    this.handed = channel;
    if (channel.readyState === "open") this.opened.resolve();
    channel.onopen = () => this.opened.resolve();
  }

  private async orTrouble<T>(wanted: Promise<T>, patienceMs: number): Promise<T> {
    try {
      return await within(Promise.race([wanted, this.trouble.promise]), patienceMs, T.channel.none);
    } catch (error) {
      // The server's own patience with a channel that never comes is longer.
      throw error instanceof NoDatagrams || !isPatienceOver(error) ? error : new NoDatagrams("blocked", patienceMs * 1e6);
    }
  }

  private without(reason: PeerTrouble): NoDatagrams {
    return new NoDatagrams(reason, Math.round((performance.now() - this.begun) * 1e6));
  }
}

function isPatienceOver(error: unknown): boolean {
  return error instanceof TimedOut || (error instanceof Error && error.message.startsWith(T.channel.none));
}

interface Signal<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

function signal<T>(): Signal<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
  // Whoever does not wait for it is not told.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

function portOf(origin: string): number {
  const { port, protocol } = new URL(origin);
  return port ? Number(port) : protocol === "https:" ? 443 : 80;
}

const OPEN_MS = 6000;
/** ICE, DTLS and SCTP take seven or eight. */
const OPEN_ROUND_TRIPS = 10;
const CLOSE_MS = 1000;
