import { expect, test } from "vitest";
import { runFlow, type FlowOrder, type FlowResult } from "../src/measure/flow";
import type { DatagramRun } from "../src/measure/messages";
import { answerOf, endOf, readEnd } from "../src/pure/channelEnd";
import { csvOf } from "../src/pure/csv";
import { HEADER_LENGTH, KIND, readHeader, responderTime, writeHeader } from "../src/pure/datagram";
import { figuresOf, lossOf } from "../src/pure/figures";
import { readRecord } from "../src/pure/readRecord";
import { recordOf } from "../src/pure/record";
import { wilson } from "../src/pure/statistics";
import { StreamCount } from "../src/pure/streamCount";
import { udpResult } from "../src/pure/udpResult";
import { around, measured } from "./fixture";

const FINGERPRINT = Array.from({ length: 32 }, (_, n) => (n * 7 + 16).toString(16).padStart(2, "0").toUpperCase()).join(":");

test("a header is read as it was written, and what is none is none", () => {
  const bytes = new DataView(new ArrayBuffer(44));
  writeHeader(bytes, { kind: KIND.request, flow: 7, seq: 2 ** 40, sentAt: 123_456_789.4 });
  expect(readHeader(bytes)).toEqual({ kind: KIND.request, flow: 7, seq: 2 ** 40, sentAt: 123_456_789 });
  expect([...new Uint8Array(bytes.buffer, 0, 8)]).toEqual([0x4e, 0x61, 5, 0, 0, 0, 0, 7]);
  bytes.setBigUint64(24, 1000n);
  bytes.setBigUint64(32, 1750n);
  expect(responderTime(bytes)).toBe(750);
  bytes.setBigUint64(8, 2n ** 60n);
  expect(readHeader(bytes)).toBeUndefined();
  expect(readHeader(new DataView(new ArrayBuffer(HEADER_LENGTH)))).toBeUndefined();
  expect(readHeader(new DataView(new ArrayBuffer(3)))).toBeUndefined();
});

test("a stream is counted by its numbers: lost, overtaken, copies, runs, jitter", () => {
  const count = new StreamCount();
  // Sent each ms; 3 and 4 are lost, 6 comes after 7, 8 comes twice, 9 is 2 ms late.
  const arrivals: [number, number][] = [[0, 0], [1, 1], [2, 2], [5, 5], [7, 7], [6, 7.5], [8, 8], [8, 8.1], [9, 11]];
  for (const [seq, at] of arrivals) count.take(seq, seq * 1e6, 100, 50e6 + at * 1e6);
  const slice = count.cut(70e6);
  expect(slice).toMatchObject({ packets: 8, bytes: 800, lost: 2, end: 20e6, length: 20e6 });
  const totals = count.totals(12);
  expect(totals).toMatchObject({ received: 8, bytes: 800, duplicates: 1, reordered: 1, reorderExtent: 1, highest: 10, elapsed: 11e6, first: 100 });
  expect(totals.lossRuns).toEqual([[2, 2]]);
  // Pairs in the order of arrival: 1.5 ms later, 1.5 ms sooner, 2 ms later.
  expect(totals.jitter).toBe(295_288);
  expect(totals.delayVariation).toMatchObject({ min: 0, max: 2e6, count: 8 });
});

test("absurd numbers fill no memory", () => {
  const count = new StreamCount();
  count.take(Number.MAX_SAFE_INTEGER, 0, 100, 1);
  expect([count.foreign, count.totals(Number.MAX_SAFE_INTEGER).received]).toEqual([1, 0]);
});

