// The points of a scan, or of a measurement that was repeated, in one picture: rate, round trip and loss over what was changed.
//
// The axis is the first option that was scanned and whose values are quantities. Where another one was scanned as well, each of its values
// has a line of its own. What has no quantity (names of congestion controls) is drawn over the number of the point.

import type { LineChart, Point, Series } from "./chart";
import { figuresOf, lossOf } from "./figures";
import { wayOf } from "./measures";
import { readOwd, readPathRates, readSeries, readUdp } from "./otherParts";
import type { NetRecord } from "./record";
import { S } from "../strings";

/** The identity that all records of a series share. */
export function seriesOf(record: NetRecord): string | undefined {
  return readSeries(record.series)?.id;
}

export function seriesCharts(record: NetRecord, all: readonly NetRecord[]): LineChart[] {
  const id = seriesOf(record);
  if (id === undefined) return [];
  const found = all.flatMap((each) => {
    const place = readSeries(each.series);
    return place?.id === id ? [{ record: each, index: place.index, point: place.point ?? {} }] : [];
  });
  found.sort((a, b) => a.index - b.index);
  const axis = axisOf(found.map(({ point }) => point));
  const points = found.map(({ record: own, index, point }): Placed => ({ record: own, ...placed(axis, index, point) }));
  return [
    ...drawn(S.charts.scanRates, S.charts.rateAxis, axis, lines(points, rateFigures)),
    ...drawn(S.charts.scanTrips, S.charts.msAxis, axis, lines(points, tripFigures)),
    ...drawn(S.charts.scanLoss, S.charts.lossAxis, axis, lines(points, lossFigures)),
  ];
}

/** `name` undefined: the number of the point. */
interface ScanAxis {
  name: string | undefined;
  label: string;
  log: boolean;
  /** Divides quantities, so that the label's unit holds. */
  scale: number;
}

interface Placed {
  record: NetRecord;
  x: number;
  /** What else was scanned. */
  beside: string;
}

function axisOf(points: readonly Record<string, string>[]): ScanAxis {
  const names = Object.keys(points[0] ?? {}).sort();
  for (const name of names) {
    const quantities = points.map((point) => quantity(point[name] ?? ""));
    const known = quantities.flatMap((each) => each ?? []);
    const values = new Set(known.map((each) => each.value));
    if (known.length < points.length || values.size < 2 || new Set(known.map((each) => each.kind)).size > 1) continue;
    const same = new Set(known.map((each) => each.unit)).size === 1;
    const { unit, scale, kind } = same ? known[0]! : { unit: BASE[known[0]!.kind], scale: 1, kind: known[0]!.kind };
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return { name, label: kind === "count" ? name : `${name}, ${unit}`, log: least > 0 && most / least >= WIDE, scale };
  }
  return { name: undefined, label: S.charts.pointAxis, log: false, scale: 1 };
}

function placed(axis: ScanAxis, index: number, point: Record<string, string>): Omit<Placed, "record"> {
  const others = Object.keys(point).filter((name) => name !== axis.name).sort();
  // Over the number of the point everything is in the number already.
  const beside = axis.name === undefined ? "" : others.map((name) => `, ${name} ${point[name]!}`).join("");
  const x = axis.name === undefined ? index + 1 : quantity(point[axis.name]!)!.value / axis.scale;
  return { x, beside };
}

type Kind = "time" | "rate" | "size" | "count";
interface Quantity {
  /** In ns, bit/s or bytes. */
  value: number;
  unit: string;
  scale: number;
  kind: Kind;
}

/** "20us", "1500Mbit/s", "64KiB" or "8", as records have them: a whole number and a unit. */
export function quantity(text: string): Quantity | undefined {
  const found = /^(\d{1,18}(?:\.\d{1,9})?)([A-Za-z/]*)$/.exec(text.trim());
  if (!found || !Object.hasOwn(UNITS, found[2]!)) return undefined;
  const [kind, scale] = UNITS[found[2]!]!;
  return { value: Number(found[1]) * scale, unit: found[2]!, scale, kind };
}

type Figures = (record: NetRecord) => [string, number][];

