// Makes the record of a run: the schema that all of netaware speaks (`netaware schema`), as far as a browser can fill it.
//
// What a browser cannot know is left out, and the warnings say which: it cannot see
// segments sent again, cannot tell who limited a transfer, and reads a rounded clock.

import type { EchoRun, Instrument, Measured, MeasuredTransfer, MeasuredVersion, TransferRun } from "../measure/messages";
import type { SenderTick } from "./arrivals";
import { histogram, ipdv, pdv, smoothedJitter, summarise, type DelaySummary } from "./delay";
import { goodput } from "./goodput";
import { ascending, mean, median, sum, type Interval } from "./statistics";
import type { Version } from "./targets";
import { showSpan, wholeSeconds } from "./units";
import { udpResult, type UdpResult } from "./udpResult";
import type { Tick } from "./warmUp";
import { S } from "../strings";

export const SCHEMA_VERSION = 1;
export const SOFTWARE = "0.1.0";

type Outcome = "complete" | "interrupted" | "failed";
type Direction = "forward" | "reverse" | "round_trip";

export interface Pedigree {
  method: string;
  layer: "payload" | "ip" | "l2";
  direction: Direction;
  version: Version;
  clock: "application" | "kernel" | "nic";
  uncertainty: string;
}

export interface Health {
  late_sends?: number;
  worst_lateness?: number;
  not_sent?: number;
  host_drops?: number;
  stamp_fallbacks?: number;
}

export interface LatencyResult {
  pedigree: Pedigree;
  payload: number;
  arrivals?: "even";
  spacing: number;
  sent: number;
  not_sent: number;
  received: number;
  lost: number;
  /** Absent in records of older versions. */
  unknown?: number;
  late: number;
  reordered: number;
  duplicates: number;
  bad: number;
  patience: number;
  rtt: DelaySummary | null;
  rtt_application: DelaySummary | null;
  responder?: DelaySummary;
  ipdv?: DelaySummary;
  pdv?: DelaySummary;
  jitter?: number;
  histogram?: Histogram;
  /** The same in bins of equal width, where the command line was asked for them. */
  bins?: Histogram;
  health: Health;
}

export interface Histogram {
  bins: [number, number][];
  digits?: number;
  width?: number;
  underflow: number;
  overflow: number;
}

export interface LoadedLatency {
  latency: LatencyResult;
  rise?: number;
  round_trips_per_minute: number | null;
}

export interface TcpResult {
  pedigree: Pedigree;
  outcome: Outcome;
  streams: number;
  congestion: string;
  goodput?: number;
  goodput_interval?: Interval;
  rounds: number[];
  counted: "delivered" | "acknowledged";
  /** Absent, like the figures below, if nobody measured it. */
  bytes?: number;
  measured: number;
  warm_up?: { omitted: number; rule: string };
  retransmits?: number;
  rtt?: number;
  min_rtt?: number;
  cwnd?: number;
  receiver_ticks: Tick[];
  sender_ticks?: SenderTick[];
  sender?: TcpEnd;
  receiver?: TcpEnd;
  latency_under_load?: LoadedLatency;
  limit: { by: string; side: string; evidence: string };
  health: Health;
}

export interface TcpEnd {
  outcome: Outcome;
  elapsed: number;
  bytes: number;
  cpu?: Record<string, number | null>;
  streams: Record<string, unknown>[];
}

export interface MatrixEnd {
  bytes: number;
  calls?: number;
  elapsed?: number;
  throughput?: number;
}

export interface MatrixRun {
  round: number;
  outcome: Outcome;
  /** Absent when the transfer did not even begin. */
  client?: MatrixEnd;
  server?: MatrixEnd;
  /** Of what the receiving end told of. */
  lost: number;
  /** Sent, and nobody told what became of it. */
  unknown?: number;
  /** Given to TCP and not delivered when the transfer ended. */
  undelivered?: number;
  /** Absent where nobody told. */
  retransmits?: number;
}

export interface MatrixCell {
  bytes: number;
  block: number;
  client_time?: Interval;
  client_throughput?: Interval;
  server_time?: Interval;
  server_throughput?: Interval;
  runs: MatrixRun[];
}

