// The running measurement as the page shows it. It outlives the views: whoever looks at results meanwhile comes back to it.

import { Helpers, workerOf } from "../measure/helpers";
import { Peers } from "../measure/peers";
import type { FromRunner, Measured, MeasuredTransfer, Missing, NoChannel, Phase, Spec, ToRunner } from "../measure/messages";
import { capsTold } from "../pure/caps";
import { shareOf } from "../pure/figures";
import type { Transfer, Way } from "../pure/matrixPlan";
import { partialRecordOf, recordOf, type Circumstances, type NetRecord } from "../pure/record";
import { median } from "../pure/statistics";
import { candidates, VERSIONS, type Version } from "../pure/targets";
import { rateOf, type Tick } from "../pure/warmUp";
import type { About } from "./about";
import { keep, keepForLater, type Entry } from "./database";
import { device } from "./device";
import { key } from "./key";
import { Observable } from "./observable";
import { turn } from "./tabs";

export type Stage = "idle" | "looking" | "queued" | "running" | "lost" | "done" | "busyElsewhere" | "unreachable";

export interface VersionLive {
  latency?: number;
  /** 0 to 1. */
  loss?: number;
  down?: number;
  up?: number;
}

export interface Live {
  stage: Stage;
  kind: "quick" | "matrix";
  phase?: Phase;
  version?: Version;
  queue?: { place: number; wait: number };
  figures: Partial<Record<Version, VersionLive>>;
  /** Seconds since the phase began, and ns or bit/s. */
  curve: { phase: Phase; version: Version; x: number[]; y: number[] };
  /** Of the runner's clock, ns; 0 while it is not known. */
  clockStep: number;
  missing: Missing[];
  noDatagrams: ({ version: Version } & NoChannel)[];
  progress: { done: number; planned: number };
  transfers: { version: Version; transfer: MeasuredTransfer }[];
  record?: NetRecord;
  problem?: string;
}

const IDLE: Live = {
  stage: "idle",
  kind: "quick",
  figures: {},
  curve: { phase: "latency", version: "IPv4", x: [], y: [] },
  clockStep: 0,
  missing: [],
  noDatagrams: [],
  progress: { done: 0, planned: 0 },
  transfers: [],
};

export const live = new Observable<Live>(IDLE);

export interface QuickWish {
  label: string;
  versions: readonly Version[];
  length: "full" | "short";
  about: About;
  keepAs: Omit<Entry, "id" | "record">;
}

export interface MatrixWish {
  label: string;
  way: Way;
  plan: Transfer[];
  options: Record<string, string>;
  about: About;
}

/** Resolves with the record, or undefined where nothing was measured at all. */
export function measureQuick(wish: QuickWish): Promise<NetRecord | undefined> {
  const lengths = wish.length === "full" ? { idleMs: 2000, transferMs: 4000, streamMs: 2000 } : { idleMs: 1000, transferMs: 2000, streamMs: 0 };
  const spec: Spec = { kind: "quick", ...reach(wish.about), versions: [...wish.versions], datagrams: offersDatagrams(wish.about), ...lengths };
  const options = { from: "web page", transfer: `${lengths.transferMs / 1000}s` };
  return measure(spec, { command: "test", label: wish.label, options, keepAs: wish.keepAs });
}

export function measureMatrix(wish: MatrixWish): Promise<NetRecord | undefined> {
  const spec: Spec = { kind: "matrix", ...reach(wish.about), versions: [...VERSIONS], way: wish.way, plan: wish.plan };
  return measure(spec, { command: "matrix", label: wish.label, options: wish.options, keepAs: {} });
}

export function cancel(): void {
  tell?.({ say: "cancel" });
}

export function isMeasuring(stage: Stage): boolean {
  return stage === "looking" || stage === "queued" || stage === "running" || stage === "lost";
}

export function clear(): void {
  if (!isMeasuring(live.value.stage)) live.set(IDLE);
}

