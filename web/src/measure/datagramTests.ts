// The single tests of datagrams that a session can run, each in a data channel of its own: echoes, a stream either way, one transfer of
// a block matrix. The order of things is that of other tests, with the channel in the place of streams that attach.

import type { RoundTrip } from "../pure/delay";
import type { Transfer, Way } from "../pure/matrixPlan";
import { outcomeOfBytes } from "../pure/outcome";
import { countsDatagrams } from "../pure/report";
import { object, takeIn } from "../pure/shape";
import type { Channel, Channels } from "./channels";
import { rest } from "./crew";
import type { DatagramRun, EchoRun, MeasuredTransfer } from "./messages";
import { MOST_SLICES, numberOf, type ControlMessage, type Limits } from "./session";
import type { Line } from "./tests";
import { T } from "../strings";

export async function datagramEchoes(
  channels: Channels,
  line: Line,
  wish: { spacing: number; duration: number; onTrips: (trips: RoundTrip[]) => void },
): Promise<EchoRun> {
  const planned = capped(wish.duration + line.session.patience(LAST_ROUND_TRIPS, ECHO_SLACK_MS) * 1e6, line.limits);
  const duration = Math.max(Math.min(wish.duration, planned - LAST_ANSWER), planned / 2);
  return inChannel(channels, line, { kind: "udp_echo", length: ECHO_LENGTH, duration: planned }, async (channel, test) => {
    const started = line.session.next("started", test);
    line.session.tell({ type: "start", test });
    await started;
    const order = { do: "echo", flow: test, length: ECHO_LENGTH, spacing: wish.spacing, duration, roundTripMs: line.session.slowestMs } as const;
    const flow = channel.run(order, ({ trips }) => trips && wish.onTrips(trips));
    line.session.broken.catch(() => flow.stop());
    const result = await flow.result;
    if (result.did !== "echo") throw new Error(T.flow.noEchoes);
    return result.run;
  });
}

export interface StreamWish {
  length: number;
  /** ns from one to the next; null: as fast as congestion control lets it. */
  gap: number | null;
  packets: number | null;
  duration: number;
}

export async function datagramStream(channels: Channels, line: Line, direction: "down" | "up", wish: StreamWish): Promise<DatagramRun> {
  const { session, limits } = line;
  const [gap, duration] = [allowedGap(wish, limits), capped(wish.duration, limits)];
  const most = limits.bytes === null ? Number.POSITIVE_INFINITY : Math.floor(limits.bytes / wish.length);
  const packets = Math.min(wish.packets ?? Number.POSITIVE_INFINITY, most);
  const plan = {
    kind: "udp",
    direction: direction === "down" ? "reverse" : "forward",
    duration,
    length: wish.length,
    tick: TICK,
    ...(gap === null ? {} : { gap_ps: gap * 1000 }),
    ...(Number.isFinite(packets) ? { packets } : {}),
  };
  let discarded = 0;
  const run = await inChannel(
    channels,
    line,
    plan,
    async (channel, test) => {
      const end = session.next("finished", test, duration / 1e6 + session.patience(END_ROUND_TRIPS, END_MS));
      const limited = Number.isFinite(packets) ? packets : null;
      const way = direction === "down" ? await down(channel, line, test, duration, end) : await up(channel, line, test, { ...wish, gap, duration, packets: limited }, end);
      return { direction, length: wish.length, gap, ...way };
    },
    (packets) => (discarded = packets),
  );
  return { ...run, discarded };
}

type Ended = Omit<DatagramRun, "direction" | "length" | "gap" | "discarded">;

async function down(channel: Channel, line: Line, test: number, duration: number, end: Promise<ControlMessage>): Promise<Ended> {
  const flow = channel.run({ do: "receive", flow: test, duration, roundTripMs: line.session.slowestMs }, () => {});
  line.session.tell({ type: "start", test });
  const finished = await Promise.race([end, line.session.broken]);
  // The sender's last words may all have been lost; its report is here.
  const result = await Promise.race([flow.result, rest(line.session.patience(1, AFTER_MS)).then(() => flow.stop()).then(() => flow.result)]);
  if (result.did !== "receive") throw new Error(T.flow.nothingReceived);
  return { outcome: outcomeOf(finished), ...reportOf(finished, "sent"), page: result };
}

