// The runner against a server that is played here: sessions, the queue, and transfers down of a matrix.

import { afterEach, expect, test, vi } from "vitest";
import type { FromRunner, Measured, MatrixSpec, ToRunner } from "../src/measure/messages";
import { move } from "../src/measure/mover";
import { listenForOrders } from "../src/measure/runner";

afterEach(() => void vi.unstubAllGlobals());

type Message = { type: string; test?: number; [field: string]: unknown };

/** What it was asked for, and how it answers to that. */
class Server {
  readonly heard: Message[] = [];
  /** Of the n-th `open`: a code of refusal. */
  refuses: Record<number, string> = {};
  /** Of each reservation, ns. */
  lease = 60e9;
  /** Until the welcome. */
  welcomeMs = 0;
  private opens = 0;
  private readonly bodies = new Map<number, ReadableStreamDefaultController<Uint8Array>>();
  private readonly sessions = new Map<number, (message: Message) => void>();

  of(type: string): Message[] {
    return this.heard.filter((message) => message.type === type);
  }

  take(message: Message, say: (answer: Message) => void): void {
    this.heard.push(message);
    const { test = -1 } = message;
    if (message.type === "hello") setTimeout(() => say({ type: "welcome", token: "0".repeat(32), host: {} }), this.welcomeMs);
    else if (message.type === "reserve") say({ type: "admitted", reservation: "1".repeat(32), lease: this.lease });
    else if (message.type === "open") {
      const code = this.refuses[this.opens];
      this.opens += 1;
      this.sessions.set(test, say);
      say(code === undefined ? { type: "opened", test } : { type: "error", test, code, message: "a throughput test needs a reservation" });
    } else if (message.type === "start") {
      this.bodies.get(test)!.enqueue(new Uint8Array(1000));
      this.bodies.get(test)!.close();
      say({ type: "finished", test, outcome: "complete", report: { bytes: 1000, elapsed: 1e6, outcome: "complete", streams: [] } });
    }
  }

  fetch(url: string): Promise<Response> {
    const number = Number(new URL(url).searchParams.get("test"));
    this.sessions.get(number)!({ type: "ready", test: number });
    return Promise.resolve(new Response(new ReadableStream<Uint8Array>({ start: (body) => void this.bodies.set(number, body) })));
  }
}

async function run(server: Server, spec: Partial<MatrixSpec>): Promise<Measured> {
  class Socket {
    static readonly OPEN = 1;
    readyState = 1;
    onopen: (() => void) | null = null;
    onmessage: ((event: { data: string }) => void) | null = null;

    constructor() {
      queueMicrotask(() => this.onopen?.());
    }

    send(text: string): void {
      const say = (message: Message) => queueMicrotask(() => this.onmessage?.({ data: JSON.stringify(message) }));
      server.take(JSON.parse(text) as Message, say);
    }

    close(): void {
      this.readyState = 3;
    }
  }
  vi.stubGlobal("WebSocket", Socket);
  vi.stubGlobal("fetch", (url: string) => server.fetch(url));
  const ports: MessagePort[] = [];
  const done = new Promise<Measured>((resolve) => {
    const postMessage = (told: FromRunner) => {
      if (told.say === "hire") {
        ports.push(told.port);
        move(told.port as never);
      } else if (told.say === "done") resolve(told.measured);
    };
    vi.stubGlobal("self", { postMessage, onmessage: null, crossOriginIsolated: false });
  });
  listenForOrders();
  const plan = Array.from({ length: 3 }, (_, round) => ({ bytes: 1000, block: 1000, protocol: "tcp" as const, round }));
  const whole: MatrixSpec = {
    kind: "matrix", candidates: [{ version: "IPv4", address: "192.0.2.1", origin: "http://192.0.2.1:1" }], versions: ["IPv4"],
    limits: { duration: null, rate: null, bytes: null, streams: null }, key: "", roundTripMs: 0, way: "down", plan, ...spec,
  };
  const order: ToRunner = { say: "run", spec: whole };
  (self as unknown as { onmessage: (event: { data: ToRunner }) => void }).onmessage({ data: order });
  const measured = await done;
  for (const port of ports) port.close();
  return measured;
}

const outcomes = (measured: Measured) => measured.versions[0]!.matrix!.map((transfer) => transfer.outcome);

test("a matrix of transfers that all went well is complete", async () => {
  const server = new Server();
  const measured = await run(server, {});
  expect([measured.outcome, outcomes(measured)]).toEqual(["complete", ["complete", "complete", "complete"]]);
  expect([server.of("reserve").length, server.of("release").length]).toEqual([1, 0]);
});

test("a step that was refused because the lease is over is run again with a new one", async () => {
  const server = new Server();
  server.refuses = { 1: "state" };
  const measured = await run(server, {});
  expect([measured.outcome, outcomes(measured)]).toEqual(["complete", ["complete", "complete", "complete"]]);
  expect([server.of("hello").length, server.of("reserve").length]).toEqual([2, 2]);
});

test("a step that is refused is in the record with its reason, and the next one makes nothing up for it", async () => {
  const server = new Server();
  server.refuses = { 1: "cap" };
  const measured = await run(server, {});
  expect([measured.outcome, outcomes(measured)]).toEqual(["interrupted", ["complete", "failed", "complete"]]);
  expect(measured.versions[0]!.matrix![1]!.reason).toBe("a throughput test needs a reservation");
  expect(measured.versions[0]!.troubles).toEqual({});
});

test("a place in the queue that is over before the next step is given back for a new one", async () => {
  const server = new Server();
  server.lease = 100e6;
  const measured = await run(server, {});
  expect([measured.outcome, outcomes(measured)]).toEqual(["complete", ["complete", "complete", "complete"]]);
  expect([server.of("hello").length, server.of("reserve").length, server.of("release").length]).toEqual([1, 3, 2]);
  // Less is asked for as less is left.
  const expected = server.of("reserve").map((message) => message.expected as number);
  expect(expected[0]).toBeGreaterThan(expected[2]!);
});

test("what is asked of the server follows the round trip, in whole nanoseconds", async () => {
  const server = new Server();
  server.welcomeMs = 30;
  // What the page knew before counts no more once there is a session.
  await run(server, { roundTripMs: 60_000.3 });
  const [reserve] = server.of("reserve");
  expect(reserve!.expected as number).toBeGreaterThanOrEqual(3 * (300 + 8 * 25) * 1e6);
  expect(reserve!.expected as number).toBeLessThan(8 * 60_000e6);
  const spans = [reserve!.expected, ...server.of("open").map((message) => (message.plan as { duration: number }).duration)];
  for (const span of spans) expect(Number.isInteger(span), `${span}`).toBe(true);
});