let tell: ((order: ToRunner) => void) | undefined;

/** The one transport of datagrams that this page speaks. */
export function offersDatagrams(about: About): boolean {
  return about.datagrams.includes("webrtc");
}

function reach(about: About): Pick<Spec, "candidates" | "limits" | "key" | "roundTripMs"> {
  return { candidates: candidates(location, about.addresses), limits: about.limits, key: key.value, roundTripMs: about.answeredMs };
}

interface Purpose {
  command: "test" | "matrix";
  label: string;
  options: Record<string, string>;
  keepAs: Omit<Entry, "id" | "record">;
}

async function measure(spec: Spec, purpose: Purpose): Promise<NetRecord | undefined> {
  if (isMeasuring(live.value.stage)) return undefined;
  live.set({ ...IDLE, stage: "looking", kind: spec.kind });
  const release = await turn.take();
  if (!release) {
    live.set({ ...IDLE, stage: "busyElsewhere", kind: spec.kind });
    return undefined;
  }
  const [watch, awake] = [new VisibilityWatch(), await stayAwake()];
  const begun = { startedAt: Date.now(), random: crypto.getRandomValues(new Uint8Array(10)) };
  const around = (measured: Measured, hidden: number) => ({ ...surroundings(purpose), ...begun, hidden, caps: capsTold(spec, measured.versions) });
  // A page that is killed in the middle finds what there was when it opens again.
  const keepPartial = (measured: Measured) => {
    const record = partialRecordOf(measured, around(measured, watch.soFar));
    if (record) void keepForLater({ id: record.id, record, ...purpose.keepAs });
  };
  try {
    const measured = await run(spec, keepPartial);
    return await conclude(measured, purpose, around(measured, watch.stop()));
  } finally {
    release();
    watch.stop();
    awake();
  }
}

function surroundings({ command, label, options }: Purpose): Pick<Circumstances, "command" | "label" | "options" | "host" | "port" | "prober"> {
  const port = Number(location.port) || (location.protocol === "https:" ? 443 : 80);
  return { command, label, options, host: location.hostname, port, prober: device() };
}

function run(spec: Spec, onPartial: (measured: Measured) => void): Promise<Measured> {
  const [worker, helpers] = [workerOf("runner"), new Helpers()];
  tell = (order) => worker.postMessage(order);
  const peers = new Peers((answer, handed) => worker.postMessage(answer, handed ?? []));
  return new Promise((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<FromRunner>) => {
      if (data.say === "peer") {
        peers.heard(data);
      } else if (data.say === "hire" || data.say === "dismiss") {
        helpers.heard(data);
      } else if (data.say === "done") {
        peers.closeAll();
        helpers.dismissAll();
        worker.terminate();
        tell = undefined;
        resolve(data.measured);
      } else if (data.say === "partial") {
        onPartial(data.measured);
      } else {
        show(data);
      }
    };
    tell?.({ say: "run", spec });
  });
}

async function conclude(measured: Measured, purpose: Purpose, around: Circumstances): Promise<NetRecord | undefined> {
  const nothing = measured.outcome === "failed";
  const trouble = measured.versions.flatMap(({ troubles, matrix }) => [...Object.values(troubles ?? {}), ...(matrix ?? []).flatMap((run) => run.reason ?? [])])[0];
  if (nothing && measured.cancelled) {
    live.set(IDLE);
    return undefined;
  }
  if (nothing) {
    live.set({ ...live.value, stage: "unreachable", missing: measured.missing, ...(trouble === undefined ? {} : { problem: trouble }) });
    return undefined;
  }
  const record = recordOf(measured, around);
  await keep({ id: record.id, record, ...purpose.keepAs });
  live.set({ ...live.value, stage: "done", record, missing: measured.missing });
  return record;
}

type Shown = Exclude<FromRunner, { say: "done" | "partial" | "peer" | "hire" | "dismiss" }>;