function lines(points: readonly Placed[], figures: Figures): Series[] {
  const found = new Map<string, Point[]>();
  for (const { record, x, beside } of points) {
    for (const [name, value] of figures(record)) found.set(name + beside, [...(found.get(name + beside) ?? []), [x, value]]);
  }
  return [...found].map(([name, own]) => ({ name, points: own.sort((a, b) => a[0] - b[0]), look: "line" }));
}

function drawn(title: string, y: string, axis: ScanAxis, all: readonly Series[]): LineChart[] {
  const series = all.filter((each) => each.points.length > 1);
  return series.length > 0 ? [{ kind: "lines", title, x: { label: axis.label, log: axis.log }, y: { label: y }, series }] : [];
}

function rateFigures(record: NetRecord): [string, number][] {
  const named = (name: string, rate: number | undefined): [string, number][] => (rate === undefined ? [] : [[name, rate / 1e6]]);
  const tcp = figuresOf(record).flatMap((own) => [
    ...named(`${S.table.down} ${own.version}`, own.down?.goodput),
    ...named(`${S.table.up} ${own.version}`, own.up?.goodput),
  ]);
  const others = record.versions.flatMap(({ version, udp, path_rates }) => [
    ...(readUdp(udp) ?? []).flatMap((each) => named(`${S.measures.udp(S.table[wayOf(each.pedigree.direction)])} ${version}`, each.goodput)),
    ...(readPathRates(path_rates) ?? []).flatMap((each) =>
      named(`${S.measures.pathRate(each.metric, S.table[wayOf(each.pedigree.direction)], "")} ${version}`, each.rate?.estimate),
    ),
  ]);
  return [...tcp, ...others];
}

function tripFigures(record: NetRecord): [string, number][] {
  const trips = figuresOf(record).flatMap((own): [string, number][] => (own.latency?.rtt ? [[own.version, own.latency.rtt.p50 / 1e6]] : []));
  const ways = record.versions.flatMap(({ version, owd }) => {
    const read = readOwd(owd);
    return (["forward", "reverse"] as const).flatMap((way): [string, number][] => {
      const delay = read?.[way].delay;
      return delay ? [[`${S.measures.owd(S.table[wayOf(way)])} ${version}`, delay.p50 / 1e6]] : [];
    });
  });
  return [...trips, ...ways];
}

/** In percent. */
function lossFigures(record: NetRecord): [string, number][] {
  const tests = figuresOf(record).flatMap((own): [string, number][] => {
    const trips = lossOf(own);
    const streams = own.streams.flatMap(({ direction, lost, sent }): [string, number][] =>
      sent > 0 ? [[`${S.measures.loss(S.table[direction])} ${own.version}`, (100 * lost) / sent]] : [],
    );
    return [...(trips === undefined ? [] : [[`${S.measures.lossTrips} ${own.version}`, 100 * trips] as [string, number]]), ...streams];
  });
  const ways = record.versions.flatMap(({ version, owd }) => {
    const read = readOwd(owd);
    return (["forward", "reverse"] as const).flatMap((way): [string, number][] => {
      const loss = read?.[way].loss;
      return loss === undefined ? [] : [[`${S.measures.loss(S.table[wayOf(way)])} ${version}`, 100 * loss]];
    });
  });
  return [...tests, ...ways];
}

const BASE: Record<Kind, string> = { time: "ns", rate: "bit/s", size: "B", count: "" };
const UNITS: Record<string, [Kind, number]> = {
  "": ["count", 1],
  ns: ["time", 1],
  us: ["time", 1e3],
  ms: ["time", 1e6],
  s: ["time", 1e9],
  "bit/s": ["rate", 1],
  "kbit/s": ["rate", 1e3],
  "Mbit/s": ["rate", 1e6],
  "Gbit/s": ["rate", 1e9],
  B: ["size", 1],
  kB: ["size", 1e3],
  KiB: ["size", 1024],
  MB: ["size", 1e6],
  MiB: ["size", 1024 ** 2],
  GB: ["size", 1e9],
  GiB: ["size", 1024 ** 3],
};
/** Values that reach so far apart are drawn by their ratios. */
const WIDE = 50;
