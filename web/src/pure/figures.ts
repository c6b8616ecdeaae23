// Picks from a record the figures that a person looks at first; everything else hangs below them.

import type { LatencyResult, NetRecord, TcpResult, VersionResult } from "./record";
import type { Version } from "./targets";
import type { Evidence } from "./verdict";

export interface VersionFigures {
  version: Version;
  latency?: LatencyResult;
  down?: TcpResult;
  up?: TcpResult;
  unreachable?: string;
}

export function figuresOf(record: NetRecord): VersionFigures[] {
  return record.versions.map(figuresOfVersion);
}

function figuresOfVersion(result: VersionResult): VersionFigures {
  const down = best(result, "reverse");
  const up = best(result, "forward");
  return {
    version: result.version,
    ...(result.latency ? { latency: result.latency } : {}),
    ...(down ? { down } : {}),
    ...(up ? { up } : {}),
    ...(result.unreachable ? { unreachable: result.unreachable.reason } : {}),
  };
}

/** Of several numbers of streams the one with most: it is what the path carries. */
function best(result: VersionResult, direction: "forward" | "reverse"): TcpResult | undefined {
  const own = (result.tcp ?? []).filter((tcp) => tcp.pedigree.direction === direction && tcp.bytes > 0);
  return own.sort((a, b) => b.streams - a.streams)[0];
}

/** Of an interval its lower end: a verdict promises nothing that the data do not carry. */
export function evidenceOf(figures: VersionFigures): Evidence {
  const loaded = [figures.down, figures.up].flatMap((tcp) => tcp?.latency_under_load?.latency.rtt?.p95 ?? []);
  return {
    down: careful(figures.down),
    up: careful(figures.up),
    idleMedian: figures.latency?.rtt?.p50,
    variation: figures.latency?.pdv?.p95,
    loaded: loaded.length > 0 ? Math.max(...loaded) : undefined,
  };
}

function careful(tcp: TcpResult | undefined): number | undefined {
  return tcp?.goodput_interval?.lo ?? tcp?.goodput;
}