test("an offer yields what the server must know, an answer holds nothing else of the server", () => {
  const offer = `v=0\r\na=ice-ufrag:ab+/\r\na=ice-pwd:${"p".repeat(24)}\r\na=fingerprint:sha-256 ${FINGERPRINT}\r\na=setup:actpass\r\n`;
  const end = { ufrag: "ab+/", pwd: "p".repeat(24), fingerprint: FINGERPRINT };
  expect(endOf(offer)).toEqual(end);
  expect(endOf(offer.replace("sha-256", "sha-1"))).toBeUndefined();
  expect(readEnd({ ...end, more: 1 })).toEqual(end);
  for (const bad of [null, 7, { ...end, ufrag: "a b c d" }, { ...end, pwd: `${"p".repeat(24)}\r\na=candidate:evil` }, { ...end, fingerprint: "" }]) {
    expect(readEnd(bad), JSON.stringify(bad)).toBeUndefined();
  }
  const answer = answerOf(end, "fd00::1", 14233).split("\r\n");
  expect(answer).toContain("a=candidate:1 1 udp 2130706431 fd00::1 14233 typ host");
  expect(answer.filter((line) => line.startsWith("m="))).toHaveLength(1);
});

/** A channel whose network takes `perMs` bytes per millisecond and loses what it is told to. */
class FakeChannel {
  readyState = "open";
  binaryType = "";
  bufferedAmount = 0;
  bufferedAmountLowThreshold = 0;
  onmessage: ((event: { data: ArrayBuffer }) => void) | null = null;
  onbufferedamountlow: (() => void) | null = null;
  readonly out: ArrayBuffer[] = [];
  private readonly timer;

  constructor(
    private readonly perMs = Number.POSITIVE_INFINITY,
    private readonly answer: (bytes: ArrayBuffer, channel: FakeChannel) => void = () => {},
  ) {
    this.timer = setInterval(() => this.drain(), 1);
  }

  send(data: DataView<ArrayBuffer>): void {
    const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
    this.out.push(bytes);
    if (this.perMs < Number.POSITIVE_INFINITY) this.bufferedAmount += bytes.byteLength;
    queueMicrotask(() => this.answer(bytes, this));
  }

  come(data: ArrayBuffer): void {
    this.onmessage?.({ data });
  }

  private drain(): void {
    const before = this.bufferedAmount;
    this.bufferedAmount = Math.max(0, before - this.perMs);
    if (before > this.bufferedAmountLowThreshold && this.bufferedAmount <= this.bufferedAmountLowThreshold) this.onbufferedamountlow?.();
  }

  end(): void {
    clearInterval(this.timer);
  }
}

async function flow(channel: FakeChannel, order: FlowOrder): Promise<FlowResult> {
  const result = await runFlow(channel as unknown as RTCDataChannel, order, () => {}).result;
  channel.end();
  return result;
}

test("an echo without an answer is lost, one that finds no room was never sent", async () => {
  const reply = (bytes: ArrayBuffer, channel: FakeChannel) => {
    const request = new DataView(bytes);
    if (readHeader(request)!.seq % 10 === 3) return;
    request.setUint8(2, KIND.reply);
    channel.come(bytes);
  };
  const channel = new FakeChannel(Number.POSITIVE_INFINITY, reply);
  const result = await flow(channel, { do: "echo", flow: 1, roundTripMs: 1, length: 64, spacing: 5e6, duration: 200e6 });
  if (result.did !== "echo") throw new Error("no echoes");
  const { run } = result;
  expect(run.sent).toBeGreaterThan(20);
  expect(run.unanswered).toBe(Math.ceil((run.sent - 3) / 10));
  expect(run.trips.length + run.unanswered).toBe(run.sent);
  const shut = await flow(new FakeChannel(0), { do: "echo", flow: 1, roundTripMs: 1, length: 64, spacing: 5e6, duration: 100e6 });
  expect(shut.did === "echo" && [shut.run.sent, shut.run.notSent! > 5]).toEqual([1, true]);
});

test("what congestion control holds back is not sent, and not lost", async () => {
  const order = { do: "send", flow: 1, roundTripMs: 1, length: 1000, gap: 2e6, packets: 100, duration: 5e9 } as const;
  const channel = new FakeChannel(100);
  const result = await flow(channel, order);
  if (result.did !== "send") throw new Error("nothing sent");
  const data = channel.out.filter((bytes) => readHeader(new DataView(bytes))!.kind === KIND.data);
  expect(result.sent.sent + result.sent.notSent).toBe(100);
  expect(result.sent.notSent).toBeGreaterThan(0);
  expect(data).toHaveLength(result.sent.sent);
  expect(data.map((bytes) => readHeader(new DataView(bytes))!.seq)).toEqual(data.map((_, n) => n));
  expect(readHeader(new DataView(channel.out.at(-1)!))).toMatchObject({ kind: KIND.end, seq: result.sent.sent });
});

