// Puts figures into words where more than one view needs the same words.

import type { LatencyResult, NetRecord, TcpResult } from "../pure/record";
import type { Reason, UseVerdict } from "../pure/verdict";
import type { Measure } from "../pure/measures";
import { showBounds, showRate, showSize, showSpan, showTrip, splitRate, splitShare } from "../pure/units";
import { S } from "../strings";

function showReason(reason: Reason, clockStep: number): string {
  const more = reason.figure === "down" || reason.figure === "up";
  const show = more ? showRate : reason.figure === "loss" ? showShare : (ns: number) => showTrip(ns, clockStep);
  const word = reason.grade === "good" ? S.verdict.met : S.verdict.missed;
  return word(S.figures[reason.figure], show(reason.value), show(reason.threshold), more);
}

/** What decides: of a good use the figure nearest to its threshold is not known, so the first is told; else all that miss. */
export function because(verdict: UseVerdict, clockStep: number): string {
  const told = verdict.grade === "good" ? verdict.reasons.slice(0, 2) : verdict.reasons.filter((reason) => reason.grade !== "good");
  const missing = verdict.missing.length > 0 ? [S.verdict.missing(verdict.missing.map((figure) => S.figures[figure]).join(", "))] : [];
  return [...told.map((reason) => showReason(reason, clockStep)), ...missing].join("; ");
}

function showShare(share: number): string {
  return splitShare(share).join(" ");
}

export function showMeasure({ value, unit }: Measure): string {
  if (unit === "bit/s") return showRate(value);
  if (unit === "ns") return showSpan(value);
  return unit === "B" ? showSize(value) : showShare(value);
}

export function showRateOf(tcp: TcpResult | undefined): string {
  return tcp?.goodput === undefined ? S.table.notMeasured : showRate(tcp.goodput);
}

export function showInterval(tcp: TcpResult | undefined): string {
  const interval = tcp?.goodput_interval;
  return interval ? showBounds(interval.lo, interval.hi, splitRate, S.table.to) : "";
}

export function showRtt(latency: LatencyResult | undefined, figure: "p50" | "p95" | "p99" | "min" | "max", clockStep: number): string {
  const rtt = latency?.rtt;
  return rtt ? showTrip(rtt[figure], clockStep) : S.table.notMeasured;
}

export function kindOf(record: NetRecord): string {
  return S.results.kinds[record.command] ?? record.command;
}

export function whenOf(record: NetRecord): string {
  return dateOf(record.started_at);
}

/** Of ns since 1970. */
export function dateOf(wall: number): string {
  return new Date(wall / 1e6).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** Label or kind, and when: what a result is called in lists and legends. */
export function nameOf(record: NetRecord): string {
  return `${record.label || kindOf(record)} · ${whenOf(record)}`;
}