function show(event: Shown): void {
  const now = live.value;
  switch (event.say) {
    case "reached":
      return live.set({ ...now, missing: event.missing, clockStep: event.clockStep });
    case "queued":
      return live.set({ ...now, stage: "queued", version: event.version, queue: { place: event.place, wait: event.wait } });
    case "phase":
      return live.set(phaseBegun(now, event.version, event.phase));
    case "trips":
      if (event.beside !== "latency" && event.beside !== "loss") return undefined;
      return live.set(tripsCame(now, event.version, event.trips));
    case "ticks":
      return live.set(ticksCame(now, event.version, event.direction, event.ticks));
    case "loss":
      return live.set(withFigure(now, event.version, shareOf("loss", event.lost, event.sent)));
    case "noDatagrams":
      if (now.noDatagrams.some((each) => each.version === event.version)) return undefined;
      return live.set({ ...now, noDatagrams: [...now.noDatagrams, { version: event.version, reason: event.reason, waited: event.waited }] });
    case "lost":
      return live.set({ ...now, stage: "lost", problem: event.reason });
    case "back":
      return live.set({ ...now, stage: "running" });
    case "transfer":
      return live.set({
        ...now,
        stage: "running",
        progress: { done: event.done, planned: event.planned },
        transfers: [...now.transfers, { version: event.version, transfer: event.transfer }],
      });
  }
}

function phaseBegun(now: Live, version: Version, phase: Phase): Live {
  const { queue: _, ...rest } = now;
  return { ...rest, stage: "running", phase, version, curve: { phase, version, x: [], y: [] } };
}

function tripsCame(now: Live, version: Version, trips: { sentAt: number; rtt: number }[]): Live {
  const x = [...now.curve.x, ...trips.map((trip) => trip.sentAt / 1e9)];
  const y = [...now.curve.y, ...trips.map((trip) => trip.rtt)];
  const moved = { ...now, curve: { ...now.curve, x, y } };
  return now.phase === "loss" ? moved : withFigure(moved, version, { latency: median(y) ?? 0 });
}

/** The live figure is the mean of the last half second: what a person can follow, and never the result. */
function ticksCame(now: Live, version: Version, direction: "down" | "up", ticks: Tick[]): Live {
  const x = [...now.curve.x, ...ticks.map((tick) => tick.end / 1e9)];
  const y = [...now.curve.y, ...ticks.map((tick) => rateOf([tick]))];
  const recent = y.slice(-5);
  const rate = recent.reduce((total, each) => total + each, 0) / Math.max(1, recent.length);
  return withFigure({ ...now, curve: { ...now.curve, x, y } }, version, { [direction]: rate });
}

function withFigure(now: Live, version: Version, figure: VersionLive): Live {
  return { ...now, figures: { ...now.figures, [version]: { ...now.figures[version], ...figure } } };
}

/** How long the page was hidden, ns. */
class VisibilityWatch {
  private hidden = 0;
  private since = document.hidden ? performance.now() : undefined;
  private readonly look = () => {
    if (document.hidden) this.since ??= performance.now();
    else this.count();
  };

  constructor() {
    document.addEventListener("visibilitychange", this.look);
  }

  get soFar(): number {
    const running = this.since === undefined ? 0 : performance.now() - this.since;
    return Math.round((this.hidden + running) * 1e6);
  }

  stop(): number {
    document.removeEventListener("visibilitychange", this.look);
    this.count();
    return this.soFar;
  }

  private count(): void {
    if (this.since !== undefined) this.hidden += performance.now() - this.since;
    this.since = undefined;
  }
}

/** Keeps the screen on where the browser lets a page ask for that (only over TLS or on the host itself). */
async function stayAwake(): Promise<() => void> {
  try {
    const lock = await navigator.wakeLock?.request("screen");
    return () => void lock?.release();
  } catch {
    return () => {};
  }
}
