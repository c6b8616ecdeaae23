// Lays charts out as plain shapes. One layout serves two renderers: the page draws the shapes with its style sheet's colours, and
// an export writes them into a file with colours of its own (svg.ts).

import { ascending } from "./statistics";
import { threeDigits } from "./units";

export type Point = [number, number];

export interface Series {
  name: string;
  points: Point[];
  /** Bars stand on zero, from one point's x to the next one's; an outline is a line without dots at its corners. */
  look: "line" | "dots" | "bars" | "outline";
}

export interface LineChart {
  kind: "lines";
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
}

/** A value with its spread for each of several names. */
export interface SpreadChart {
  kind: "spreads";
  title: string;
  y: Axis;
  rows: { name: string; lo: number; mid: number; hi: number; values: number[] }[];
}

export type Chart = LineChart | SpreadChart;

export interface Axis {
  label: string;
  log?: boolean;
}

/** `tone` is "axis", "grid" or the number of a series. */
export type Tone = "axis" | "grid" | number;
export type Shape =
  | { is: "line"; tone: Tone; points: Point[] }
  | { is: "dot"; tone: Tone; at: Point; r: number }
  | { is: "bar"; tone: Tone; at: Point; size: Point }
  | { is: "text"; at: Point; anchor: "start" | "middle" | "end"; text: string; strong: boolean };

export interface Picture {
  width: number;
  height: number;
  shapes: Shape[];
}

export function layOut(chart: Chart, width: number, height: number): Picture {
  const shapes = chart.kind === "lines" ? lines(chart, width, height) : spreads(chart, width, height);
  return { width, height, shapes };
}

interface Scale {
  (value: number): number;
  ticks: number[];
  show(value: number): string;
}

function lines(chart: LineChart, width: number, height: number): Shape[] {
  const points = chart.series.flatMap((series) => series.points).filter((point) => drawable(point, chart));
  const legend = legendOf(chart);
  const [top, bottom] = [LINE + 6, height - LINE * 2 - 4 - legend];
  const fromZero = !chart.y.log;
  const x = scale(points.map((point) => point[0]), chart.x.log ?? false, false, LEFT, width - RIGHT, 5);
  const y = scale(points.map((point) => point[1]), chart.y.log ?? false, fromZero, bottom, top, 4);
  const frame = [...gridOf(x, y, top, bottom, width), ...labels(chart.x.label, chart.y.label, width, bottom)];
  const drawn = chart.series.flatMap((series, tone) => draw(series, tone, chart, x, y, bottom));
  const names = chart.series.length > 1 ? chart.series.flatMap((series, tone) => legendEntry(series.name, tone, width, bottom)) : [];
  return [...frame, ...drawn, ...names];
}

/** Names of lines take two columns. */
function legendOf(chart: Chart): number {
  return chart.kind === "lines" && chart.series.length > 1 ? Math.ceil(chart.series.length / 2) * LINE : 0;
}

/** What a picture needs beyond the height of others, so that a long legend leaves it room. */
export function extraHeight(chart: Chart): number {
  return Math.max(0, legendOf(chart) - USUAL_LEGEND);
}

function drawable([x, y]: Point, chart: LineChart): boolean {
  if (!Number.isFinite(x) || !Number.isFinite(y)) return false;
  return !(chart.x.log && x <= 0) && !(chart.y.log && y <= 0);
}

function draw(series: Series, tone: number, chart: LineChart, x: Scale, y: Scale, bottom: number): Shape[] {
  const points = series.points.filter((point) => drawable(point, chart)).map(([px, py]): Point => [x(px), y(py)]);
  if (series.look === "bars") return bars(points, tone, bottom);
  const dots = points.map((at): Shape => ({ is: "dot", tone, at, r: series.look === "dots" ? 2.5 : 1.8 }));
  if (series.look === "dots" || points.length < 2) return dots;
  const line: Shape = { is: "line", tone, points };
  return points.length <= MOST_DOTS && series.look !== "outline" ? [line, ...dots] : [line];
}

function bars(points: readonly Point[], tone: number, bottom: number): Shape[] {
  const gaps = points.slice(1).map(([px], n) => px - points[n]![0]);
  const width = Math.max(1.5, Math.min(18, ...gaps) - 1);
  return points.map(([px, py]): Shape => ({ is: "bar", tone, at: [px, py], size: [width, Math.max(0.5, bottom - py)] }));
}

