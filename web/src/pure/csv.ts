// Records as a table for other programs: one row per record, IP version and figure, as RFC 4180 has it.

import { evidenceOf, figuresOf, tellsLoss } from "./figures";
import { otherMeasures } from "./measures";
import type { MatrixResult, NetRecord } from "./record";

export function csvOf(records: readonly NetRecord[]): string {
  const rows = records.flatMap((record) => [...figureRows(record), ...matrixRows(record), ...otherRows(record)]);
  return [HEADER, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

type Row = (string | number | undefined)[];

const HEADER: Row = ["id", "started_at_utc", "label", "command", "version", "figure", "value", "lo", "hi", "unit", "total", "block", "protocol", "run"];

function figureRows(record: NetRecord): Row[] {
  return figuresOf(record).flatMap((own) => {
    const row = (figure: string, value: number | undefined, unit: string, bounds?: { lo: number; hi: number }): Row[] =>
      value === undefined ? [] : [[...about(record), own.version, figure, value, bounds?.lo, bounds?.hi, unit]];
    const { latency, down, up } = own;
    return [
      ...row("rtt_min", latency?.rtt?.min, "ns"),
      ...row("rtt_p50", latency?.rtt?.p50, "ns"),
      ...row("rtt_p95", latency?.rtt?.p95, "ns"),
      ...row("rtt_p99", latency?.rtt?.p99, "ns"),
      ...row("rtt_max", latency?.rtt?.max, "ns"),
      ...row("ipdv_mean", latency?.ipdv?.mean, "ns"),
      ...row("pdv_p95", latency?.pdv?.p95, "ns"),
      ...(latency && tellsLoss(latency) ? [...row("lost_round_trips", latency.lost, ""), ...row("sent_round_trips", latency.sent, "")] : []),
      ...own.streams.flatMap((stream) => [
        ...row(`lost_${stream.direction}`, stream.lost, ""),
        ...row(`sent_${stream.direction}`, stream.sent, ""),
        ...row(`jitter_${stream.direction}`, stream.jitter, "ns"),
      ]),
      ...row("down", down?.goodput, "bit/s", down?.goodput_interval),
      ...row("up", up?.goodput, "bit/s", up?.goodput_interval),
      ...row("rtt_loaded_p95", evidenceOf(own).loaded, "ns"),
    ];
  });
}

/** What only the command line measures. */
function otherRows(record: NetRecord): Row[] {
  return otherMeasures(record).map(({ version, key, value, lo, hi, unit }) => [...about(record), version, key, value, lo, hi, unit === "share" ? "" : unit]);
}

function matrixRows(record: NetRecord): Row[] {
  return record.versions.flatMap((version) =>
    (version.matrix ?? []).flatMap((matrix) => cellRows(matrix).map((row) => [...about(record), version.version, ...row])),
  );
}

function cellRows(matrix: MatrixResult): Row[] {
  return matrix.cells.flatMap((cell) =>
    cell.runs.flatMap((run) => {
      const row = (figure: string, value: number | undefined, unit: string): Row[] =>
        value === undefined ? [] : [[figure, value, undefined, undefined, unit, cell.bytes, cell.block, matrix.protocol, run.round]];
      return [
        ...row("client_time", run.client?.elapsed, "ns"),
        ...row("client_throughput", run.client?.throughput, "bit/s"),
        ...row("client_calls", run.client?.calls, ""),
        ...row("server_time", run.server?.elapsed, "ns"),
        ...row("server_throughput", run.server?.throughput, "bit/s"),
        ...row("server_calls", run.server?.calls, ""),
        ...row("server_bytes", run.server?.bytes, "B"),
        ...row("lost", run.lost, "B"),
      ];
    }),
  );
}

function about(record: NetRecord): Row {
  return [record.id, record.started_at_utc, record.label, record.command];
}

/** A label that begins like a formula would be run by a spreadsheet; an apostrophe keeps it a text. */
function field(value: string | number | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "number") return String(value);
  const inert = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}
