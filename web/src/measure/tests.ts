// The single tests that a session can run: echoes, a transfer down, a transfer up, one transfer of a block matrix.
//
// The order of things is docs/protocol.md §3: open, opened, attach, ready, start, started, finished.

import { arrivals, type SenderTick } from "../pure/arrivals";
import { BLOCK, reachesRate } from "../pure/caps";
import type { RoundTrip } from "../pure/delay";
import type { Transfer, Way } from "../pure/matrixPlan";
import { outcomeOfBytes, outcomeOfDown, type Received } from "../pure/outcome";
import { fields, list, number, numbers, object, takeIn, type Reader } from "../pure/shape";
import { countsOf } from "../pure/report";
import { sum } from "../pure/statistics";
import type { Candidate } from "../pure/targets";
import type { Tick } from "../pure/warmUp";
import { Echoer, Mover, within } from "./crew";
import type { EchoRun, EndCount, FromMover, MeasuredTransfer, TransferRun } from "./messages";
import { ConnectionLost, MOST_SLICES, numberOf, Refused, Session, type ControlMessage, type Limits } from "./session";
import { T } from "../strings";

/** A session with the address that it leads to. Test numbers are unique in it. */
export class Line {
  private tests = 0;

  constructor(
    readonly session: Session,
    readonly target: Candidate,
    readonly limits: Limits,
  ) {}

  nextTest(): number {
    this.tests += 1;
    return this.tests;
  }

  url(path: string, test: number, stream: number, socket: boolean): string {
    const origin = socket ? this.target.origin.replace(/^http/, "ws") : this.target.origin;
    return `${origin}${path}?token=${this.session.token}&test=${test}&stream=${stream}`;
  }
}

/** Echoes that run until they are stopped or their time is over. */
export interface Echoes {
  finished: Promise<EchoRun>;
  stop(): void;
}

export async function startEchoes(
  line: Line,
  spacing: number,
  duration: number,
  onTrips: (trips: RoundTrip[]) => void,
): Promise<Echoes> {
  const { session } = line;
  const test = line.nextTest();
  const echoer = new Echoer(onTrips);
  const planned = capped(duration + session.patience(LAST_ROUND_TRIPS, ECHO_SLACK_MS) * 1e6, line.limits.duration);
  const allowed = Math.max(Math.min(duration, planned - LAST_ANSWER), planned / 2);
  try {
    const opened = session.next("opened", test);
    session.tell({ type: "open", test, plan: { kind: "tcp_echo", length: ECHO_LENGTH, duration: planned } });
    await opened;
    const ready = session.next("ready", test);
    echoer.tell({ say: "open", url: line.url("/echo", test, 0, true) });
    await Promise.all([within(echoer.open, session.patience(ATTACH_ROUND_TRIPS, ATTACH_MS), T.session.echoNotOpen), ready]);
    const started = session.next("started", test);
    session.tell({ type: "start", test });
    await started;
  } catch (error) {
    echoer.dismiss();
    throw error;
  }
  echoer.tell({ say: "go", length: ECHO_LENGTH, spacing, duration: allowed, roundTripMs: session.slowestMs });
  session.broken.catch(() => echoer.tell({ say: "stop" }));
  const finished = echoer.ended.then(({ run, broken }) => {
    echoer.dismiss();
    if (session.alive) session.tell({ type: "stop", test });
    return broken === null ? run : { ...run, broken };
  });
  return { finished, stop: () => echoer.tell({ say: "stop" }) };
}

export interface TransferWish {
  streams: number;
  duration: number;
  onTicks: (ticks: Tick[]) => void;
  onTrips: (trips: RoundTrip[]) => void;
}

