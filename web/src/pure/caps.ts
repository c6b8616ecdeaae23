// What the caps of the server's owner made of what was asked for. The server refuses what exceeds one and never trims, so the page asks
// for less; whoever reads the result has to know.

import type { Spec } from "../measure/messages";
import { STREAMS } from "./timePlan";
import { showRate, showSize, showSpan } from "./units";
import { S } from "../strings";

/** A sentence for each cap that changes something of what was asked for, or may have ended it. */
export function capsTold(spec: Spec): string[] {
  const { limits } = spec;
  const told: string[] = [];
  const longest = spec.kind === "quick" ? Math.max(spec.transferMs, spec.idleMs, spec.streamMs) : MATRIX_MS;
  if (limits.duration !== null && limits.duration < longest * 1e6) told.push(S.caps.duration(showSpan(limits.duration)));
  if (spec.kind === "quick" && limits.streams !== null && limits.streams < STREAMS) told.push(S.caps.streams(limits.streams, STREAMS));
  if (spec.kind === "quick" && limits.bytes !== null) told.push(S.caps.bytes(showSize(limits.bytes)));
  if (limits.rate !== null) told.push(S.caps.rate(showRate(limits.rate)));
  return told;
}

/** A transfer of a matrix has at least so much time for its bytes. */
const MATRIX_MS = 10_000;
