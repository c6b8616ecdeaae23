// Every figure of a record in one list, so that a comparison and a table for spreadsheets have the same ones, whoever measured.

import { evidenceOf, figuresOf, settledOf, tellsLoss, type VersionFigures } from "./figures";
import { readAbility, readHops, readOwd, readPathRates, readReachProbes, readUdp, type Direction } from "./otherParts";
import type { MatrixCell, MatrixResult, NetRecord, VersionResult } from "./record";
import { median } from "./statistics";
import type { Version } from "./targets";
import { showSize } from "./units";
import { S } from "../strings";

/** Shares are of 1. */
export type Unit = "bit/s" | "ns" | "share" | "B";

export interface Measure {
  /** Absent: of a host. */
  version?: Version;
  /** For programs. */
  key: string;
  /** For people. */
  name: string;
  unit: Unit;
  value: number;
  lo?: number;
  hi?: number;
  /** Of a share: so many of so many. */
  counts?: [number, number];
}

/** In the order in which they are read. */
export function measuresOf(record: NetRecord): Measure[] {
  const figures = figuresOf(record).flatMap(figureMeasures);
  const matrices = record.versions.flatMap((version) => (version.matrix ?? []).flatMap((matrix) => matrixMeasures(version.version, matrix)));
  return [...figures, ...matrices, ...otherMeasures(record)];
}

/** Those of what only the command line measures, but for the loss and the jitter of streams, which are figures of a test too. */
export function otherMeasures(record: NetRecord): Measure[] {
  return [...record.versions.flatMap(otherOfVersion), ...hostMeasures(record)];
}

type Bounds = { lo: number; hi: number } | undefined;

function measure(key: string, name: string, unit: Unit, value: number | undefined, version?: Version, bounds?: Bounds): Measure[] {
  if (value === undefined) return [];
  return [{ key, name, unit, value, ...(version ? { version } : {}), ...(bounds ? { lo: bounds.lo, hi: bounds.hi } : {}) }];
}

function lossMeasure(key: string, name: string, version: Version, lost: number, sent: number): Measure[] {
  return sent > 0 ? [{ key, name, unit: "share", value: lost / sent, version, counts: [lost, sent] }] : [];
}

function figureMeasures(own: VersionFigures): Measure[] {
  const { version, latency, latencyTcp, down, up } = own;
  const loaded = evidenceOf(own).loaded;
  return [
    ...measure("down", S.table.down, "bit/s", down?.goodput, version, down?.goodput_interval),
    ...measure("up", S.table.up, "bit/s", up?.goodput, version, up?.goodput_interval),
    ...measure("rtt_p50", S.table.rtt, "ns", latency?.rtt?.p50, version),
    ...measure("rtt_p95", S.measures.rttP95, "ns", latency?.rtt?.p95, version),
    ...measure("rtt_tcp_p50", S.table.rttTcp, "ns", latencyTcp?.rtt?.p50, version),
    ...measure("ipdv_mean", S.table.ipdv, "ns", latency?.ipdv?.mean, version),
    ...measure("pdv_p95", S.table.pdv, "ns", latency?.pdv?.p95, version),
    ...measure("rtt_loaded_p95", S.measures.loaded, "ns", loaded, version),
    ...(latency && tellsLoss(latency) ? lossMeasure("loss_round_trips", S.measures.lossTrips, version, latency.lost, settledOf(latency)) : []),
    ...own.streams.flatMap((stream) => [
      ...lossMeasure(`loss_${stream.direction}`, S.measures.loss(S.table[stream.direction]), version, stream.lost, stream.sent),
      ...measure(`jitter_${stream.direction}`, S.measures.jitter(S.table[stream.direction]), "ns", stream.jitter, version),
    ]),
  ];
}

/** The sender's figures, as the picture has them: the receiver has none where a short total comes at once. */
function matrixMeasures(version: Version, matrix: MatrixResult): Measure[] {
  const down = matrix.pedigree.direction === "reverse";
  return matrix.cells.flatMap((cell) => {
    const [rate, time] = down ? [cell.server_throughput, cell.server_time] : [cell.client_throughput, cell.client_time];
    const name = S.measures.cell(S.matrix[matrix.protocol], showSize(cell.bytes), showSize(cell.block), down ? S.table.down : S.table.up);
    const key = `${matrix.protocol}_${cell.bytes}_${cell.block}`;
    return [
      ...measure(`${key}_rate`, S.measures.rateOf(name), "bit/s", rate?.estimate, version, rate),
      ...measure(`${key}_time`, S.measures.timeOf(name), "ns", time?.estimate, version, time),
      ...(matrix.protocol === "udp" ? measure(`${key}_lost`, S.measures.lostOf(name), "B", lostOf(cell), version) : []),
    ];
  });
}