/** A transfer of some seconds with echoes beside it. */
export async function transfer(line: Line, direction: "down" | "up", wish: TransferWish): Promise<TransferRun> {
  const streams = Math.min(wish.streams, line.limits.streams ?? wish.streams);
  const duration = capped(wish.duration, line.limits.duration);
  const around = line.session.patience(TRANSFER_ROUND_TRIPS, LOADED_AFTER_MS) * 1e6;
  const echoes = await startEchoes(line, LOADED_SPACING, duration + around, wish.onTrips);
  const plan = { kind: "tcp", streams, duration, length: BLOCK, tick: TICK, ...caps(line.limits) };
  const run = direction === "down" ? await down(line, plan, wish.onTicks) : await up(line, plan, wish.onTicks);
  echoes.stop();
  run.loaded = await echoes.finished;
  run.capped = line.limits.rate !== null && reachesRate(run.ticks, line.limits.rate);
  return run;
}

interface Plan {
  kind: string;
  streams: number;
  duration: number;
  length: number;
  tick: number;
  bytes?: number;
  rate?: number;
  nodelay?: boolean;
}

async function down(line: Line, plan: Plan, onTicks: (ticks: Tick[]) => void): Promise<TransferRun> {
  const ticks: Tick[] = [];
  const mover = new Mover((fresh) => {
    const told = fresh.map((tick) => ({ ...tick, streams: plan.streams }));
    ticks.push(...told);
    onTicks(told);
  });
  const server = new ServerSide(line.session);
  try {
    const test = await opened(line, { ...plan, direction: "reverse" });
    const ready = line.session.next("ready", test);
    const urls = streamsOf(plan).map((stream) => line.url("/data/down", test, stream, false));
    const { slowestMs: roundTripMs } = line.session;
    mover.tell({ say: "receive", urls, duration: plan.duration, total: plan.bytes ?? null, roundTripMs });
    await Promise.race([ready, mover.moved.then(brokenEarly)]);
    const ended = server.finished(test, plan.duration);
    line.session.tell({ type: "start", test });
    const moved = await Promise.race([
      within(mover.moved, plan.duration / 1e6 + line.session.patience(END_ROUND_TRIPS, END_MS), T.transfer.endless),
      line.session.broken,
    ]);
    if (moved.say !== "received") throw new Error(T.transfer.nothing);
    const finished = await ended.catch((error: unknown) => {
      // The server ended it for the sake of the next one in its queue: that is no end of this test, which can be run again.
      if (error instanceof Refused && error.code === "lease" && !isWhole(moved, plan)) throw error;
      return undefined;
    });
    const told = finished && outcomeOf(finished);
    const whole = told === "complete" && plan.bytes === undefined;
    const { outcome, early } = outcomeOfDown(moved, { ...plan, roundTrip: line.session.slowestMs * 1e6 }, told);
    const reason = moved.broken ?? (early ? T.transfer.cut : undefined);
    const arrived = whole ? arrivals(server.senderTicks, plan.duration, plan.streams) : undefined;
    return {
      ...emptyRun("down", plan.streams),
      ...(arrived ? { arrived } : {}),
      senderTicks: server.senderTicks,
      outcome,
      ...(reason === undefined ? {} : { reason }),
      ticks,
      bytes: moved.bytes,
      elapsed: moved.elapsed,
      calls: moved.reads,
      first: moved.first,
      ...server.told(finished),
    };
  } finally {
    server.stop();
    mover.dismiss();
  }
}

