// Decides what is measured when: finds which addresses answer, waits in the server's queue, runs the phases of each IP version
// in turns, and comes back after a lost connection. What was measured is told phase by phase, so that a run that breaks off keeps
// everything that had been seen.

import type { Candidate, Version } from "../pure/targets";
import { VERSIONS } from "../pure/targets";
import type { Tick } from "../pure/warmUp";
import { Channels, NoDatagrams } from "./channels";
import { clockStep, PauseWatch } from "./clock";
import { rest } from "./crew";
import { datagramEchoes, datagramStream, matrixDatagrams } from "./datagramTests";
import type { Transfer } from "../pure/matrixPlan";
import type { EchoRun, FromRunner, MatrixSpec, Measured, MeasuredTransfer, MeasuredVersion, Missing, Phase, QuickSpec, Spec, ToRunner } from "./messages";
import { ConnectionLost, numberOf, Refused, Session } from "./session";
import { Line, matrixTransfer, startEchoes, transfer } from "./tests";
import { T } from "../strings";

declare const self: {
  postMessage(message: FromRunner): void;
  onmessage: ((event: MessageEvent<ToRunner>) => void) | null;
  crossOriginIsolated: boolean;
};

export function listenForOrders(): void {
  let run: Run | undefined;
  self.onmessage = ({ data }) => {
    if (data.say === "cancel") {
      run?.cancel();
    } else if (data.say === "peer") {
      run?.channels.heard(data);
    } else {
      run = new Run(data.spec);
      void run.go();
    }
  };
}

class Cancelled extends Error {}

class Run {
  readonly channels = new Channels((request) => self.postMessage(request));
  private readonly begun = performance.now();
  private readonly watch = new PauseWatch();
  private readonly step = clockStep();
  private readonly versions: MeasuredVersion[] = [];
  private readonly lines = new Map<Version, Line>();
  private readonly missing: Missing[] = [];
  private lostConnections = 0;
  private cancelled = false;
  private reservation: string | undefined;
  private partialAt = performance.now();

  constructor(private readonly spec: Spec) {}

  /** Ends the run with what there is. */
  cancel(): void {
    this.cancelled = true;
    for (const line of this.lines.values()) line.session.close();
  }

  async go(): Promise<void> {
    try {
      const reached = await this.findTargets();
      self.postMessage({ say: "reached", reached, missing: this.missing, clockStep: this.step });
      if (this.spec.kind === "quick") await this.quick(this.spec, reached);
      else await this.matrix(this.spec, reached);
    } catch (error) {
      if (!(error instanceof Cancelled)) for (const version of this.versions) this.note(version, "run", error);
    }
    this.finish();
  }

  /** Of each version the first address in the list that welcomes us; its session is kept. */
  private async findTargets(): Promise<Candidate[]> {
    const wanted = VERSIONS.filter((version) => this.spec.versions.includes(version));
    const found = await Promise.all(wanted.map((version) => this.findTarget(version)));
    return found.flatMap((target) => target ?? []);
  }

  private async findTarget(version: Version): Promise<Candidate | undefined> {
    const tried = this.spec.candidates.filter((candidate) => candidate.version === version);
    const answered = await Promise.all(tried.map((candidate) => answer(candidate, this.spec.key)));
    const first = tried.findIndex((_, n) => answered[n] !== undefined);
    answered.forEach((session, n) => n !== first && session?.close());
    const [target, session] = [tried[first], answered[first]];
    if (!target || !session) {
      this.missing.push({ version, reason: tried.length === 0 ? "noAddress" : "noAnswer", tried: tried.map((each) => each.address) });
      return undefined;
    }
    this.versions.push({ version, address: target.address });
    this.versions.sort((a, b) => (a.version < b.version ? -1 : 1));
    this.take(target, session);
    return target;
  }

  private take(target: Candidate, session: Session): Line {
    const line = new Line(session, target, this.spec.limits);
    this.lines.set(target.version, line);
    this.reserved.delete(target.version);
    const version = this.of(target.version);
    version.greeting = session.greeting;
    version.responder = session.host;
    return line;
  }