test("what a dead path still holds at the end has never left", async () => {
  const order = { do: "send", flow: 1, roundTripMs: 1, length: 1000, gap: null, packets: 10, duration: 1e9 } as const;
  const channel = new FakeChannel(0);
  const result = await flow(channel, order);
  expect(result).toMatchObject({ did: "send", sent: { sent: 0, notSent: 1, bytes: 0 } });
});

test("a receiver ends by the sender's last word", async () => {
  const channel = new FakeChannel();
  const running = flow(channel, { do: "receive", flow: 9, roundTripMs: 1, duration: 5e9 });
  const bytes = (kind: number, flow: number, seq: number) => {
    const view = new DataView(new ArrayBuffer(100));
    writeHeader(view, { kind, flow, seq, sentAt: seq * 1e6 });
    return view.buffer;
  };
  for (const seq of [0, 1, 3]) channel.come(bytes(KIND.data, 9, seq));
  channel.come(bytes(KIND.data, 8, 2));
  channel.come(bytes(KIND.end, 9, 5));
  const result = await running;
  expect(result).toMatchObject({ did: "receive", reads: 3, totals: { received: 3, bytes: 300, foreign: 1, highest: 4, lossRuns: [[1, 2]] } });
});

function stream(direction: "down" | "up"): DatagramRun {
  const totals = new StreamCount();
  for (const seq of [0, 1, 2, 4]) totals.take(seq, seq * 1e6, 200, seq * 1e6 + 5);
  const common = { direction, outcome: "complete", length: 200, gap: 10e6 } as const;
  return direction === "down"
    ? { ...common, page: { did: "receive", totals: totals.totals(6), ticks: [], reads: 4 }, report: { sent: 6, not_sent: 2, bytes: 1200, elapsed: 50e6, calls: 6, late: 1, worst_lateness: 7e6 }, discarded: 0 }
    : { ...common, page: { did: "send", sent: { sent: 6, notSent: 1, bytes: 1200, elapsed: 50e6, late: 0, worstLateness: 0, broken: false } }, report: { received: 4, bytes: 800, elapsed: 50e6, calls: 4, drops: { socket: 1, stack: 0, nic: 0 }, jitter: 5 }, discarded: 0 };
}

test("lost is sent without received, and host and network share it", () => {
  const [down, up] = [udpResult(stream("down"), "IPv4")!, udpResult(stream("up"), "IPv6")!];
  expect([down.sent, down.received, down.not_sent, down.loss.lost]).toEqual([6, 4, 2, 2]);
  expect([up.sent, up.received, up.not_sent, up.loss.lost, up.loss.host, up.loss.network]).toEqual([6, 4, 1, 2, 1, 1]);
  expect(down.pedigree).toMatchObject({ direction: "reverse", clock: "application", method: "web-datagrams" });
  expect(up.loss.ratio!.lo).toBeLessThan(2 / 6);
  const { report: _, ...silent } = stream("up");
  expect(udpResult(silent, "IPv4")).toBeUndefined();
});

test("what a page cannot count at its end is absent and not zero", () => {
  const down = udpResult(stream("down"), "IPv4")!;
  expect([down.loss.host, down.loss.network, down.health.host_drops, down.health.stamp_fallbacks]).toEqual([undefined, undefined, undefined, undefined]);
  expect(down.receiver.drops).toEqual({});
  expect(down.receiver.cpu).toBeUndefined();
  // Where nothing is missing, nothing of it was dropped.
  const whole = stream("down");
  const sent = udpResult({ ...whole, report: { ...whole.report, sent: 4 } }, "IPv4")!;
  expect([sent.loss.lost, sent.loss.host, sent.loss.network]).toEqual([0, 0, 0]);
  const silent = udpResult({ ...stream("up"), report: { received: 4, bytes: 800, elapsed: 50e6 } }, "IPv4")!;
  expect([silent.duplicates, silent.reordered, silent.loss.host]).toEqual([undefined, undefined, undefined]);
  const one = new StreamCount();
  one.take(0, 0, 100, 5);
  expect(one.totals(1)).not.toHaveProperty("jitter");
  expect(one.totals(1)).not.toHaveProperty("delayVariation");
});

