import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { NoDatagrams } from "../src/measure/channels";
import { echo } from "../src/measure/echoer";
import { runFlow } from "../src/measure/flow";
import { KIND } from "../src/pure/datagram";
import { AnswerPatience, patienceFor } from "../src/pure/patience";
import { recordOf } from "../src/pure/record";
import { around, measured } from "./fixture";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

test("patience follows the round trip and has a least and a most", () => {
  const rows: [number, number, number, number][] = [
    [0, 10, 6000, 6000],
    [20, 10, 6000, 6000],
    [1200, 10, 6000, 12_000],
    [2500, 4, 3000, 10_000],
    [1000.2, 4, 3000, 4001],
    [1e9, 10, 6000, 60_000],
  ];
  for (const [roundTrip, count, least, wanted] of rows) expect(patienceFor(roundTrip, count, least)).toBe(wanted);
});

test("answers are waited for as long as the slowest so far makes likely", () => {
  const patience = new AnswerPatience();
  expect([patience.ms, patience.stoppedMs]).toEqual([5000, 250]);
  patience.observe(20);
  expect([patience.ms, patience.stoppedMs]).toEqual([1000, 250]);
  patience.observe(1200);
  patience.observe(30);
  expect([patience.ms, patience.stoppedMs]).toEqual([4800, 1200]);
  patience.observe(60_000);
  expect([patience.ms, patience.stoppedMs]).toEqual([15_000, 15_000]);
});

/** A channel that answers each request after so long, but for what it loses. */
function channelOf(roundTripMs: number, loses: (n: number) => boolean = () => false): RTCDataChannel {
  let count = 0;
  const channel = {
    readyState: "open",
    bufferedAmount: 0,
    onmessage: null as ((event: { data: ArrayBuffer }) => void) | null,
    send(data: DataView<ArrayBuffer>): void {
      const bytes = new DataView(data.buffer.slice(0));
      bytes.setUint8(2, KIND.reply);
      if (!loses(count++)) setTimeout(() => channel.onmessage?.({ data: bytes.buffer }), roundTripMs);
    },
  };
  return channel as unknown as RTCDataChannel;
}

const ORDER = { do: "echo", flow: 1, length: 64, spacing: 100e6, duration: 1e9 } as const;

test("a path of 1.2 s that loses nothing has no loss and nothing late", async () => {
  const running = runFlow(channelOf(1200), { ...ORDER, roundTripMs: 1200 }, () => {});
  await vi.advanceTimersByTimeAsync(10_000);
  const result = await running.result;
  expect(result).toMatchObject({ did: "echo", run: { sent: 10, unanswered: 0, unknown: 0, late: 0, patience: 4800e6 } });
  expect(result.did === "echo" && result.run.trips.length).toBe(10);
});

test("what a path of 1.2 s loses is lost all the same", async () => {
  const running = runFlow(channelOf(1200, (n) => n === 4), { ...ORDER, roundTripMs: 1200 }, () => {});
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await running.result).toMatchObject({ did: "echo", run: { sent: 10, unanswered: 1, unknown: 0 } });
});

test("an answer after its patience is late, and the next ones are waited for longer", async () => {
  const running = runFlow(channelOf(1200), { ...ORDER, roundTripMs: 100 }, () => {});
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await running.result).toMatchObject({ did: "echo", run: { sent: 10, unanswered: 1, late: 1, patience: 4800e6 } });
});

test("what was under way when echoes were stopped is unknown and not lost", async () => {
  const running = runFlow(channelOf(600), { ...ORDER, duration: 60e9, roundTripMs: 20 }, () => {});
  await vi.advanceTimersByTimeAsync(450);
  running.stop();
  await vi.advanceTimersByTimeAsync(2000);
  const result = await running.result;
  expect(result).toMatchObject({ did: "echo", run: { sent: 5, unanswered: 0 } });
  expect(result.did === "echo" && result.run.unknown! + result.run.trips.length).toBe(5);
});

test("the record has the patience that was had, and says how long a server was waited for", () => {
  const run = measured();
  run.versions[0]!.idle!.patience = 4.8e9;
  run.missing[0]!.waited = 10e9;
  const [v4, v6] = recordOf(run, around).versions;
  expect(v4!.latency!.patience).toBe(4.8e9);
  expect(v6!.unreachable!.reason).toBe("no answer from 2001:db8::1 within 10 s");
});

test("a channel that did not come about is said with the time that it was given", () => {
  expect(new NoDatagrams("blocked", 12e9).message).toContain("within 12 s");
  expect(new NoDatagrams("absent", 0).message).toBe("this browser has no WebRTC");
});

type Told = { say: string; run?: { trips: unknown[]; sent: number; unanswered: number; patience: number }; broken?: string | null };

/** Echoes over a socket that answers after so long and breaks at some time, ms. */
async function overSocket(roundTripMs: number, breaksAtMs: number, runsMs: number): Promise<Told> {
  class Socket {
    static readonly OPEN = 1;
    readyState = 1;
    onopen: (() => void) | null = null;
    onclose: (() => void) | null = null;
    onmessage: ((event: { data: ArrayBuffer }) => void) | null = null;

    constructor() {
      setTimeout(() => this.onclose?.(), breaksAtMs);
    }

    send(data: Uint8Array<ArrayBuffer>): void {
      const answer = new Uint8Array(16 + data.byteLength);
      answer.set(data, 16);
      setTimeout(() => this.onmessage?.({ data: answer.buffer }), roundTripMs);
    }

    close(): void {}
  }
  vi.stubGlobal("WebSocket", Socket);
  const told: Told[] = [];
  const runner = { postMessage: (message: Told) => void told.push(message), onmessage: null as ((event: unknown) => void) | null, close: () => {} };
  echo(runner as never);
  runner.onmessage!({ data: { say: "open", url: "" } });
  runner.onmessage!({ data: { say: "go", length: 64, spacing: 100e6, duration: 1e9, roundTripMs } });
  await vi.advanceTimersByTimeAsync(runsMs);
  vi.unstubAllGlobals();
  return told.find((message) => message.say === "ended")!;
}

test("echoes over TCP wait for the answers of a path of 1.2 s", async () => {
  const { run, broken } = await overSocket(1200, 60_000, 3000);
  expect([run!.sent, run!.trips.length, run!.unanswered, run!.patience, broken]).toEqual([10, 10, 0, 4800e6, null]);
});

test("a connection that breaks amid the echoes is told, and one that is closed after the last request is not", async () => {
  const amid = await overSocket(200, 550, 3000);
  expect([amid.run!.sent, amid.run!.trips.length, amid.run!.unanswered]).toEqual([6, 4, 2]);
  expect(amid.broken).toBe("the echo connection was closed");
  const after = await overSocket(200, 1050, 3000);
  expect([after.run!.sent, after.run!.unanswered, after.broken]).toEqual([10, 1, null]);
});