  private finish(): void {
    for (const line of this.lines.values()) line.session.close();
    this.watch.stop();
    self.postMessage({ say: "done", measured: this.measured() });
  }

  /** Latency of both versions before anything fills the path, then down in one order and up in the other (ABBA). */
  private async quick(spec: QuickSpec, targets: readonly Candidate[]): Promise<void> {
    for (const target of targets) await this.phase(target, "latency", (line) => this.idle(line, spec));
    if (spec.datagrams) for (const target of targets) await this.phase(target, "loss", (line) => this.datagrams(line, spec));
    for (const target of targets) await this.phase(target, "down", (line) => this.moved(line, spec, "down"));
    for (const target of [...targets].reverse()) await this.phase(target, "up", (line) => this.moved(line, spec, "up"));
  }

  private async matrix(spec: MatrixSpec, targets: readonly Candidate[]): Promise<void> {
    const planned = spec.plan.length * targets.length;
    let done = 0;
    for (const [n, wanted] of spec.plan.entries()) {
      const order = n % 2 === 0 ? targets : [...targets].reverse();
      for (const target of order) {
        await this.phase(target, spec.way, async (line) => {
          const version = this.of(target.version);
          const measured = wanted.protocol === "udp" ? await this.matrixDatagrams(line, spec, wanted) : await matrixTransfer(line, spec.way, wanted);
          version.matrix = [...(version.matrix ?? []), measured];
          done += 1;
          self.postMessage({ say: "transfer", version: target.version, done, planned, transfer: measured });
          this.tellPartialSometimes();
        });
      }
    }
  }

  /** Runs one step over one version. A lost connection is waited for and the step repeated, at most twice. */
  private async phase(target: Candidate, phase: Phase, step: (line: Line) => Promise<void>): Promise<void> {
    const version = this.of(target.version);
    for (let attempt = 0; ; attempt += 1) {
      if (this.cancelled) throw new Cancelled();
      try {
        const line = await this.line(target, phase !== "latency");
        this.announce(target.version, phase);
        await step(line);
        delete version.trouble;
        return;
      } catch (error) {
        if (this.cancelled) throw new Cancelled();
        this.note(version, phase, error);
        this.dropLine(target.version);
        if (error instanceof Refused || attempt >= MOST_RETRIES || !(await this.isBack(target, error))) return;
      }
    }
  }

  private announce(version: Version, phase: Phase): void {
    if (this.spec.kind !== "quick") return;
    const short = phase === "latency" || phase === "loss";
    const duration = (short ? this.spec.idleMs : this.spec.transferMs) * 1e6;
    self.postMessage({ say: "phase", version, phase, duration });
  }

  private async idle(line: Line, spec: QuickSpec): Promise<void> {
    const { version } = line.target;
    const onTrips = (trips: EchoRun["trips"]) => self.postMessage({ say: "trips", version, beside: "latency", trips });
    const echoes = await startEchoes(line, IDLE_SPACING, spec.idleMs * 1e6, onTrips);
    this.of(version).idle = await echoes.finished;
    if (!line.session.alive) throw new ConnectionLost(T.session.lostIdle);
    this.tellPartial();
  }

  /** Echoes, then a stream each way at once; both take a few promille of the path. Where there are no datagrams the test goes on. */
  private async datagrams(line: Line, spec: QuickSpec): Promise<void> {
    const { version } = line.target;
    const measured = this.of(version);
    try {
      const onTrips = (trips: EchoRun["trips"]) => self.postMessage({ say: "trips", version, beside: "loss", trips });
      measured.datagrams = await datagramEchoes(this.channels, line, { spacing: IDLE_SPACING, duration: spec.idleMs * 1e6, onTrips });
      self.postMessage({ say: "loss", version, lost: measured.datagrams.unanswered, sent: measured.datagrams.sent });
      if (spec.streamMs > 0) {
        const wish = { length: STREAM_LENGTH, gap: IDLE_SPACING, packets: null, duration: spec.streamMs * 1e6 };
        measured.streams = await Promise.all((["down", "up"] as const).map((way) => datagramStream(this.channels, line, way, wish)));
      }
    } catch (error) {
      if (!(error instanceof NoDatagrams)) throw error;
      this.without(version, error);
    }
    this.tellPartial();
  }

