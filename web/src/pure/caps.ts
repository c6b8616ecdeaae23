// What the caps of the server's owner made of what was asked for. The server refuses what exceeds one and never trims, so the page asks
// for less; whoever reads the result has to know. Nothing is said of a cap that no transfer came near.

import type { DatagramRun, EndCount, MeasuredVersion, Spec, TransferRun } from "../measure/messages";
import { STREAMS } from "./timePlan";
import { showRate, showSize, showSpan } from "./units";
import { rateOf, type Tick } from "./warmUp";
import { S } from "../strings";

/** A sentence for each cap that changed something of what was asked for, or ended it. */
export function capsTold(spec: Spec, versions: readonly MeasuredVersion[]): string[] {
  const { duration, streams, bytes, rate } = spec.limits;
  const told: string[] = [];
  const longest = spec.kind === "quick" ? Math.max(spec.transferMs, spec.idleMs, spec.streamMs) : MATRIX_MS;
  if (duration !== null && duration < longest * 1e6) told.push(S.caps.duration(showSpan(duration)));
  if (spec.kind === "quick" && streams !== null && streams < STREAMS) told.push(S.caps.streams(streams, STREAMS));
  if (spec.kind === "quick" && bytes !== null && versions.some((version) => reachedBytes(version, bytes))) told.push(S.caps.bytes(showSize(bytes)));
  if (rate !== null && versions.some((version) => reachedRate(version, rate))) told.push(S.caps.rate(showRate(rate)));
  return told;
}

/** Whether a transfer went about as fast as a cap allows for a second, or for as long as it lasted. What rises all the time is below it. */
export function reachesRate(ticks: readonly Tick[], cap: number): boolean {
  const most = Math.max(1, ticks.length - SECOND_OF_TICKS + 1);
  return Array.from({ length: most }, (_, first) => rateOf(ticks.slice(first, first + SECOND_OF_TICKS))).some((rate) => isAbout(rate, cap));
}

function reachedBytes({ down, up, streams = [] }: MeasuredVersion, cap: number): boolean {
  const transfers = transfersOf(down, up).some(({ bytes, handedOver }) => isWithin(BLOCK, Math.max(bytes ?? 0, handedOver ?? 0), cap));
  return transfers || streams.some((run) => isWithin(run.length, streamBytes(run), cap));
}

function reachedRate({ down, up, streams = [], matrix = [] }: MeasuredVersion, cap: number): boolean {
  return (
    transfersOf(down, up).some(({ ticks }) => reachesRate(ticks, cap)) ||
    streams.some(({ length, gap }) => gap !== null && isAbout((length * 8e9) / gap, cap)) ||
    matrix.some(({ page, server }) => [page, server].some((end) => end !== undefined && isAbout(endRate(end), cap)))
  );
}

function transfersOf(...runs: (TransferRun | undefined)[]): TransferRun[] {
  return runs.flatMap((run) => run ?? []);
}

/** What left, as the sending end counted it. */
function streamBytes({ page, report, length }: DatagramRun): number {
  if (page.did === "send") return page.sent.sent * length;
  return typeof report?.sent === "number" ? report.sent * length : 0;
}

function endRate({ bytes, first, elapsed }: EndCount): number {
  return elapsed > 0 ? ((bytes - first) * 8e9) / elapsed : 0;
}

/** Less than a unit of what is moved at once is missing. */
function isWithin(unit: number, moved: number, cap: number): boolean {
  return moved > 0 && moved + unit > cap;
}

function isAbout(rate: number, cap: number): boolean {
  return rate >= ABOUT * cap;
}

/** What a transfer hands over at once, bytes. */
export const BLOCK = 65_536;
/** A transfer of a matrix has at least so much time for its bytes. */
const MATRIX_MS = 10_000;
/** Slices are of 100 ms. */
const SECOND_OF_TICKS = 10;
/** Of a cap: no host keeps a pace exactly. */
const ABOUT = 0.9;