export interface MatrixResult {
  pedigree: Pedigree;
  protocol: "tcp" | "tcp_nodelay" | "udp";
  cells: MatrixCell[];
}

export interface VersionResult {
  version: Version;
  address?: string;
  unreachable?: { stage: string; reason: string; advice: string };
  /** Phases that failed although the version was reached. */
  failed_phases?: { stage: string; reason: string }[];
  reach?: { connects: number[]; greeting: number };
  latency?: LatencyResult;
  latency_tcp?: LatencyResult;
  tcp?: TcpResult[];
  udp?: UdpResult[];
  matrix?: MatrixResult[];
  /** Whatever another command has measured; shown by its own fields. */
  [other: string]: unknown;
}

export interface NetRecord {
  schema: number;
  id: string;
  software: string;
  command: string;
  started_at: number;
  started_at_utc: string;
  elapsed: number;
  outcome: Outcome;
  request: { host: string; port: number; own_responder: boolean; options: Record<string, string> };
  label?: string;
  prober: HostInfo;
  responder?: HostInfo;
  versions: VersionResult[];
  warnings: string[];
  [other: string]: unknown;
}

export interface HostInfo {
  name: string;
  kernel: string;
  cpu: string;
  cores: number;
  virtualisation: string;
  software: string;
  [other: string]: unknown;
}

/** What the page knows about the run beside what was measured. */
export interface Circumstances {
  command: "test" | "matrix";
  /** ms since 1970 by the wall clock. */
  startedAt: number;
  random: Uint8Array;
  host: string;
  port: number;
  options: Record<string, string>;
  label: string;
  prober: HostInfo;
  /** How long the page was hidden meanwhile, ns. */
  hidden: number;
  /** What the owner's caps changed of what was asked for. */
  caps: string[];
}

export function recordOf(measured: Measured, around: Circumstances): NetRecord {
  const responder = measured.versions.find((version) => version.responder)?.responder;
  const versions = versionsOf(measured);
  return {
    schema: SCHEMA_VERSION,
    id: uuidV7(around.startedAt, around.random),
    software: SOFTWARE,
    command: around.command,
    started_at: around.startedAt * 1e6,
    started_at_utc: new Date(around.startedAt).toISOString(),
    elapsed: measured.elapsed,
    outcome: measured.outcome,
    request: { host: around.host, port: around.port, own_responder: false, options: { ...around.options, ...coarseClock(measured.instrument) } },
    ...(around.label ? { label: around.label } : {}),
    prober: around.prober,
    ...(responder ? { responder: hostOf(responder) } : {}),
    versions,
    warnings: warningsOf(measured, versions, around),
  };
}

/** A clock that is no finer than round trips in a house are: figures of them are shown by it. */
function coarseClock({ clockStep }: Instrument): { clock?: string } {
  return clockStep >= COARSE_NS ? { clock: showSpan(clockStep) } : {};
}

/**
 * Of a run that goes on: what there is so far, as if it ended here; undefined as long as nothing was measured. It has the identity of the
 * record that will replace it.
 */
export function partialRecordOf(measured: Measured, around: Circumstances): NetRecord | undefined {
  if (measured.outcome === "failed") return undefined;
  const record = recordOf({ ...measured, outcome: "interrupted" }, around);
  return { ...record, warnings: [S.record.cutOff, ...record.warnings] };
}

function versionsOf(measured: Measured): VersionResult[] {
  const missing = measured.missing.map(
    (each): VersionResult => ({
      version: each.version,
      unreachable: {
        stage: "connect",
        reason:
          each.reason === "noAddress"
            ? S.record.noAddress(each.version)
            : S.record.noAnswer(each.tried.join(", "), wholeSeconds(each.waited)),
        advice: "",
      },
    }),
  );
  const all = [...measured.versions.map((version) => versionOf(version, measured.instrument)), ...missing];
  return all.sort((a, b) => (a.version < b.version ? -1 : 1));
}