  /** Once it is known that a version has no datagrams nobody waits for them again. */
  private async matrixDatagrams(line: Line, spec: MatrixSpec, wanted: Transfer): Promise<MeasuredTransfer> {
    const { version } = line.target;
    try {
      const known = this.of(version).noDatagrams;
      if (known) throw new NoDatagrams(known);
      return await matrixDatagrams(this.channels, line, spec.way, wanted);
    } catch (error) {
      if (!(error instanceof NoDatagrams)) throw error;
      this.without(version, error);
      const nothing = { bytes: 0, calls: 0, elapsed: 0, first: 0 };
      return { ...wanted, way: spec.way, outcome: "failed", reason: error.message, page: nothing, retransmits: 0 };
    }
  }

  private without(version: Version, { reason }: NoDatagrams): void {
    this.of(version).noDatagrams = reason;
    self.postMessage({ say: "noDatagrams", version, reason });
  }

  private async moved(line: Line, spec: QuickSpec, direction: "down" | "up"): Promise<void> {
    const { version } = line.target;
    const result = await transfer(line, direction, {
      streams: direction === "down" ? DOWN_STREAMS : UP_STREAMS,
      duration: spec.transferMs * 1e6,
      onTicks: (ticks) => {
        this.keepTicks(version, direction, ticks);
        this.tellPartialSometimes();
        self.postMessage({ say: "ticks", version, direction, ticks });
      },
      onTrips: (trips) => self.postMessage({ say: "trips", version, beside: direction, trips }),
    });
    this.of(version)[direction] = result;
    this.tellPartial();
    if (result.outcome === "failed") throw new ConnectionLost(result.reason ?? T.transfer.brokeOff);
  }

  /** A partial transfer, in case the connection breaks before it ends: what the receiver had counted by then. */
  private keepTicks(version: Version, direction: "down" | "up", ticks: Tick[]): void {
    const measured = this.of(version);
    const before = measured[direction]?.outcome === "interrupted" ? measured[direction].ticks : [];
    const first = ticks[0];
    const restarted = first !== undefined && before.length > 0 && first.end < before[before.length - 1]!.end;
    const kept = restarted ? ticks : [...before, ...ticks];
    measured[direction] = {
      direction,
      streams: direction === "down" ? DOWN_STREAMS : UP_STREAMS,
      outcome: "interrupted",
      ticks: kept,
      bytes: kept.reduce((total, tick) => total + tick.bytes, 0),
      elapsed: kept[kept.length - 1]?.end ?? 0,
      calls: 0,
      streamEnds: [],
      capped: false,
    };
  }

  /** The session of a version, opened at need; with a place in the queue where the step fills the path. */
  private async line(target: Candidate, reserved: boolean): Promise<Line> {
    let line = this.lines.get(target.version);
    if (!line?.session.alive) line = this.take(target, await Session.open(target.origin, { key: this.spec.key }));
    if (reserved && !this.reserved.has(target.version)) await this.reserve(line);
    return line;
  }

  private readonly reserved = new Set<Version>();

  private async reserve(line: Line): Promise<void> {
    const { session, target } = line;
    const quiet = session.listen((message) => {
      if (message.type !== "queued") return;
      const [place, wait] = [numberOf(message.place), numberOf(message.expected_wait)];
      self.postMessage({ say: "queued", version: target.version, place, wait });
    });
    try {
      const admitted = session.next("admitted", undefined, QUEUE_MS);
      const join = this.reservation === undefined ? {} : { join: this.reservation };
      session.tell({ type: "reserve", expected: this.expected(), ...join });
      const answer = await admitted;
      if (typeof answer.reservation === "string") this.reservation = answer.reservation;
      this.reserved.add(target.version);
    } catch (error) {
      const outdated = error instanceof Refused && error.code === "lease" && this.reservation !== undefined;
      if (!outdated) throw error;
      this.reservation = undefined;
      await this.reserve(line);
    } finally {
      quiet();
    }
  }

