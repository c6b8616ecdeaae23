// Decides what is measured when: finds which addresses answer, waits in the server's queue, runs the phases of each IP version
// in turns, and comes back after a lost connection. What was measured is told phase by phase, so that a run that breaks off keeps
// everything that had been seen.

import { outcomeOfRun } from "../pure/outcome";
import { patienceFor } from "../pure/patience";
import { datagramsMs, matrixMs, quickMs, stepMs, STREAMS, transferMs } from "../pure/timePlan";
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
  private leaseUntil = Number.POSITIVE_INFINITY;
  private partialAt = performance.now();
  /** Steps of a matrix that are behind us. */
  private stepsDone = 0;
  /** The longest round trip of the sessions that are no more, ms. */
  private slowestMs = 0;

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
    const patienceMs = this.reachMs();
    const answered = await Promise.all(tried.map((candidate) => answer(candidate, this.spec.key, patienceMs)));
    const first = tried.findIndex((_, n) => answered[n] !== undefined);
    answered.forEach((session, n) => n !== first && session?.close());
    const [target, session] = [tried[first], answered[first]];
    if (!target || !session) {
      const reason = tried.length === 0 ? "noAddress" : "noAnswer";
      this.missing.push({ version, reason, tried: tried.map((each) => each.address), waited: patienceMs * 1e6 });
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
    const inDatagrams = () => datagramsMs(spec, this.roundTripMs());
    const inTransfer = () => transferMs(spec, this.roundTripMs());
    for (const target of targets) await this.phase(target, "latency", () => 0, (line) => this.idle(line, spec));
    if (spec.datagrams) for (const target of targets) await this.phase(target, "loss", inDatagrams, (line) => this.datagrams(line, spec));
    for (const target of targets) await this.phase(target, "down", inTransfer, (line) => this.moved(line, spec, "down"));
    for (const target of [...targets].reverse()) await this.phase(target, "up", inTransfer, (line) => this.moved(line, spec, "up"));
  }

  private async matrix(spec: MatrixSpec, targets: readonly Candidate[]): Promise<void> {
    const planned = spec.plan.length * targets.length;
    let done = 0;
    const keep = (version: Version, transfer: MeasuredTransfer) => {
      const measured = this.of(version);
      measured.matrix = [...(measured.matrix ?? []), transfer];
      done += 1;
      self.postMessage({ say: "transfer", version, done, planned, transfer });
      this.tellPartialSometimes();
    };
    for (const [n, wanted] of spec.plan.entries()) {
      const order = n % 2 === 0 ? targets : [...targets].reverse();
      for (const target of order) {
        const { version } = target;
        const inStep = () => stepMs(wanted, this.roundTripMs());
        const failed = await this.phase(target, spec.way, inStep, async (line) => {
          const isUdp = wanted.protocol === "udp";
          keep(version, isUdp ? await this.matrixDatagrams(line, spec, wanted) : await matrixTransfer(line, spec.way, wanted));
        });
        if (failed !== undefined) keep(version, { ...wanted, way: spec.way, outcome: "failed", reason: failed });
      }
      this.stepsDone = n + 1;
    }
  }

  /**
   * Runs one step over one version, and returns why it failed. A lost connection is waited for and the step repeated, at most twice; so is
   * a step for which the place in the queue was no more. `needsMs` is how long it takes.
   */
  private async phase(target: Candidate, phase: Phase, needsMs: () => number, step: (line: Line) => Promise<void>): Promise<string | undefined> {
    const version = this.of(target.version);
    for (let attempt = 0; ; attempt += 1) {
      if (this.cancelled) throw new Cancelled();
      try {
        const line = await this.line(target, phase === "latency" ? undefined : needsMs());
        this.announce(target.version, phase);
        await step(line);
        if (version.troubles) delete version.troubles[phase];
        return undefined;
      } catch (error) {
        if (this.cancelled) throw new Cancelled();
        this.note(version, phase, error);
        this.dropLine(target.version);
        const again = attempt < MOST_RETRIES && (error instanceof Refused ? isAboutReservation(error) : await this.isBack(target, error));
        if (!again) return messageOf(error);
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
    const run = await echoes.finished;
    this.of(version).idle = run;
    if (!line.session.alive) throw new ConnectionLost(T.session.lostIdle);
    this.tellPartial();
    if (run.broken !== undefined) throw new ConnectionLost(run.broken);
  }

  /** Echoes, then a stream each way at once; both take a few promille of the path. Where there are no datagrams the test goes on. */
  private async datagrams(line: Line, spec: QuickSpec): Promise<void> {
    const { version } = line.target;
    const measured = this.of(version);
    try {
      const onTrips = (trips: EchoRun["trips"]) => self.postMessage({ say: "trips", version, beside: "loss", trips });
      measured.datagrams = await datagramEchoes(this.channels, line, { spacing: IDLE_SPACING, duration: spec.idleMs * 1e6, onTrips });
      self.postMessage({ say: "loss", version, lost: measured.datagrams.unanswered, sent: measured.datagrams.sent - (measured.datagrams.unknown ?? 0) });
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
      if (known) throw new NoDatagrams(known.reason, known.waited);
      return await matrixDatagrams(this.channels, line, spec.way, wanted);
    } catch (error) {
      if (!(error instanceof NoDatagrams)) throw error;
      this.without(version, error);
      return { ...wanted, way: spec.way, outcome: "failed", reason: error.message };
    }
  }

  private without(version: Version, { reason, waited }: NoDatagrams): void {
    this.of(version).noDatagrams = { reason, waited };
    self.postMessage({ say: "noDatagrams", version, reason, waited });
  }

  private async moved(line: Line, spec: QuickSpec, direction: "down" | "up"): Promise<void> {
    const { version } = line.target;
    const result = await transfer(line, direction, {
      streams: STREAMS,
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
      streams: STREAMS,
      outcome: "interrupted",
      ticks: kept,
      bytes: kept.reduce((total, tick) => total + tick.bytes, 0),
      elapsed: kept[kept.length - 1]?.end ?? 0,
      calls: 0,
      streamEnds: [],
      capped: false,
    };
  }

  /** The session of a version, opened at need; where the step fills the path, with a place in the queue for as long as that takes. */
  private async line(target: Candidate, needsMs: number | undefined): Promise<Line> {
    let line = this.lines.get(target.version);
    if (!line?.session.alive) {
      const patienceMs = patienceFor(this.roundTripMs(), OPEN_ROUND_TRIPS, OPEN_MS);
      line = this.take(target, await Session.open(target.origin, { patienceMs, key: this.spec.key }));
    }
    if (needsMs === undefined) return line;
    if (performance.now() + needsMs > this.leaseUntil) this.release();
    if (!this.reserved.has(target.version)) await this.reserve(line);
    return line;
  }

  /** The longest round trip of all sessions, ms; 0 before there was one. */
  private knownMs(): number {
    return Math.max(this.slowestMs, ...[...this.lines.values()].map((line) => line.session.slowestMs));
  }

  /** The same, and before there was a session what the page knows, which may hold the time for connecting. */
  private roundTripMs(): number {
    return this.knownMs() || this.spec.roundTripMs;
  }

  private reachMs(): number {
    return Math.min(patienceFor(this.roundTripMs(), REACH_ROUND_TRIPS, REACH_MS), MOST_REACH_MS);
  }

  /** Gives the place in the queue back between two steps. All versions share it, so none may keep it. */
  private release(): void {
    for (const version of this.reserved) {
      const session = this.lines.get(version)?.session;
      if (session?.alive) session.tell({ type: "release" });
    }
    this.reserved.clear();
    this.reservation = undefined;
    this.leaseUntil = Number.POSITIVE_INFINITY;
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
      if (typeof answer.lease === "number") this.leaseUntil = performance.now() + answer.lease / 1e6;
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
    const roundTripMs = this.roundTripMs();
    const each = this.spec.kind === "quick" ? quickMs(this.spec, roundTripMs) : matrixMs(this.spec.plan.slice(this.stepsDone), roundTripMs);
    return Math.round(Math.min(each * versions, MOST_EXPECTED_MS) * 1e6);
  }

  private dropLine(version: Version): void {
    this.slowestMs = this.knownMs();
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
      const session = await answer(target, this.spec.key, this.reachMs());
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
    version.troubles = { ...version.troubles, [stage]: messageOf(error) };
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
    return {
      outcome: outcomeOfRun(this.versions, this.cancelled),
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
async function answer(target: Candidate, key: string, patienceMs: number): Promise<Session | undefined> {
  return Session.open(target.origin, { patienceMs, key }).catch(() => undefined);
}

/** The lease was over, or had ended before the test was asked for. */
function isAboutReservation(refused: Refused): boolean {
  return refused.code === "lease" || refused.code === "state";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const IDLE_SPACING = 10e6;
/** 100 a second of 200 bytes: a telephone call. */
const STREAM_LENGTH = 200;
const REACH_MS = 3000;
/** TCP, TLS, the upgrade of HTTP; and the time that is known may be that of a whole request. */
const REACH_ROUND_TRIPS = 4;
/** An address that leads nowhere takes all of it. */
const MOST_REACH_MS = 15_000;
const OPEN_MS = 6000;
const OPEN_ROUND_TRIPS = 6;
const LOOKING_MS = 1500;
const COMING_BACK_MS = 60_000;
const MOST_RETRIES = 2;
/** Others may be measuring for a long time; the person can cancel. */
const QUEUE_MS = 3600e3;
const MOST_EXPECTED_MS = 3600e3;
const PARTIAL_MS = 1000;