function versionOf(measured: MeasuredVersion, instrument: Instrument): VersionResult {
  const { version, idle, datagrams } = measured;
  const overTcp = idle && latencyOf(idle, version, instrument);
  const overDatagrams = datagrams && datagrams.sent > 0 ? latencyOf(datagrams, version, instrument) : undefined;
  const latency = overDatagrams ?? overTcp;
  const tcp = [measured.down, measured.up].flatMap((run) => (run ? [tcpOf(run, version, instrument, overTcp)] : []));
  const udp = (measured.streams ?? []).flatMap((run) => udpResult(run, version) ?? []);
  const matrix = measured.matrix ? matrixOf(measured.matrix, version, instrument) : [];
  const troubles = Object.entries(measured.troubles ?? {}).map(([stage, reason]) => ({ stage, reason }));
  const isReached = latency !== undefined || tcp.length > 0 || udp.length > 0 || matrix.length > 0;
  return {
    version,
    address: measured.address,
    ...(troubles[0] && !isReached ? { unreachable: { ...troubles[0], advice: "" } } : {}),
    ...(troubles.length > 0 && isReached ? { failed_phases: troubles } : {}),
    ...(measured.greeting === undefined ? {} : { reach: { connects: [], greeting: measured.greeting } }),
    ...(latency ? { latency } : {}),
    ...(overDatagrams && overTcp ? { latency_tcp: overTcp } : {}),
    ...(tcp.length > 0 ? { tcp } : {}),
    ...(udp.length > 0 ? { udp } : {}),
    ...(matrix.length > 0 ? { matrix } : {}),
  };
}

function latencyOf(run: EchoRun, version: Version, instrument: Instrument): LatencyResult {
  const trips = run.trips;
  const values = trips.map((trip) => trip.rtt);
  const responder = summarise(trips.map((trip) => trip.responder));
  const [change, excess] = [summarise(ipdv(trips)), summarise(pdv(trips))];
  const jitter = smoothedJitter(trips);
  const unknown = run.transport === "datagrams" ? (run.unknown ?? 0) : run.unanswered;
  return {
    pedigree: {
      method: run.transport === "datagrams" ? "web-datagrams-latency" : "web-latency",
      layer: "payload",
      direction: "round_trip",
      version,
      clock: "application",
      uncertainty: S.record.ofSamples(showSpan(instrument.clockStep)),
    },
    payload: run.length,
    arrivals: "even",
    spacing: run.spacing,
    sent: run.sent,
    not_sent: run.notSent ?? 0,
    received: trips.length,
    // Over TCP nothing is lost: what has no answer yet when the test ends, or the connection breaks, might have had one.
    lost: run.transport === "datagrams" ? run.unanswered : 0,
    ...(unknown > 0 ? { unknown } : {}),
    late: run.late ?? 0,
    reordered: run.reordered ?? 0,
    duplicates: run.duplicates ?? 0,
    bad: run.bad,
    patience: run.patience,
    rtt: summarise(values) ?? null,
    rtt_application: summarise(trips.map((trip) => trip.application)) ?? null,
    ...(responder ? { responder } : {}),
    ...(change ? { ipdv: change } : {}),
    ...(excess ? { pdv: excess } : {}),
    ...(jitter === undefined ? {} : { jitter }),
    ...(values.length > 0 ? { histogram: { bins: histogram(values), digits: 2, underflow: 0, overflow: 0 } } : {}),
    health: {
      not_sent: run.notSent ?? 0,
      late_sends: run.lateSends,
      worst_lateness: run.worstLateness,
      stamp_fallbacks: run.implausible,
    },
  };
}