async function up(line: Line, plan: Plan, onTicks: (ticks: Tick[]) => void): Promise<TransferRun> {
  const mover = new Mover(() => {});
  const server = new ServerSide(line.session, onTicks);
  try {
    const test = await opened(line, { ...plan, direction: "forward" });
    const ready = line.session.next("ready", test);
    mover.tell({ say: "attach", urls: streamsOf(plan).map((stream) => line.url("/data/up", test, stream, true)) });
    await Promise.all([within(mover.attached, line.session.patience(ATTACH_ROUND_TRIPS, ATTACH_MS), T.transfer.notOpen), ready]);
    const started = line.session.next("started", test);
    line.session.tell({ type: "start", test });
    await started;
    const ended = server.finished(test, plan.duration);
    const { slowestMs: roundTripMs } = line.session;
    mover.tell({ say: "send", length: plan.length, duration: plan.duration, total: plan.bytes ?? null, rate: plan.rate ?? null, roundTripMs });
    const [moved, finished] = await Promise.race([Promise.all([mover.moved, ended]), line.session.broken]);
    const told = server.told(finished);
    const report = told.report && countsOf(told.report);
    return {
      ...emptyRun("up", plan.streams),
      outcome: outcomeOf(finished),
      ticks: server.ticks,
      ...(report ?? counted(server.ticks)),
      handedOver: moved.bytes,
      confirmed: moved.elapsed,
      calls: moved.say === "sent" ? moved.messages : 0,
      ...told,
    };
  } finally {
    server.stop();
    mover.dismiss();
  }
}

function isWhole(moved: Received, plan: Plan): boolean {
  return outcomeOfDown(moved, { ...plan, roundTrip: 0 }, undefined).outcome === "complete";
}

/** What a receiver had told by slices, where its report is missing. */
function counted(ticks: readonly Tick[]): Pick<TransferRun, "bytes" | "elapsed"> {
  const last = ticks[ticks.length - 1];
  return last ? { bytes: sum(ticks.map((tick) => tick.bytes)), elapsed: last.end } : { elapsed: 0 };
}

/** One transfer of a block matrix, alone. */
export async function matrixTransfer(line: Line, way: Way, wanted: Transfer): Promise<MeasuredTransfer> {
  const plan: Plan = {
    kind: "tcp",
    streams: 1,
    duration: capped(line.session.patience(MATRIX_ROUND_TRIPS, PATIENCE_MS) * 1e6, line.limits.duration),
    length: wanted.block,
    tick: TICK,
    bytes: wanted.bytes,
    ...(wanted.protocol === "tcp_nodelay" ? { nodelay: true } : {}),
    ...(line.limits.rate === null ? {} : { rate: line.limits.rate }),
  };
  const run = way === "down" ? await down(line, plan, () => {}) : await up(line, plan, () => {});
  return matrixCounts(wanted, way, run);
}

export function matrixCounts(wanted: Transfer, way: Way, run: TransferRun): MeasuredTransfer {
  const end = run.streamEnds[0] ?? {};
  const report = run.report && countsOf(run.report);
  const server: EndCount | undefined = report && { ...report, calls: numberOf(end.calls), first: numberOf(end.first_read) };
  const page: EndCount = {
    bytes: (way === "up" ? run.handedOver : run.bytes) ?? 0,
    calls: run.calls,
    elapsed: way === "up" ? (run.confirmed ?? 0) : run.elapsed,
    first: way === "up" ? 0 : (run.first ?? 0),
  };
  return {
    ...wanted,
    way,
    outcome: outcomeOfBytes(run.outcome, wanted, way === "down" ? page.bytes : server?.bytes),
    ...(run.reason === undefined ? {} : { reason: run.reason }),
    page,
    ...(server ? { server } : {}),
    // Only a sender knows, and no page does.
    ...(way === "down" && typeof end.retransmits === "number" ? { retransmits: end.retransmits } : {}),
  };
}

/** What the server says about a running test: slices, stream ends and the final report; of each so many at most. */
class ServerSide {
  readonly ticks: Tick[] = [];
  readonly senderTicks: SenderTick[] = [];
  private readonly streamEnds: Record<string, unknown>[] = [];
  private readonly quiet: () => void;

  constructor(
    private readonly session: Session,
    onTicks: (ticks: Tick[]) => void = () => {},
  ) {
    this.quiet = session.listen((message) => {
      if (message.type === "receiver_ticks") {
        onTicks(takeIn(this.ticks, message.ticks, receiverTick, MOST_SLICES));
      } else if (message.type === "sender_ticks") {
        takeIn(this.senderTicks, message.ticks, senderTick, MOST_SLICES);
      } else if (message.type === "stream_ends") {
        takeIn(this.streamEnds, message.streams, object, MOST_STREAMS);
      }
    });
  }

