// One control session with the server over a WebSocket: docs/protocol.md §2, one message per text frame.
//
// Keep: a session whose connection breaks fails every wait at once with `ConnectionLost`, so that nobody waits for an answer
// that cannot come. Messages are believed only as far as their fields have the right type.

import { proof } from "./proof";
import { patienceFor } from "../pure/patience";
import { object } from "../pure/shape";
import { T } from "../strings";

export interface ControlMessage {
  type: string;
  [field: string]: unknown;
}

/** The owner's caps; null is none. Times ns, rates bit/s. */
export interface Limits {
  duration: number | null;
  rate: number | null;
  bytes: number | null;
  streams: number | null;
}

export class ConnectionLost extends Error {}

/** The server said no; `code` is one of docs/protocol.md §8. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class TimedOut extends Error {}

interface Wait {
  wanted: (message: ControlMessage) => boolean;
  test: number | undefined;
  resolve: (message: ControlMessage) => void;
  reject: (error: Error) => void;
  timer: ReturnType<typeof setTimeout>;
}

export class Session {
  token = "";
  /** Opens what only the owner sees; "" where no key was proved, or not over TLS. */
  owner = "";
  host: Record<string, unknown> = {};
  /** ns from connecting to the welcome. */
  greeting = 0;
  /** The longest round trip of a message so far, ms: patience with everything on this path follows it. */
  slowestMs = 0;
  private waits: Wait[] = [];
  private listeners = new Set<(message: ControlMessage) => void>();
  private heartbeat: ReturnType<typeof setInterval> | undefined;
  private lastHeard = 0;
  private seq = 0;
  private readonly pingedAt = new Map<number, number>();
  private ended: Error | undefined;
  private breakOff: (error: Error) => void = () => {};
  /** Rejects when the session ends; never resolves. */
  readonly broken = new Promise<never>((_, reject) => (this.breakOff = reject));

  private constructor(private readonly socket: WebSocket) {
    this.broken.catch(() => {});
    socket.onmessage = (event) => this.heard(event.data);
    socket.onclose = () => this.end(new ConnectionLost(T.session.closed));
    socket.onerror = () => this.end(new ConnectionLost(T.session.failed));
  }

  /** The patience holds for the connection and for the welcome. The key is that of the server's owner; without one it is `""`. */
  static async open(origin: string, { patienceMs = ANSWER_MS, key = "" }: { patienceMs?: number; key?: string } = {}): Promise<Session> {
    const begun = performance.now();
    const socket = new WebSocket(`${origin.replace(/^http/, "ws")}/control`);
    const session = new Session(socket);
    await session.connected(patienceMs);
    const ours = nonce();
    session.tell({ type: "hello", version: 1, software: SOFTWARE, nonce: ours });
    const welcome = await session.welcomed(ours, key, patienceMs);
    session.greeting = Math.round((performance.now() - begun) * 1e6);
    session.token = typeof welcome.token === "string" && /^[0-9a-f]{32}$/.test(welcome.token) ? welcome.token : "";
    session.owner = typeof welcome.owner === "string" && /^[0-9a-f]{64}$/.test(welcome.owner) ? welcome.owner : "";
    session.host = object(welcome.host) ?? {};
    session.heartbeat = setInterval(() => session.beat(), PING_MS);
    return session;
  }

  private async welcomed(ours: string, key: string, patienceMs: number): Promise<ControlMessage> {
    const asked = performance.now();
    const welcome = this.next("welcome", undefined, patienceMs);
    const first = await Promise.race([welcome, this.next("challenge", undefined, patienceMs)]);
    this.slowestMs = performance.now() - asked;
    if (first.type === "welcome") return first;
    const theirs = typeof first.nonce === "string" && /^[0-9a-f]{32}$/.test(first.nonce) ? first.nonce : "";
    if (key === "" || theirs === "") {
      this.close();
      throw new Refused("key", T.session.wantsKey);
    }
    this.tell({ type: "authenticate", proof: await proof("prober", key, [theirs, ours]) });
    const answer = await welcome;
    if (answer.proof === (await proof("responder", key, [theirs, ours]))) return answer;
    this.close();
    throw new Refused("key", T.session.noKey);
  }

  get alive(): boolean {
    return this.ended === undefined;
  }

  /** ms to wait for something that takes so many round trips of this path. */
  patience(roundTrips: number, leastMs: number): number {
    return patienceFor(this.slowestMs, roundTrips, leastMs);
  }

  tell(message: ControlMessage): void {
    if (this.ended) throw this.ended;
    this.socket.send(JSON.stringify(message));
  }

  /** The next message of this type, about this test if one is named. */
  next(type: string, test?: number, patienceMs = this.patience(ANSWER_ROUND_TRIPS, ANSWER_MS)): Promise<ControlMessage> {
    if (this.ended) return Promise.reject(this.ended);
    const answer = new Promise<ControlMessage>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waits = this.waits.filter((wait) => wait !== entry);
        reject(new TimedOut(T.session.timedOut(type, Math.round(patienceMs / 1000))));
      }, patienceMs);
      const wanted = (message: ControlMessage) => message.type === type && (test === undefined || message.test === test);
      const entry: Wait = { wanted, test, resolve, reject, timer };
      this.waits.push(entry);
    });
    // A wait that nobody awaits any more, because another failed first, is no error of the page.
    answer.catch(() => {});
    return answer;
  }

  /** Calls `listener` for every message until the returned function is called. */
  listen(listener: (message: ControlMessage) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    if (!this.ended && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "bye" }));
    this.end(new ConnectionLost(T.session.ended));
  }

  private connected(patienceMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.end(new ConnectionLost(T.session.unanswered));
      }, patienceMs);
      this.socket.onopen = () => {
        clearTimeout(timer);
        this.lastHeard = performance.now();
        resolve();
      };
      this.failed = reject;
    });
  }

  private failed: (error: Error) => void = () => {};

  private heard(data: unknown): void {
    this.lastHeard = performance.now();
    const message = understood(data);
    if (!message) return;
    if (message.type === "pong") this.ponged(numberOf(message.seq));
    for (const listener of this.listeners) listener(message);
    if (message.type === "error") this.refused(message);
    else if (message.type === "bye") this.end(new ConnectionLost(T.session.bye(text(message.reason))));
    else this.answer(message);
  }

  private answer(message: ControlMessage): void {
    const wait = this.waits.find((each) => each.wanted(message));
    if (!wait) return;
    this.waits = this.waits.filter((each) => each !== wait);
    clearTimeout(wait.timer);
    wait.resolve(message);
  }

  /** An error about a test is of concern to whoever waits for that test; one without a test to everybody. */
  private refused(message: ControlMessage): void {
    const error = new Refused(text(message.code), text(message.message));
    const concerned = this.waits.filter((wait) => message.test === undefined || message.test === null || wait.test === message.test);
    this.waits = this.waits.filter((wait) => !concerned.includes(wait));
    for (const wait of concerned) {
      clearTimeout(wait.timer);
      wait.reject(error);
    }
  }

  /** Answers come in order: what was asked before needs no answer any more. */
  private ponged(seq: number): void {
    const askedAt = this.pingedAt.get(seq);
    if (askedAt === undefined) return;
    this.slowestMs = Math.max(this.slowestMs, performance.now() - askedAt);
    for (const each of this.pingedAt.keys()) if (each <= seq) this.pingedAt.delete(each);
  }

  private beat(): void {
    const silenceMs = Math.min(this.patience(SILENCE_ROUND_TRIPS, SILENCE_MS), LONGEST_SILENCE_MS);
    if (performance.now() - this.lastHeard > silenceMs) {
      this.end(new ConnectionLost(T.session.silent(Math.round(silenceMs / 1000))));
      return;
    }
    this.seq += 1;
    this.pingedAt.set(this.seq, performance.now());
    this.socket.send(JSON.stringify({ type: "ping", seq: this.seq }));
  }

  private end(error: Error): void {
    if (this.ended) return;
    this.ended = error;
    clearInterval(this.heartbeat);
    this.socket.onmessage = null;
    this.socket.close();
    this.failed(error);
    this.breakOff(error);
    for (const wait of this.waits.splice(0)) {
      clearTimeout(wait.timer);
      wait.reject(error);
    }
  }
}