function tcpOf(run: TransferRun, version: Version, instrument: Instrument, idle: LatencyResult | undefined): TcpResult {
  const loaded = run.loaded && run.loaded.trips.length > 0 ? loadedOf(run.loaded, version, instrument, idle) : undefined;
  const rtts = (run.loaded?.trips ?? []).map((trip) => trip.rtt);
  const end = run.direction === "down" && !run.arrived ? "reset" : "orderly";
  const found = goodput(run.arrived ?? run.ticks, idle?.rtt?.p50 ?? 0, median(rtts) ?? 0, end);
  const ends = [pageEnd(run), serverEnd(run)];
  const [sender, receiver] = run.direction === "down" ? ends.reverse() : ends;
  // Only the server's TCP tells, and it tells of what it sends.
  const told = (field: string) => run.streamEnds.map((end) => end[field]).filter((value) => typeof value === "number");
  const known = (field: string) => (run.direction === "down" && told(field).length > 0 ? sum(told(field)) : undefined);
  const streams = Math.max(1, run.streamEnds.length);
  const meanOf = (field: string) => {
    const all = known(field);
    return all ? Math.round(all / streams) : undefined;
  };
  const [retransmits, rtt, minRtt, cwnd] = [known("retransmits"), meanOf("rtt"), meanOf("min_rtt"), known("cwnd")];
  const congestion = run.streamEnds.map((end) => end.congestion).find((name) => typeof name === "string");
  return {
    pedigree: {
      method: "web-tcp",
      layer: "payload",
      direction: run.direction === "down" ? "reverse" : "forward",
      version,
      clock: "application",
      uncertainty: run.arrived ? S.record.ofArrivals : S.record.ofSlices,
    },
    outcome: run.outcome,
    streams: run.streams,
    congestion: run.direction === "down" && congestion ? congestion : "",
    ...(found.rate === undefined ? {} : { goodput: Math.round(found.rate) }),
    ...(found.interval ? { goodput_interval: found.interval } : {}),
    rounds: found.rate === undefined ? [] : [Math.round(found.rate)],
    counted: run.arrived ? "acknowledged" : "delivered",
    ...(run.bytes === undefined ? {} : { bytes: run.bytes }),
    measured: found.measured,
    warm_up: { omitted: found.omitted, rule: found.warmUp.rule },
    ...(retransmits === undefined ? {} : { retransmits }),
    ...(rtt === undefined ? {} : { rtt }),
    ...(minRtt === undefined ? {} : { min_rtt: minRtt }),
    ...(cwnd ? { cwnd } : {}),
    receiver_ticks: run.ticks,
    ...(run.senderTicks && run.senderTicks.length > 0 ? { sender_ticks: run.senderTicks } : {}),
    ...(sender ? { sender } : {}),
    ...(receiver ? { receiver } : {}),
    ...(loaded ? { latency_under_load: loaded } : {}),
    limit: run.capped
      ? { by: "requested_rate", side: "request", evidence: S.record.capped }
      : { by: "unknown", side: "unknown", evidence: S.record.limitUnknown },
    // A page sees nothing of what its browser and system do for a connection.
    health: {},
  };
}

function loadedOf(run: EchoRun, version: Version, instrument: Instrument, idle: LatencyResult | undefined): LoadedLatency {
  const latency = latencyOf(run, version, instrument);
  const average = mean(run.trips.map((trip) => trip.rtt));
  const [loaded, before] = [latency.rtt?.p50, idle?.rtt?.p50];
  return {
    latency,
    ...(loaded !== undefined && before !== undefined ? { rise: loaded - before } : {}),
    round_trips_per_minute: average ? 60e9 / average : null,
  };
}

/** Undefined where the page has sent, and nobody confirmed how much. */
function pageEnd(run: TransferRun): TcpEnd | undefined {
  const [bytes, elapsed] = run.direction === "down" ? [run.bytes, run.elapsed] : [run.handedOver, run.confirmed ?? run.elapsed];
  if (bytes === undefined) return undefined;
  return { outcome: run.outcome, elapsed, bytes, streams: [] };
}

/** Undefined where the server has not reported. */
function serverEnd(run: TransferRun): TcpEnd | undefined {
  const { elapsed, bytes, cpu } = run.report ?? {};
  if (typeof elapsed !== "number" || typeof bytes !== "number") return undefined;
  const costs = typeof cpu === "object" && cpu !== null ? { cpu: cpu as Record<string, number | null> } : {};
  return { outcome: run.outcome, elapsed, bytes, ...costs, streams: run.streamEnds };
}

export function matrixOf(runs: readonly MeasuredTransfer[], version: Version, instrument: Instrument): MatrixResult[] {
  const protocols = [...new Set(runs.map((run) => run.protocol))].sort();
  return protocols.map((protocol) => {
    const own = runs.filter((run) => run.protocol === protocol);
    return {
      pedigree: {
        method: protocol === "udp" ? "web-matrix-datagrams" : "web-matrix",
        layer: "payload",
        direction: own[0]?.way === "down" ? "reverse" : "forward",
        version,
        clock: "application",
        uncertainty: S.record.ofRuns(showSpan(instrument.clockStep)) + (protocol === "udp" && own[0]?.way === "up" ? S.record.cutBlocks : ""),
      },
      protocol,
      cells: cellsOf(own),
    };
  });
}