  finished(test: number, duration: number): Promise<ControlMessage> {
    return this.session.next("finished", test, duration / 1e6 + this.session.patience(END_ROUND_TRIPS, END_MS));
  }

  told(finished: ControlMessage | undefined): Pick<TransferRun, "report" | "streamEnds"> {
    const given = object(finished?.report);
    // Where its end could not begin, the server's report stands for nobody.
    const report = given && countsOf(given) ? given : undefined;
    const within = list(object, MOST_STREAMS)(report?.streams) ?? [];
    return { ...(report ? { report } : {}), streamEnds: this.streamEnds.length > 0 ? this.streamEnds : within };
  }

  stop(): void {
    this.quiet();
  }
}

async function opened(line: Line, plan: Plan & { direction: string }): Promise<number> {
  const test = line.nextTest();
  const answer = line.session.next("opened", test);
  line.session.tell({ type: "open", test, plan });
  await answer;
  return test;
}

/** Before the start nothing can have been moved, so whatever ended then was refused. */
function brokenEarly(moved: FromMover): never {
  throw new ConnectionLost(("broken" in moved && moved.broken) || T.transfer.early);
}

const receiverTick: Reader<Tick> = numbers("end", "length", "bytes", "streams");
/** What the server's system did not tell is absent. */
export const senderTick: Reader<SenderTick> = fields(
  { end: number, length: number, bytes: number },
  { retransmits: number, rtt: number, cwnd: number, acked: number, held: number },
);

function outcomeOf(finished: ControlMessage): TransferRun["outcome"] {
  const outcome = finished.outcome;
  return outcome === "complete" || outcome === "interrupted" ? outcome : "failed";
}

function emptyRun(direction: "down" | "up", streams: number): TransferRun {
  return { direction, streams, outcome: "failed", ticks: [], elapsed: 0, calls: 0, streamEnds: [], capped: false };
}

function streamsOf(plan: Plan): number[] {
  return Array.from({ length: plan.streams }, (_, stream) => stream);
}

function caps(limits: Limits): { bytes?: number; rate?: number } {
  return { ...(limits.bytes === null ? {} : { bytes: limits.bytes }), ...(limits.rate === null ? {} : { rate: limits.rate }) };
}

/** The server refuses what exceeds a cap of its owner, it never trims. */
function capped(duration: number, cap: number | null): number {
  return cap === null ? duration : Math.min(duration, cap);
}

const ECHO_LENGTH = 64;
/** Answers to the last requests come after the requests' time. */
const ECHO_SLACK_MS = 2000;
/** One that is lost once is answered within these. */
const LAST_ROUND_TRIPS = 5;
/** Where a cap of the owner's leaves less: so long before the end nothing is asked any more. */
const LAST_ANSWER = 500e6;
/** 20 a second of 64 bytes take 10 to 20 kbit/s with all headers: two promille of a path of 10 Mbit/s. */
const LOADED_SPACING = 50e6;
/** Opening the transfer takes some round trips, during which the echoes already run. */
const LOADED_AFTER_MS = 3000;
/** From asking for a transfer to its first byte, and from its last one to the server's report. */
const TRANSFER_ROUND_TRIPS = 8;
const TICK = 100e6;
const PATIENCE_MS = 10_000;
/** Slow start carries the largest cell in five; each loss costs two more. */
const MATRIX_ROUND_TRIPS = 12;
const ATTACH_MS = 6000;
/** TCP, TLS, the head and its answer; and a segment that is lost once. */
const ATTACH_ROUND_TRIPS = 6;
const END_MS = 8000;
const END_ROUND_TRIPS = 6;
const MOST_STREAMS = 512;