function understood(data: unknown): ControlMessage | undefined {
  if (typeof data !== "string" || data.length > LARGEST_MESSAGE) return undefined;
  try {
    const value = object(JSON.parse(data));
    return typeof value?.type === "string" ? (value as ControlMessage) : undefined;
  } catch {
    return undefined;
  }
}

export function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 300) : "";
}

/** `crypto.randomUUID` is kept from pages without TLS; this is not. */
function nonce(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const SOFTWARE = "netaware-web 0.1.0";
const PING_MS = 1000;
/** On a path whose round trip is short the server frees a vanished client within 5 s; then there is nothing left to come back to. */
const SILENCE_MS = 5000;
/** A ping that is lost once, and the one after it. The server waits for 15 s at most as well, crates/apps/server/src/session.rs. */
const SILENCE_ROUND_TRIPS = 6;
const LONGEST_SILENCE_MS = 15_000;
const ANSWER_MS = 6000;
/** A message that is lost once behind a queue is answered by then. */
const ANSWER_ROUND_TRIPS = 4;
/** The protocol's own limit, in characters: no message has more characters than bytes. */
const LARGEST_MESSAGE = 65_536;
/** Slices kept of what a server tells of one test, 100 ms each: one that tells on and on must not make the page grow. */
export const MOST_SLICES = 4000;
