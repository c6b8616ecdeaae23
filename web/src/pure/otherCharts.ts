// Pictures of what only the command line measures: UDP streams, capacity and available bandwidth, a host's timers, scans.
//
// These parts of a record come to the page as bounded JSON (readRecord.ts), so each picture reads the few fields that it draws, by type.

import { S } from "../strings";
import type { Chart, Point, Series, SpreadChart } from "./chart";
import { figuresOf } from "./figures";
import type { NetRecord, VersionResult } from "./record";
import { continued } from "./warmUp";
import { dictionary, fields, list, number, oneOf, pair, text } from "./shape";

const way = fields({ direction: oneOf("forward", "reverse", "round_trip") }, {});
const bins = fields({ bins: list(pair(number), 2000) }, {});
const udpStreams = list(
  fields(
    { pedigree: way },
    {
      goodput: number,
      ticks: list(fields({ end: number, length: number, bytes: number }, {}), 4000),
      receiver: fields({}, { bins, histogram: bins }),
    },
  ),
  8,
);
const pathRates = list(
  fields({ pedigree: way, metric: text(40) }, { rate: fields({ estimate: number, lo: number, hi: number }, {}) }),
  16,
);
const waits = fields(
  { timings: fields({ waits: list(fields({ how: text(40), asked: number, p50: number, p99: number }, {}), 24) }, {}) },
  {},
);
const series = fields({ id: text(40), index: number }, { point: dictionary(8) });

export function otherCharts(record: NetRecord): Chart[] {
  return [...record.versions.flatMap(udpCharts), pathRateChart(record), timerChart(record)].flatMap((chart) => chart ?? []);
}

function udpCharts(version: VersionResult): Chart[] {
  const streams = udpStreams(version.udp) ?? [];
  const rates = streams.map((udp): Series => {
    const ticks = (udp.ticks ?? []).filter((tick) => tick.length > 0);
    const points = continued(ticks).map((tick): Point => [tick.end / 1e9, (tick.bytes * 8e3) / tick.length]);
    return { name: `${wayName(udp.pedigree.direction)} ${version.version}`, points, look: "line" };
  });
  const gaps = streams.map((udp): Series => {
    const found = udp.receiver?.bins ?? udp.receiver?.histogram;
    const half = halfBin(found?.bins ?? []);
    const points = (found?.bins ?? []).map(([edge, count]): Point => [(edge + half) / 1e3, count]);
    return { name: `${wayName(udp.pedigree.direction)} ${version.version}`, points, look: "bars" };
  });
  return [
    ...drawn(`${S.charts.udpRates}, ${version.version}`, S.charts.secondsAxis, S.charts.rateAxis, rates, false),
    ...drawn(`${S.charts.udpGaps}, ${version.version}`, S.charts.usAxis, S.charts.countAxis, gaps, true),
  ];
}

/** Bins begin at zero, which has no place on a logarithmic axis; their middles have. */
function halfBin(bins: readonly Point[]): number {
  const steps = bins.slice(1).map(([edge], n) => edge - bins[n]![0]);
  return Math.max(1, Math.min(...steps, 1e9)) / 2;
}

/** Gaps and their counts reach over many powers of ten; the few long ones are what one looks for. */
function drawn(title: string, x: string, y: string, all: Series[], log: boolean): Chart[] {
  const filled = all.filter((each) => each.points.length > 1);
  return filled.length > 0 ? [{ kind: "lines", title, x: { label: x, log }, y: { label: y, log }, series: filled }] : [];
}

function pathRateChart(record: NetRecord): SpreadChart | undefined {
  const rows = record.versions.flatMap((version) =>
    (pathRates(version.path_rates) ?? []).flatMap(({ metric, pedigree, rate }) => {
      if (!rate) return [];
      const name = `${metric} ${wayName(pedigree.direction).toLowerCase()} ${version.version}`;
      return [{ name, lo: rate.lo / 1e6, mid: rate.estimate / 1e6, hi: rate.hi / 1e6, values: [] }];
    }),
  );
  return rows.length > 0 ? { kind: "spreads", title: S.charts.pathRates, y: { label: S.charts.rateAxis }, rows } : undefined;
}

function timerChart(record: NetRecord): SpreadChart | undefined {
  const found = waits(record.ability)?.timings.waits ?? [];
  const rows = found.map((wait) => ({
    name: `${wait.how.replaceAll("_", " ")} ${wait.asked / 1e3} us`,
    lo: wait.p50 / 1e3,
    mid: wait.p50 / 1e3,
    hi: wait.p99 / 1e3,
    values: [],
  }));
  return rows.length > 0 ? { kind: "spreads", title: S.charts.timers, y: { label: S.charts.usAxis }, rows } : undefined;
}

/** The points of one scan or repetition, each with the rate or the round trip that stands for it. */
export function seriesCharts(record: NetRecord, all: readonly NetRecord[]): Chart[] {
  const own = series(record.series);
  if (!own) return [];
  const points = all.flatMap((each) => {
    const place = series(each.series);
    return place?.id === own.id ? [{ record: each, index: place.index }] : [];
  });
  points.sort((a, b) => a.index - b.index);
  const rates = pointSeries(points, rateFigures);
  const trips = pointSeries(points, tripFigures);
  return [
    ...drawn(S.charts.scanRates, S.charts.pointAxis, S.charts.rateAxis, rates, false),
    ...drawn(S.charts.scanTrips, S.charts.pointAxis, S.charts.msAxis, trips, false),
  ];
}

type Named = [string, number][];

function pointSeries(points: readonly { record: NetRecord; index: number }[], figures: (record: NetRecord) => Named): Series[] {
  const found = new Map<string, Point[]>();
  for (const { record, index } of points) {
    for (const [name, value] of figures(record)) found.set(name, [...(found.get(name) ?? []), [index + 1, value]]);
  }
  return [...found].map(([name, own]) => ({ name, points: own, look: "line" }));
}

function rateFigures(record: NetRecord): Named {
  const tcp = figuresOf(record).flatMap((own): Named => {
    const named = (name: string, rate: number | undefined): Named => (rate === undefined ? [] : [[`${name} ${own.version}`, rate / 1e6]]);
    return [...named(S.table.down, own.down?.goodput), ...named(S.table.up, own.up?.goodput)];
  });
  const udp = record.versions.flatMap((version) =>
    (udpStreams(version.udp) ?? []).flatMap((each): Named =>
      each.goodput === undefined ? [] : [[`UDP ${wayName(each.pedigree.direction).toLowerCase()} ${version.version}`, each.goodput / 1e6]],
    ),
  );
  return [...tcp, ...udp];
}

function tripFigures(record: NetRecord): Named {
  return figuresOf(record).flatMap((own): Named => (own.latency?.rtt ? [[own.version, own.latency.rtt.p50 / 1e6]] : []));
}

function wayName(direction: "forward" | "reverse" | "round_trip"): string {
  return direction === "reverse" ? S.table.down : S.table.up;
}
