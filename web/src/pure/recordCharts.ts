// The pictures that fit a record: rates over time, round trips as a histogram, a matrix over block size, path rates.

import type { Chart, LineChart, Point, Series } from "./chart";
import { binned } from "./delay";
import { otherCharts } from "./otherCharts";
import type { LatencyResult, MatrixCell, MatrixResult, NetRecord, TcpResult, VersionResult } from "./record";
import { showSize } from "./units";
import { continued, rateOf, type Tick } from "./warmUp";
import { S } from "../strings";

export function chartsOf(record: NetRecord): Chart[] {
  const own = [rates(record), histogramOf(record), ...record.versions.flatMap(matrixCharts), ...otherCharts(record)];
  return own.flatMap((chart) => chart ?? []);
}

function rates(record: NetRecord): LineChart | undefined {
  const series = record.versions.flatMap((version) => {
    const all = version.tcp ?? [];
    const told = (tcp: TcpResult) => (all.some((each) => each.streams !== tcp.streams) ? ` ×${tcp.streams}` : "");
    return all.flatMap((tcp) => rateSeries(tcp, version.version + told(tcp)));
  });
  return series.length > 0 ? overTime(S.charts.rates, series) : undefined;
}

function overTime(title: string, series: Series[]): LineChart {
  return { kind: "lines", title, x: { label: S.charts.secondsAxis }, y: { label: S.charts.rateAxis }, series };
}

function rateSeries(tcp: TcpResult, name: string): Series[] {
  const ticks = tcp.receiver_ticks ?? [];
  if (ticks.length < 2) return [];
  const way = tcp.pedigree.direction === "reverse" ? S.table.down : S.table.up;
  return [{ name: `${way} ${name}`, points: continued(ticks).map(ratePoint), look: "line" }];
}

function ratePoint(tick: Tick): Point {
  return [tick.end / 1e9, rateOf([tick]) / 1e6];
}

function histogramOf(record: NetRecord): LineChart | undefined {
  const series = record.versions.flatMap((version) => (version.latency ? histogramSeries(version.latency, version.version) : []));
  if (series.length === 0) return undefined;
  return { kind: "lines", title: S.charts.histogram, x: { label: S.charts.msAxis, log: true }, y: { label: S.charts.countAxis }, series };
}

/** Bins of equal width where they were asked for. */
function histogramSeries(latency: LatencyResult, name: string): Series[] {
  const bins = latency.bins?.bins ? binned(latency.bins.bins) : (latency.histogram?.bins ?? []);
  return bins.length > 0 ? [{ name, points: bins.map(([edge, count]): Point => [Math.max(edge, 1) / 1e6, count]), look: "bars" }] : [];
}

function matrixCharts(version: VersionResult): LineChart[] {
  const series = (version.matrix ?? []).flatMap(matrixSeries);
  if (series.length === 0) return [];
  const title = `${S.charts.matrix}, ${version.version}`;
  return [{ kind: "lines", title, x: { label: S.charts.blockAxis, log: true }, y: { label: S.charts.rateAxis, log: true }, series }];
}

/** One line per total, of the sender's throughput: the receiver has none where a short total comes at once. */
function matrixSeries(matrix: MatrixResult): Series[] {
  const totals = [...new Set(matrix.cells.map((cell) => cell.bytes))];
  const series = totals.map(
    (total): Series => ({
      name: `${S.matrix[matrix.protocol]} ${showSize(total)}`,
      points: matrix.cells.filter((cell) => cell.bytes === total).flatMap((cell) => senderPoint(matrix, cell)),
      look: "line",
    }),
  );
  return series.filter((each) => each.points.length > 0);
}

function senderPoint(matrix: MatrixResult, cell: MatrixCell): Point[] {
  const sender = matrix.pedigree.direction === "reverse" ? cell.server_throughput : cell.client_throughput;
  return sender ? [[cell.block, sender.estimate / 1e6]] : [];
}