function lostOf(cell: MatrixCell): number | undefined {
  return median(cell.runs.filter((run) => !run.unknown).map((run) => run.lost));
}

function otherOfVersion(result: VersionResult): Measure[] {
  const { version } = result;
  const udp = (readUdp(result.udp) ?? []).flatMap((each) => {
    const way = wayOf(each.pedigree.direction);
    return measure(`udp_${way}`, S.measures.udp(S.table[way]), "bit/s", each.goodput, version);
  });
  const rates = (readPathRates(result.path_rates) ?? []).flatMap((each) => {
    const way = wayOf(each.pedigree.direction);
    const bound = each.bound === "at_least" || each.bound === "at_most" ? `, ${S.measures.bounds[each.bound]}` : "";
    const value = each.bound === "at_least" ? each.rate?.lo : each.bound === "at_most" ? each.rate?.hi : each.rate?.estimate;
    const key = `${each.metric}_${way}${bound === "" ? "" : `_${each.bound}`}`;
    return measure(key, S.measures.pathRate(each.metric, S.table[way], bound), "bit/s", value, version, bound === "" ? each.rate : undefined);
  });
  return [...udp, ...rates, ...owdMeasures(result), ...reachMeasures(result), ...hopMeasures(result)];
}

function owdMeasures({ owd, version }: VersionResult): Measure[] {
  const read = readOwd(owd);
  if (!read) return [];
  return (["forward", "reverse"] as const).flatMap((direction) => {
    const [own, way] = [read[direction], wayOf(direction)];
    const name = S.table[way];
    return [
      ...measure(`owd_${way}_p50`, S.measures.owd(name), "ns", own.delay?.p50, version),
      ...measure(`owd_${way}_p95`, S.measures.owdP95(name), "ns", own.delay?.p95, version),
      ...measure(`owd_${way}_pdv_p95`, S.measures.owdPdv(name), "ns", own.pdv?.p95, version),
      ...measure(`owd_${way}_loss`, S.measures.loss(name), "share", own.loss, version),
    ];
  });
}

function reachMeasures({ reach_probes, version }: VersionResult): Measure[] {
  return (readReachProbes(reach_probes) ?? []).flatMap(({ protocol, rtt, loss, capacity }) => {
    const name = protocol.replaceAll("_", " ");
    return [
      ...measure(`reach_${protocol}_rtt_p50`, S.measures.reach(name), "ns", rtt?.p50, version),
      ...measure(`reach_${protocol}_loss`, S.measures.reachLoss(name), "share", loss, version),
      ...measure(`reach_${protocol}_capacity`, S.measures.reachCapacity(name), "bit/s", capacity?.rate.estimate, version, capacity?.rate),
    ];
  });
}

function hopMeasures({ hops, version }: VersionResult): Measure[] {
  return (readHops(hops)?.hops ?? []).flatMap(({ ttl, rtt_min, loss, capacity }) => [
    ...measure(`hop_${ttl}_rtt_min`, S.measures.hop(ttl), "ns", rtt_min, version),
    ...measure(`hop_${ttl}_loss`, S.measures.hopLoss(ttl), "share", loss, version),
    ...measure(`hop_${ttl}_capacity`, S.measures.hopCapacity(ttl), "bit/s", capacity?.rate.estimate, version, capacity?.rate),
  ]);
}

function hostMeasures(record: NetRecord): Measure[] {
  const ability = readAbility(record.ability);
  const waits = (ability?.timings?.waits ?? []).flatMap(({ how, asked, p50, p99 }) => {
    const name = `${how.replaceAll("_", " ")} ${asked / 1e3} us`;
    return [...measure(`late_${how}_${asked}_p50`, S.measures.late(name), "ns", p50), ...measure(`late_${how}_${asked}_p99`, S.measures.lateP99(name), "ns", p99)];
  });
  const rates = (ability?.honest ?? []).flatMap(({ way, packet, rate }) => measure(`honest_${way}_${packet}`, S.measures.honest(way, packet), "bit/s", rate));
  return [...waits, ...rates];
}

export function wayOf(direction: Direction): "down" | "up" {
  return direction === "reverse" ? "down" : "up";
}