function cellsOf(runs: readonly MeasuredTransfer[]): MatrixCell[] {
  const keys = [...new Set(runs.map((run) => `${run.bytes}/${run.block}`))];
  return keys.map((key) => {
    const own = runs.filter((run) => `${run.bytes}/${run.block}` === key).map(matrixRun);
    const first = runs.find((run) => `${run.bytes}/${run.block}` === key)!;
    const complete = own.filter((run) => run.outcome === "complete");
    const over = (figure: (run: MatrixRun) => number | undefined) => rangeOf(complete.flatMap((run) => figure(run) ?? []));
    return {
      bytes: first.bytes,
      block: first.block,
      ...named("client_time", over((run) => run.client?.elapsed)),
      ...named("client_throughput", over((run) => run.client?.throughput)),
      ...named("server_time", over((run) => run.server?.elapsed)),
      ...named("server_throughput", over((run) => run.server?.throughput)),
      runs: own,
    };
  });
}

function named<K extends string>(name: K, interval: Interval | undefined): Partial<Record<K, Interval>> {
  return interval ? ({ [name]: interval } as Record<K, Interval>) : {};
}

function matrixRun(measured: MeasuredTransfer): MatrixRun {
  const { page, server } = measured;
  const [sent = 0, received] = measured.way === "up" ? [page?.bytes, server?.bytes] : [server?.bytes, page?.bytes];
  return {
    round: measured.round,
    outcome: measured.outcome,
    ...(page ? { client: matrixEnd(page) } : {}),
    ...(server ? { server: matrixEnd(server) } : {}),
    // An end that never told what came has not said that it was lost.
    lost: received === undefined ? 0 : Math.max(0, sent - received),
    ...(received === undefined && sent > 0 ? { unknown: sent } : {}),
    ...(measured.retransmits === undefined ? {} : { retransmits: measured.retransmits }),
  };
}

/** What came after the first read, over the time since: the first read's own time is in nobody's clock. */
function matrixEnd(end: { bytes: number; calls: number; elapsed: number; first: number }): MatrixEnd {
  const timed = end.elapsed > 0;
  const throughput = Math.round(((end.bytes - end.first) * 8e9) / end.elapsed);
  return {
    bytes: end.bytes,
    calls: end.calls,
    ...(timed ? { elapsed: end.elapsed } : {}),
    ...(timed && throughput > 0 ? { throughput } : {}),
  };
}

/** Median between the smallest and the largest: holds the true median with a probability of 1 − 2^(1 − n) (sign test). */
export function rangeOf(values: readonly number[]): Interval | undefined {
  const sorted = ascending(values);
  const middle = median(values);
  if (middle === undefined) return undefined;
  return { estimate: middle, lo: sorted[0]!, hi: sorted[sorted.length - 1]!, confidence: 1 - 2 ** (1 - sorted.length) };
}

function warningsOf(measured: Measured, versions: readonly VersionResult[], { hidden, caps }: Pick<Circumstances, "hidden" | "caps">): string[] {
  const { instrument } = measured;
  const warnings: string[] = [...failures(measured, versions), ...measured.versions.flatMap(cuts), ...caps, ...lossWarnings(measured)];
  if (instrument.clockStep >= COARSE_NS) {
    warnings.push(S.record.coarse(showSpan(instrument.clockStep)));
  }
  if (hidden > 0) warnings.push(S.record.hidden(showSpan(hidden)));
  if (instrument.pauses > 0) {
    warnings.push(S.record.pauses(instrument.pauses, showSpan(instrument.longestPause)));
  }
  if (instrument.lostConnections > 0) {
    warnings.push(S.record.lostConnections(instrument.lostConnections));
  }
  for (const version of measured.versions) {
    for (const run of [version.down, version.up]) {
      if (run && goodput(run.arrived ?? run.ticks, 0, 0).warmUp.rule === "never ended" && run.ticks.length > 0) {
        warnings.push(S.record.speedingUp(version.version, run.direction));
      }
    }
  }
  return warnings;
}

