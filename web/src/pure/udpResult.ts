// The results of streams of datagrams in a data channel, as the record has them: docs/methods/data-channel.md.
//
// Sent is what the sender's SCTP let go, received what the receiver counted; lost is their difference, as far as the receiver observed
// the stream. What came after it stopped listening has a fate that nobody knows. What the sender dropped itself is told apart where it
// says so.

import type { DatagramRun } from "../measure/messages";
import type { Health, Pedigree } from "./record";
import { wilson, type Interval } from "./statistics";
import type { StreamTotals } from "./streamCount";
import type { Version } from "./targets";
import { S } from "../strings";

export interface UdpResult {
  pedigree: Pedigree;
  outcome: DatagramRun["outcome"];
  payload: number;
  planned?: number;
  /** Absent where no time passed between two datagrams: no rate was then observed. */
  sent_rate?: number;
  goodput?: number;
  /** A page cannot see what was repeated. */
  exchanges: { clearing?: number; fetching?: number };
  sent: number;
  /** Absent, like the counts below, where the end in question did not tell. */
  not_sent?: number;
  received: number;
  packets_per_second?: number;
  loss: { lost: number; host?: number; network?: number; unknown?: number; ratio?: Interval };
  duplicates?: number;
  reordered?: number;
  ticks: object[];
  sender: UdpEnd;
  receiver: UdpEnd;
  limit: { by: string; side: string; evidence: string };
  health: Health;
}

/** Of an end's many fields those that are used here; the server's own come as they are. */
export interface UdpEnd {
  outcome: DatagramRun["outcome"];
  elapsed: number;
  bytes: number;
  calls?: number;
  /** A page is not told what it costs. */
  cpu?: Record<string, number | null>;
  [other: string]: unknown;
}

/** Undefined where an end has not told what it counted: half a count is none. */
export function udpResult(run: DatagramRun, version: Version): UdpResult | undefined {
  const down = run.direction === "down";
  const server = run.report && serverEnd(run.report, run.outcome);
  const [sender, receiver] = down ? [server, pageReceiver(run)] : [pageSender(run), server];
  if (!sender || !receiver) return undefined;
  const [sent, received] = [numberIn(sender, "sent"), numberIn(receiver, "received")];
  // A receiver that was stopped before the sender's end was heard knows of what came before, and of no more.
  const observed = typeof receiver.observed === "number" ? Math.min(sent, Math.max(received, receiver.observed)) : sent;
  const [lost, unknown] = [Math.max(0, observed - received), sent - observed];
  const drops = receiver.drops as { socket?: unknown } | undefined;
  const dropped = typeof drops?.socket === "number" ? drops.socket + run.discarded : undefined;
  // Where nothing is missing, no counter is needed to know that nothing of it was dropped.
  const host = lost === 0 ? 0 : dropped === undefined ? undefined : Math.min(lost, dropped);
  const planned = run.gap === null ? undefined : Math.round((run.length * 8e9) / run.gap);
  const rate = (end: UdpEnd, bytes: number) => (end.elapsed > 0 && bytes > 0 ? Math.round((bytes * 8e9) / end.elapsed) : undefined);
  const sentRate = rate(sender, sender.bytes);
  // From the first arrival to the last all have come but the first. What was lost at the end lowers the rate as other losses do: it is
  // taken over the time of sending where that was longer, if this end listened until then.
  const wasSentForLonger = typeof receiver.observed !== "number" && sender.elapsed > receiver.elapsed;
  const over = wasSentForLonger ? sender.elapsed : receiver.elapsed;
  const within = wasSentForLonger ? received : received - 1;
  const goodput = rate({ ...receiver, elapsed: over }, wasSentForLonger ? receiver.bytes : receiver.bytes - run.length);
  return {
    pedigree: {
      method: "web-datagrams",
      layer: "payload",
      direction: down ? "reverse" : "forward",
      version,
      clock: down ? "application" : "kernel",
      uncertainty: S.record.datagrams,
    },
    outcome: run.outcome,
    payload: run.length,
    ...(planned === undefined ? {} : { planned }),
    ...(sentRate === undefined ? {} : { sent_rate: sentRate }),
    ...(goodput === undefined ? {} : { goodput }),
    exchanges: {},
    sent,
    ...told(sender, "not_sent"),
    received,
    ...(over > 0 && received > 1 ? { packets_per_second: within / (over / 1e9) } : {}),
    loss: {
      lost,
      ...(host === undefined ? {} : { host, network: lost - host }),
      ...(unknown > 0 ? { unknown } : {}),
      ...(observed > 0 ? { ratio: wilson(lost, observed) } : {}),
    },
    ...told(receiver, "duplicates"),
    ...told(receiver, "reordered"),
    ticks: down && run.page.did === "receive" ? run.page.ticks : (run.ticks ?? []),
    sender,
    receiver,
    limit:
      planned !== undefined && sender.not_sent === 0
        ? { by: "requested_rate", side: "request", evidence: S.record.allLeft }
        : { by: "unknown", side: "unknown", evidence: S.record.heldBack },
    health: {
      ...told(sender, "late", "late_sends"),
      ...told(sender, "worst_lateness"),
      ...told(sender, "not_sent"),
      ...(host === undefined ? {} : { host_drops: host }),
    },
  };
}

function pageSender(run: DatagramRun): UdpEnd | undefined {
  if (run.page.did !== "send") return undefined;
  const { sent, notSent, bytes, elapsed, late, worstLateness } = run.page.sent;
  return { outcome: run.outcome, elapsed, sent, not_sent: notSent, bytes, late, worst_lateness: worstLateness, calls: sent };
}

function pageReceiver(run: DatagramRun): UdpEnd | undefined {
  if (run.page.did !== "receive") return undefined;
  const { totals, reads } = run.page;
  // What the browser's socket dropped, and what the system did, no page is told.
  // A stream that broke off may have had more on its way than this end has seen.
  const observed = run.outcome === "complete" ? {} : { observed: totals.highest };
  return { outcome: run.outcome, ...receiverFields(totals), ...observed, drops: {}, calls: reads };
}

function receiverFields(totals: StreamTotals): { elapsed: number; bytes: number } & Record<string, unknown> {
  return {
    elapsed: totals.elapsed,
    received: totals.received,
    bytes: totals.bytes,
    duplicates: totals.duplicates,
    reordered: totals.reordered,
    reorder_extent: totals.reorderExtent,
    highest: totals.highest,
    loss_runs: totals.lossRuns,
    foreign: totals.foreign,
    ...(totals.jitter === undefined ? {} : { jitter: totals.jitter }),
    ...(totals.delayVariation ? { delay_variation: totals.delayVariation } : {}),
  };
}

function serverEnd(report: Record<string, unknown>, outcome: DatagramRun["outcome"]): UdpEnd {
  return { ...report, outcome, elapsed: numberIn(report, "elapsed"), bytes: numberIn(report, "bytes") };
}

/** A count that an end has told, under its name in the record. */
function told(of: Record<string, unknown>, field: string, name = field): Record<string, number> {
  const value = of[field];
  return typeof value === "number" && Number.isFinite(value) ? { [name]: value } : {};
}

function numberIn(of: Record<string, unknown>, field: string): number {
  const value = of[field];
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
