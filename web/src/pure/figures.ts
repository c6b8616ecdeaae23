// Picks from a record the figures that a person looks at first; everything else hangs below them.

import type { LatencyResult, NetRecord, TcpResult, VersionResult } from "./record";
import type { Version } from "./targets";
import { parseSpan } from "./units";
import type { UdpResult } from "./udpResult";
import type { Evidence } from "./verdict";

export interface VersionFigures {
  version: Version;
  latency?: LatencyResult;
  /** Where `latency` is of datagrams. */
  latencyTcp?: LatencyResult;
  streams: StreamFigures[];
  down?: TcpResult;
  up?: TcpResult;
  unreachable?: string;
  /** Of the clock that the round trips were taken with, ns; 0 where it was finer than they are, or is not known. */
  clockStep: number;
}

/** A stream of datagrams, one way. */
export interface StreamFigures {
  direction: "down" | "up";
  lost: number;
  /** Those whose fate is known: what nobody could observe is neither lost nor received. */
  sent: number;
  /** ns */
  jitter?: number;
}

export function figuresOf(record: NetRecord): VersionFigures[] {
  const clockStep = parseSpan(record.request.options.clock);
  return record.versions.map((result) => figuresOfVersion(result, clockStep));
}

function figuresOfVersion(result: VersionResult, clockStep: number): VersionFigures {
  const down = best(result, "reverse");
  const up = best(result, "forward");
  return {
    version: result.version,
    ...(result.latency ? { latency: result.latency } : {}),
    ...(result.latency_tcp ? { latencyTcp: result.latency_tcp } : {}),
    streams: streamsOf(result),
    clockStep,
    ...(down ? { down } : {}),
    ...(up ? { up } : {}),
    ...(result.unreachable ? { unreachable: result.unreachable.reason } : {}),
  };
}

/** Over TCP a lost segment is a long round trip and no loss. */
export function tellsLoss(latency: LatencyResult): boolean {
  return !/^web-latency$|tcp/.test(latency.pedigree.method);
}

/** Share of the round trips that were lost; undefined where that was not measured. */
export function lossOf(of: Pick<VersionResult, "latency">): number | undefined {
  const trips = lostTrips(of);
  return trips && trips.lost / trips.of;
}

/** Of the round trips that were lost and of those that are known; undefined where a loss could not be seen, or nothing is known. */
export function lostTrips({ latency }: Pick<VersionFigures, "latency">): { lost: number; of: number } | undefined {
  if (!latency || !tellsLoss(latency)) return undefined;
  const of = settledOf(latency);
  return of > 0 ? { lost: latency.lost, of } : undefined;
}

/** A share under its name; nothing where there is nothing that it could be a share of. */
export function shareOf<const N extends string>(name: N, part: number, of: number): Partial<Record<N, number>> {
  return of > 0 ? ({ [name]: part / of } as Record<N, number>) : {};
}

/** Requests of which it is known what became of them. */
export function settledOf(latency: LatencyResult): number {
  return latency.sent - (latency.unknown ?? 0);
}

/** These may have come from outside and are not checked field by field where they are read. */
function streamsOf(result: VersionResult): StreamFigures[] {
  const all: unknown[] = Array.isArray(result.udp) ? result.udp : [];
  return all.flatMap((each) => {
    const { pedigree, loss, sent, receiver } = (each ?? {}) as Partial<UdpResult>;
    if (typeof sent !== "number" || typeof loss?.lost !== "number") return [];
    const jitter = receiver?.jitter;
    const direction = pedigree?.direction === "reverse" ? "down" : "up";
    const known = sent - (typeof loss.unknown === "number" ? loss.unknown : 0);
    return [{ direction, lost: loss.lost, sent: known, ...(typeof jitter === "number" ? { jitter } : {}) } as const];
  });
}

/** Of several numbers of streams the one with most: it is what the path carries. */
function best(result: VersionResult, direction: "forward" | "reverse"): TcpResult | undefined {
  const own = (result.tcp ?? []).filter((tcp) => tcp.pedigree.direction === direction && (tcp.bytes ?? 0) > 0);
  return own.sort((a, b) => b.streams - a.streams)[0];
}

/**
 * Of an interval its lower end: a verdict promises nothing that the data do not carry. Loss is the share that was lost, of round trips
 * or of the worse way: its careful end would be two percent after a second without any loss, and no short test could be good.
 */
export function evidenceOf(figures: VersionFigures): Evidence {
  const loaded = [figures.down, figures.up].flatMap((tcp) => tcp?.latency_under_load?.latency.rtt?.p95 ?? []);
  return {
    down: careful(figures.down),
    up: careful(figures.up),
    idleMedian: figures.latency?.rtt?.p50,
    variation: figures.latency?.pdv?.p95,
    loaded: loaded.length > 0 ? Math.max(...loaded) : undefined,
    loss: worstLoss(figures),
  };
}

function worstLoss(figures: VersionFigures): number | undefined {
  const ways = figures.streams.flatMap(({ lost, sent }) => (sent > 0 ? [lost / sent] : []));
  const all = [...ways, ...[lossOf(figures)].flatMap((share) => share ?? [])];
  return all.length > 0 ? Math.max(...all) : undefined;
}

function careful(tcp: TcpResult | undefined): number | undefined {
  return tcp?.goodput_interval?.lo ?? tcp?.goodput;
}