async function up(channel: Channel, line: Line, test: number, wish: StreamWish, end: Promise<ControlMessage>): Promise<Ended> {
  const started = line.session.next("started", test);
  const ticks: Record<string, unknown>[] = [];
  const quiet = line.session.listen((message) => {
    if (message.type === "receiver_ticks" && message.test === test) takeIn(ticks, message.ticks, object, MOST_SLICES);
  });
  try {
    line.session.tell({ type: "start", test });
    await started;
    const flow = channel.run({ do: "send", flow: test, ...wish, roundTripMs: line.session.slowestMs }, () => {});
    const [result, finished] = await Promise.race([Promise.all([flow.result, end]), line.session.broken]);
    if (result.did !== "send") throw new Error(T.flow.nothingSent);
    return { outcome: result.sent.broken ? "interrupted" : outcomeOf(finished), ...reportOf(finished, "received"), page: result, ticks };
  } finally {
    quiet();
  }
}

/** One transfer of a block matrix: each block is a datagram, as fast as congestion control lets it. */
export async function matrixDatagrams(channels: Channels, line: Line, way: Way, wanted: Transfer): Promise<MeasuredTransfer> {
  const packets = Math.ceil(wanted.bytes / wanted.block);
  const wish = { length: wanted.block, gap: null, packets, duration: line.session.patience(MATRIX_ROUND_TRIPS, PATIENCE_MS) * 1e6 };
  const run = await datagramStream(channels, line, way, wish);
  const { page, server } = matrixEnds(run, wanted.block);
  const sent = way === "up" ? page?.bytes : server?.bytes;
  return { ...wanted, way, outcome: outcomeOfBytes(run.outcome, wanted, sent), ...(page ? { page } : {}), ...(server ? { server } : {}) };
}

export function matrixEnds(run: DatagramRun, block: number): Pick<MeasuredTransfer, "page" | "server"> {
  const told = run.report ?? {};
  const count = numberOf(told[run.direction === "down" ? "sent" : "received"]);
  const elapsed = numberOf(told.elapsed);
  const first = run.direction === "up" && count > 0 ? block : 0;
  const server = { bytes: numberOf(told.bytes), calls: count, elapsed, first };
  const page =
    run.page.did === "send"
      ? { bytes: run.page.sent.bytes, calls: run.page.sent.sent, elapsed: run.page.sent.elapsed, first: 0 }
      : run.page.did === "receive"
        ? { bytes: run.page.totals.bytes, calls: run.page.reads, elapsed: run.page.totals.elapsed, first: run.page.totals.first }
        : undefined;
  return { ...(page ? { page } : {}), ...(run.report ? { server } : {}) };
}

/** Opens test and channel, and takes both down whatever happens. */
async function inChannel<T>(
  channels: Channels,
  line: Line,
  plan: Record<string, unknown>,
  work: (channel: Channel, test: number) => Promise<T>,
  closed: (discarded: number) => void = () => {},
): Promise<T> {
  const { session } = line;
  const test = line.nextTest();
  const opened = session.next("opened", test);
  session.tell({ type: "open", test, plan });
  await opened;
  let channel: Channel | undefined;
  try {
    channel = await channels.open(line, test);
    return await Promise.race([work(channel, test), session.broken]);
  } finally {
    if (session.alive) session.tell({ type: "stop", test });
    if (channel) closed(await channels.close(channel));
  }
}

/** With a cap of the owner's on the rate no stream may be unpaced. */
function allowedGap(wish: StreamWish, limits: Limits): number | null {
  if (limits.rate === null) return wish.gap;
  return Math.max(wish.gap ?? 0, Math.ceil((wish.length * 8e9) / limits.rate));
}

function capped(duration: number, limits: Limits): number {
  return limits.duration === null ? duration : Math.min(duration, limits.duration);
}

/** Nothing where the server's end could not begin, or did not report. */
function reportOf(finished: ControlMessage, counted: "sent" | "received"): Pick<DatagramRun, "report"> {
  const { as: _, ...report } = object(finished.report) ?? {};
  return countsDatagrams(report, counted) ? { report } : {};
}

function outcomeOf(finished: ControlMessage): DatagramRun["outcome"] {
  const { outcome } = finished;
  return outcome === "complete" || outcome === "interrupted" ? outcome : "failed";
}

const ECHO_LENGTH = 64;
const ECHO_SLACK_MS = 2000;
const LAST_ROUND_TRIPS = 5;
const LAST_ANSWER = 500e6;
const TICK = 100e6;
const PATIENCE_MS = 10_000;
const MATRIX_ROUND_TRIPS = 12;
const END_MS = 8000;
const END_ROUND_TRIPS = 6;
const AFTER_MS = 700;
