// Pictures of what only the command line measures: UDP streams, capacity and available bandwidth, one-way delay, a host's timers.

import { S } from "../strings";
import type { Axis, Chart, LineChart, Point, Series, SpreadChart } from "./chart";
import { binned } from "./delay";
import { wayOf } from "./measures";
import { readAbility, readOwd, readPathRates, readUdp, type Direction } from "./otherParts";
import type { NetRecord, VersionResult } from "./record";
import { continued } from "./warmUp";

export function otherCharts(record: NetRecord): Chart[] {
  const all = [
    ...record.versions.flatMap(udpCharts),
    pathRateChart(record),
    ...modeCharts(record),
    ...followedCharts(record),
    ...owdCharts(record),
    timerChart(record),
  ];
  return all.flatMap((chart) => chart ?? []);
}

function udpCharts(version: VersionResult): Chart[] {
  const streams = readUdp(version.udp) ?? [];
  const rates = streams.map((udp): Series => {
    const ticks = (udp.ticks ?? []).filter((tick) => tick.length > 0);
    const points = continued(ticks).map((tick): Point => [tick.end / 1e9, (tick.bytes * 8e3) / tick.length]);
    return { name: `${wayName(udp.pedigree.direction)} ${version.version}`, points, look: "line" };
  });
  const gaps = streams.map((udp): Series => {
    const found = udp.receiver?.bins ?? udp.receiver?.histogram;
    const points = binned(found?.bins ?? []).map(([middle, count]): Point => [middle / 1e3, count]);
    return { name: `${wayName(udp.pedigree.direction)} ${version.version}`, points, look: "bars" };
  });
  return [
    ...drawn(`${S.charts.udpRates}, ${version.version}`, { label: S.charts.secondsAxis }, { label: S.charts.rateAxis }, rates),
    ...drawn(`${S.charts.udpGaps}, ${version.version}`, { label: S.charts.usAxis, log: true }, COUNTS, gaps),
  ];
}

/** The few that are far from the others are what one looks for. */
const COUNTS: Axis = { label: S.charts.countAxis, log: true };

function drawn(title: string, x: Axis, y: Axis, all: Series[]): LineChart[] {
  const filled = all.filter((each) => each.points.length > 1);
  return filled.length > 0 ? [{ kind: "lines", title, x, y, series: filled }] : [];
}

function pathRateChart(record: NetRecord): SpreadChart | undefined {
  const rows = record.versions.flatMap((version) =>
    (readPathRates(version.path_rates) ?? []).flatMap(({ metric, pedigree, rate }) => {
      if (!rate) return [];
      const name = rateName(metric, pedigree.direction, version);
      return [{ name, lo: rate.lo / 1e6, mid: rate.estimate / 1e6, hi: rate.hi / 1e6, values: [] }];
    }),
  );
  return rows.length > 0 ? { kind: "spreads", title: S.charts.pathRates, y: { label: S.charts.rateAxis }, rows } : undefined;
}

/** How many of the packet pairs came at which rate: each mode as wide as its window, and beside all of them the one that was taken. */
function modeCharts(record: NetRecord): LineChart[] {
  const series = record.versions.flatMap((version) =>
    (readPathRates(version.path_rates) ?? []).flatMap(({ metric, pedigree, modes }) => {
      const name = rateName(metric, pedigree.direction, version);
      const ascending = [...(modes ?? [])].sort((a, b) => a.lo - b.lo);
      const taken = ascending.filter((mode) => mode.chosen);
      const outline = (of: typeof ascending) => of.flatMap(({ lo, hi, share }) => [[lo, 0], [lo, share], [hi, share], [hi, 0]] as Point[]);
      const scaled = (points: Point[]) => points.map(([rate, share]): Point => [rate / 1e6, share * 100]);
      return [
        { name, points: scaled(outline(ascending)), look: "outline" as const },
        { name: S.charts.modeTaken(name), points: scaled(outline(taken)), look: "outline" as const },
      ];
    }),
  );
  return drawn(S.charts.modes, { label: S.charts.rateAxis }, { label: S.charts.pairsAxis }, series);
}

/** A path that was followed (`--watch`). */
function followedCharts(record: NetRecord): LineChart[] {
  const series = record.versions.flatMap((version) =>
    (readPathRates(version.path_rates) ?? []).map(({ metric, pedigree, over_time }): Series => {
      const points = (over_time ?? []).flatMap(({ at, rate }): Point[] => (rate ? [[at / 1e9, rate.estimate / 1e6]] : []));
      return { name: rateName(metric, pedigree.direction, version), points, look: "line" };
    }),
  );
  return drawn(S.charts.followed, { label: S.charts.secondsAxis }, { label: S.charts.rateAxis }, series);
}

function owdCharts(record: NetRecord): LineChart[] {
  const series = record.versions.flatMap((version) => {
    const owd = readOwd(version.owd);
    return (["forward", "reverse"] as const).map((way): Series => {
      const points = binned(owd?.[way].histogram?.bins ?? []).map(([middle, count]): Point => [middle / 1e6, count]);
      return { name: `${wayName(way)} ${version.version}`, points, look: "bars" };
    });
  });
  const filled = series.filter((each) => each.points.length > 0);
  if (filled.length === 0) return [];
  return [{ kind: "lines", title: S.charts.owd, x: { label: S.charts.msAxis, log: true }, y: { label: S.charts.countAxis }, series: filled }];
}

function timerChart(record: NetRecord): SpreadChart | undefined {
  const rows = (readAbility(record.ability)?.timings?.waits ?? []).map((wait) => ({
    name: `${wait.how.replaceAll("_", " ")} ${wait.asked / 1e3} us`,
    lo: wait.p50 / 1e3,
    mid: wait.p50 / 1e3,
    hi: wait.p99 / 1e3,
    values: [],
  }));
  return rows.length > 0 ? { kind: "spreads", title: S.charts.timers, y: { label: S.charts.usAxis }, rows } : undefined;
}

function rateName(metric: string, direction: Direction, version: VersionResult): string {
  return `${S.measures.pathRate(metric, S.table[wayOf(direction)], "")} ${version.version}`;
}

function wayName(direction: Direction): string {
  return S.table[wayOf(direction)];
}