test("two datagrams a gap apart came at the rate of one per gap", () => {
  const report = { received: 2, bytes: 2944, elapsed: 148e6 };
  const up = udpResult({ ...stream("up"), length: 1472, report }, "IPv4")!;
  expect(up.packets_per_second! * 1472 * 8).toBeCloseTo(up.goodput!, -1);
  expect(up.goodput).toBe(Math.round((1472 * 8e9) / 148e6));
});

test("a rate does not hide that the end of a stream was lost", () => {
  // Half of six datagrams came, the first ones.
  const report = { received: 3, bytes: 600, elapsed: 20e6 };
  const up = udpResult({ ...stream("up"), report }, "IPv4")!;
  expect(up.goodput).toBe(up.sent_rate! / 2);
  expect(up.packets_per_second! * 200 * 8).toBeCloseTo(up.goodput!, -1);
  // What came after the receiver had stopped listening is unknown, and lowers nothing.
  const cut = udpResult({ ...stream("up"), report: { ...report, observed: 3 } }, "IPv4")!;
  expect(cut.goodput).toBe((400 * 8e9) / 20e6);
});

test("what the receiver could not observe is unknown and not lost", () => {
  const up = stream("up");
  const cut = udpResult({ ...up, report: { ...up.report, observed: 5 } }, "IPv4")!;
  expect(cut.loss).toMatchObject({ lost: 1, network: 0, host: 1, unknown: 1 });
  expect(cut.loss.ratio!.estimate).toBe(1 / 5);
  const broken = udpResult({ ...stream("down"), outcome: "interrupted" }, "IPv4")!;
  expect([broken.sent, broken.received, broken.loss.lost, broken.loss.unknown]).toEqual([6, 4, 1, 1]);
  expect(udpResult(up, "IPv4")!.loss.unknown).toBeUndefined();
});

test("Wilson's interval has a width at zero", () => {
  expect(wilson(0, 200)).toMatchObject({ estimate: 0, lo: 0 });
  expect(wilson(0, 200).hi).toBeCloseTo(0.01885, 4);
  expect(wilson(10, 100).lo).toBeCloseTo(0.0552, 4);
  expect(wilson(10, 100).hi).toBeCloseTo(0.1744, 4);
});

test("with datagrams the record's latency is theirs, and the WebSocket's stands beside it", () => {
  const run = measured();
  const own = run.versions[0]!;
  own.datagrams = { ...own.idle!, transport: "datagrams", sent: own.idle!.trips.length + 2, unanswered: 2, notSent: 3 };
  own.streams = [stream("down"), stream("up")];
  const record = recordOf(run, around);
  const [version] = record.versions;
  expect(version!.latency!.pedigree.method).toBe("web-datagrams-latency");
  expect([version!.latency!.lost, version!.latency!.not_sent]).toEqual([2, 3]);
  expect(version!.latency_tcp!.pedigree.method).toBe("web-latency");
  expect(record.warnings.join()).not.toContain("loss was not measured");
  const read = readRecord(JSON.parse(JSON.stringify(record)))!;
  expect(figuresOf(read)[0]!.streams).toMatchObject([{ direction: "down", lost: 2, sent: 6 }, { direction: "up", lost: 2, sent: 6, jitter: 5 }]);
  expect(lossOf(read.versions[0]!)).toBeCloseTo(2 / (own.idle!.trips.length + 2));
  expect(csvOf([read])).toContain(",lost_down,2,");
});

test("without datagrams the record says why", () => {
  const run = measured();
  run.versions[0]!.noDatagrams = { reason: "blocked", waited: 12.1e9 };
  expect(recordOf(run, around).warnings.join()).toContain("no data channel came about within 12 s, so no datagrams; loss was not measured");
});