  private expected(): number {
    const versions = Math.max(1, this.versions.length);
    if (this.spec.kind === "quick") {
      const { transferMs, idleMs, streamMs } = this.spec;
      return versions * (2 * (transferMs + OVERHEAD_MS) + idleMs + streamMs + OVERHEAD_MS) * 1e6;
    }
    const steps = this.spec.plan.map(stepMs).reduce((total, each) => total + each, 0);
    return Math.min(steps * versions, 3600e3) * 1e6;
  }

  private dropLine(version: Version): void {
    this.lines.get(version)?.session.close();
    this.lines.delete(version);
    this.reserved.delete(version);
    if (this.lines.size === 0) this.reservation = undefined;
  }

  /** Waits until the server answers again; false if it does not within a minute. */
  private async isBack(target: Candidate, error: unknown): Promise<boolean> {
    this.lostConnections += 1;
    self.postMessage({ say: "lost", reason: messageOf(error) });
    this.tellPartial();
    const until = performance.now() + COMING_BACK_MS;
    while (performance.now() < until && !this.cancelled) {
      const session = await answer(target, this.spec.key);
      if (session) {
        this.take(target, session);
        self.postMessage({ say: "back" });
        return true;
      }
      await rest(LOOKING_MS);
    }
    return false;
  }

  private note(version: MeasuredVersion, stage: string, error: unknown): void {
    version.trouble = { stage, reason: messageOf(error) };
  }

  private of(version: Version): MeasuredVersion {
    const found = this.versions.find((each) => each.version === version);
    if (!found) throw new Error(T.session.notMeasured(version));
    return found;
  }

  private tellPartial(): void {
    self.postMessage({ say: "partial", measured: this.measured() });
  }

  /** It is written to the device each time, which costs what is being measured. */
  private tellPartialSometimes(): void {
    const now = performance.now();
    if (now - this.partialAt < PARTIAL_MS) return;
    this.partialAt = now;
    this.tellPartial();
  }

  private measured(): Measured {
    const troubled = this.versions.some((version) => version.trouble !== undefined);
    const nothing = this.versions.every((version) => !version.idle && !version.down && !version.up && !version.matrix);
    return {
      outcome: nothing ? "failed" : this.cancelled || troubled ? "interrupted" : "complete",
      cancelled: this.cancelled,
      elapsed: Math.round((performance.now() - this.begun) * 1e6),
      versions: this.versions,
      missing: this.missing,
      instrument: {
        clockStep: this.step,
        isolated: self.crossOriginIsolated === true,
        pauses: this.watch.pauses,
        longestPause: this.watch.longest,
        lostConnections: this.lostConnections,
      },
    };
  }
}

/** A session says more than a page that was fetched: this very address speaks the protocol, to this page. */
async function answer(target: Candidate, key: string): Promise<Session | undefined> {
  return Session.open(target.origin, { patienceMs: REACH_MS, key }).catch(() => undefined);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Datagrams need a channel first, and go as fast as SCTP lets them on a lossy path. */
function stepMs(step: Transfer): number {
  return step.protocol === "udp" ? CHANNEL_MS + step.bytes / LOSSY_BYTES_PER_MS : MATRIX_STEP_MS;
}

/** Parallel connections of a transfer: enough that one lost segment does not halve the rate, few enough for a phone's CPU. */
const DOWN_STREAMS = 3;
const UP_STREAMS = 3;
const IDLE_SPACING = 10e6;
/** 100 a second of 200 bytes: a telephone call. */
const STREAM_LENGTH = 200;
const REACH_MS = 3000;
const LOOKING_MS = 1500;
const COMING_BACK_MS = 60_000;
const MOST_RETRIES = 2;
/** Others may be measuring for a long time; the person can cancel. */
const QUEUE_MS = 3600e3;
/** Opening, attaching, closing of a transfer on a slow path. */
const OVERHEAD_MS = 2500;
const MATRIX_STEP_MS = 300;
const PARTIAL_MS = 1000;
const CHANNEL_MS = 1500;
/** 2 Mbit/s. */
const LOSSY_BYTES_PER_MS = 250;
