// Whether a run is what was asked for. Every part of it has a say, and no part that went well makes up for one that did not.

import type { FromMover, Measured, MeasuredVersion, TransferRun } from "../measure/messages";
import type { Transfer } from "./matrixPlan";

export type Outcome = Measured["outcome"];

/** A run of which nothing was measured has failed; one of which a part is missing or was cut short has ended early. */
export function outcomeOfRun(versions: readonly MeasuredVersion[], cancelled: boolean): Outcome {
  if (versions.every(isEmpty)) return "failed";
  return cancelled || versions.some(isCutShort) ? "interrupted" : "complete";
}

function isEmpty({ idle, down, up, matrix }: MeasuredVersion): boolean {
  return !idle && !down && !up && !matrix?.some((run) => run.page);
}

function isCutShort({ troubles, idle, down, up, streams, matrix }: MeasuredVersion): boolean {
  const parts = [down, up, ...(streams ?? []), ...(matrix ?? [])];
  const echoes = [idle, down?.loaded, up?.loaded];
  return (
    Object.keys(troubles ?? {}).length > 0 ||
    parts.some((part) => part !== undefined && part.outcome !== "complete") ||
    echoes.some((echo) => echo?.broken !== undefined)
  );
}

/** What the page counted of a transfer down, and what was planned. */
export type Received = Pick<Extract<FromMover, { say: "received" }>, "broken" | "early" | "bytes" | "elapsed">;
export interface Planned {
  /** ns */
  duration: number;
  /** Of the path, ns: in between two of its windows a sender in slow start sends nothing. */
  roundTrip: number;
  bytes?: number;
}

/**
 * What became of a transfer down. `told` is what the server says of its end, undefined where it said nothing: then a stream that ended
 * before its time was cut off. With the server's word it may have begun late, but bytes must have come for half of the time.
 */
export function outcomeOfDown(received: Received, plan: Planned, told: Outcome | undefined): Pick<TransferRun, "outcome"> & { early: boolean } {
  if (received.broken !== null) return { outcome: "failed", early: false };
  if (told !== undefined && told !== "complete") return { outcome: told, early: false };
  const all = plan.bytes !== undefined && received.bytes >= plan.bytes;
  const early = !all && (told === undefined ? received.early : received.elapsed + 2 * plan.roundTrip < plan.duration / 2);
  if (!early) return { outcome: "complete", early };
  return { outcome: told === undefined ? "failed" : "interrupted", early };
}

/** A transfer of a matrix that did not move all of its bytes has ended early, whatever its ends say: they kept to the plan's time. */
export function outcomeOfBytes(outcome: Outcome, wanted: Transfer, moved: number | undefined): Outcome {
  return outcome === "complete" && (moved === undefined || moved < wanted.bytes) ? "interrupted" : outcome;
}