function gridOf(x: Scale, y: Scale, top: number, bottom: number, width: number): Shape[] {
  const across = y.ticks.flatMap((value): Shape[] => [
    { is: "line", tone: "grid", points: [[LEFT, y(value)], [width - RIGHT, y(value)]] },
    { is: "text", at: [LEFT - 5, y(value) + 4], anchor: "end", text: y.show(value), strong: false },
  ]);
  const along = x.ticks.map((value): Shape => {
    const text = x.show(value);
    // The last one stands at the edge of the picture, which would cut off its half.
    const middle = Math.min(x(value), width - (text.length * LETTER) / 2 - 1);
    return { is: "text", at: [middle, bottom + LINE], anchor: "middle", text, strong: false };
  });
  const axis: Shape = { is: "line", tone: "axis", points: [[LEFT, top], [LEFT, bottom], [width - RIGHT, bottom]] };
  return [...across, ...along, axis];
}

function labels(x: string, y: string, width: number, bottom: number): Shape[] {
  return [
    { is: "text", at: [width - RIGHT, bottom + LINE * 2], anchor: "end", text: x, strong: true },
    { is: "text", at: [2, LINE - 2], anchor: "start", text: y, strong: true },
  ];
}

function legendEntry(name: string, tone: number, width: number, bottom: number): Shape[] {
  const column = tone % 2;
  const left = LEFT + (column * (width - LEFT)) / 2;
  const middle = bottom + LINE * 2 + 8 + Math.floor(tone / 2) * LINE;
  const most = Math.floor((width - LEFT) / 2 / LETTER) - 3;
  const short = name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name;
  return [
    { is: "bar", tone, at: [left, middle], size: [10, 3] },
    { is: "text", at: [left + 15, middle + 5], anchor: "start", text: short, strong: false },
  ];
}

function spreads(chart: SpreadChart, width: number, height: number): Shape[] {
  const [top, bottom] = [LINE + 6, height - LINE - 8];
  const y = scale(chart.rows.flatMap((row) => [row.lo, row.mid, row.hi]), chart.y.log ?? false, !chart.y.log, bottom, top, 4);
  const step = (width - LEFT - RIGHT) / Math.max(1, chart.rows.length);
  const rows = chart.rows.flatMap((row, tone): Shape[] => {
    const middle = LEFT + step * (tone + 0.5);
    const most = Math.max(2, Math.floor(step / LETTER));
    const name = row.name.length > most ? `${row.name.slice(0, most - 1)}…` : row.name;
    return [
      { is: "line", tone, points: [[middle, y(row.lo)], [middle, y(row.hi)]] },
      { is: "bar", tone, at: [middle - 12, y(row.mid) - 2], size: [24, 4] },
      ...row.values.map((value): Shape => ({ is: "dot", tone, at: [middle, y(value)], r: 3 })),
      { is: "text", at: [middle, bottom + LINE + 2], anchor: "middle", text: name, strong: true },
    ];
  });
  const none = Object.assign((value: number) => value, { ticks: [], show: String });
  return [...gridOf(none, y, top, bottom, width), { is: "text", at: [2, LINE - 2], anchor: "start", text: chart.y.label, strong: true }, ...rows];
}

function scale(values: readonly number[], log: boolean, fromZero: boolean, from: number, to: number, wanted: number): Scale {
  const sorted = ascending(values);
  const [least, most] = [sorted[0] ?? (log ? 1 : 0), sorted[sorted.length - 1] ?? 1];
  const ticks = log ? decades(least, most) : even(fromZero ? Math.min(0, least) : least, most, wanted);
  const low = log ? Math.min(least, ticks[0] ?? least) : Math.min(ticks[0] ?? least, least);
  const high = Math.max(most, ticks[ticks.length - 1] ?? most);
  const on = (value: number) => (log ? Math.log10(value) : value);
  const span = on(high) - on(low) || 1;
  const place = (value: number) => from + ((on(value) - on(low)) / span) * (to - from);
  return Object.assign(place, { ticks, show: shown });
}

function even(low: number, high: number, wanted: number): number[] {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((each) => raw <= each * power) ?? 10);
  const first = Math.floor(low / step);
  const last = Math.ceil((low + span) / step - 1e-9);
  return Array.from({ length: Math.min(last - first + 1, 20) }, (_, n) => (first + n) * step);
}

function decades(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
  return Array.from({ length: Math.min(last - first + 1, 16) }, (_, n) => 10 ** (first + n));
}

function shown(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trimmed(value / 1e9)}G`;
  if (size >= 1e6) return `${trimmed(value / 1e6)}M`;
  if (size >= 1e4) return `${trimmed(value / 1e3)}k`;
  return trimmed(value);
}

function trimmed(value: number): string {
  const text = threeDigits(value);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

const LEFT = 42;
const RIGHT = 10;
const LINE = 15;
/** Width of a letter in the mean. */
const LETTER = 6.6;
const MOST_DOTS = 24;
const USUAL_LEGEND = 4 * LINE;