/** Why phases failed, without those of which `cuts` says it. */
function failures(measured: Measured, versions: readonly VersionResult[]): string[] {
  return versions.flatMap(({ version, failed_phases: phases = [] }) => {
    const of = measured.versions.find((each) => each.version === version);
    const unsaid = phases.filter(({ stage, reason }) => !of || !isSaidOfTransfers(of, stage, reason));
    return unsaid.map(({ stage, reason }) => S.record.failed(version, stage, reason));
  });
}

function isSaidOfTransfers(of: MeasuredVersion, stage: string, reason: string): boolean {
  if (stage !== "down" && stage !== "up") return false;
  return isCut(of[stage]) || cutMatrix(of).reason === reason;
}

/** What of a version ended early. */
function cuts(of: MeasuredVersion): string[] {
  const { version, down, up, streams = [], troubles } = of;
  // The last attempt is why there is no whole transfer.
  const why = (run: TransferRun) => troubles?.[run.direction] ?? run.reason ?? "";
  const transfers = [down, up].flatMap((run) => (isCut(run) ? [S.record.cutTransfer(version, run.direction, why(run))] : []));
  const echoes = [down, up].flatMap((run) => (run?.loaded?.broken === undefined ? [] : [S.record.cutEchoes(version, run.direction, run.loaded.broken)]));
  const flows = streams.flatMap((run) => (isCut(run) ? [S.record.cutStream(version, run.direction)] : []));
  const { cut, all, reason = "" } = cutMatrix(of);
  return [...transfers, ...flows, ...echoes, ...(cut > 0 ? [S.record.cutRuns(version, cut, all, reason)] : [])];
}

function isCut<T extends { outcome: Outcome }>(run: T | undefined): run is T {
  return run !== undefined && run.outcome !== "complete";
}

/** How many transfers of a matrix did not move all, and the first reason. Those that had no channel are left out. */
function cutMatrix({ matrix = [], noDatagrams }: MeasuredVersion): { cut: number; all: number; reason?: string } {
  const runs = matrix.filter((run) => !(noDatagrams && run.protocol === "udp"));
  const cut = runs.filter(isCut);
  const reason = cut.find((run) => run.reason !== undefined)?.reason;
  return { cut: cut.length, all: runs.length, ...(reason === undefined ? {} : { reason }) };
}

function lossWarnings(measured: Measured): string[] {
  const warnings = measured.versions.flatMap(({ version, noDatagrams }) => (noDatagrams ? [S.record.without(version, S.record.noDatagrams[noDatagrams.reason](wholeSeconds(noDatagrams.waited)))] : []));
  const some = measured.versions.some((version) => version.datagrams || version.streams || version.matrix?.some((run) => run.protocol === "udp"));
  if (!some && warnings.length === 0) warnings.push(S.record.lossOverTcp);
  for (const { version, datagrams, streams } of measured.versions) {
    const heldBack = (streams ?? []).flatMap((run) => (run.page.did === "send" && run.page.sent.notSent > 0 ? [run.page.sent.notSent] : []));
    const held = sum(heldBack) + (datagrams?.notSent ?? 0);
    if (held > 0) warnings.push(S.record.held(version, held));
    const discarded = sum((streams ?? []).map((run) => run.discarded));
    if (discarded > 0) warnings.push(S.record.discarded(version, discarded));
  }
  return warnings;
}

/** A UUID of version 7 (RFC 9562 §5.7): sorts by time. */
export function uuidV7(ms: number, random: Uint8Array): string {
  const time = Math.floor(ms).toString(16).padStart(12, "0").slice(-12);
  const hex = [...random.subarray(0, 10)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const variant = (8 + (Number.parseInt(hex[4] ?? "0", 16) % 4)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex.slice(1, 4)}-${variant}${hex.slice(5, 8)}-${hex.slice(8, 20)}`;
}

function hostOf(told: Record<string, unknown>): HostInfo {
  const word = (field: string) => (typeof told[field] === "string" ? (told[field] as string).slice(0, 200) : "");
  return {
    ...told,
    name: word("name"),
    kernel: word("kernel"),
    cpu: word("cpu"),
    cores: typeof told.cores === "number" ? told.cores : 0,
    virtualisation: word("virtualisation"),
    software: word("software"),
  };
}

/** From here on the steps matter beside a round trip in a building. */
const COARSE_NS = 500_000;
