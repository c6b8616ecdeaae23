// What the server's report of a test says that somebody counted.

/** Bytes and the time they took, of TCP; undefined where the report leaves either out or stands for an end that never began. */
export function countsOf(report: Record<string, unknown>): { bytes: number; elapsed: number } | undefined {
  const { bytes, elapsed } = report;
  if (typeof bytes !== "number" || typeof elapsed !== "number") return undefined;
  return standsForNobody(report, [bytes]) ? undefined : { bytes, elapsed };
}

/** The same of a stream of datagrams: `counted` is "sent" or "received", whichever end the server was. */
export function countsDatagrams(report: Record<string, unknown>, counted: "sent" | "received"): boolean {
  const count = report[counted];
  return typeof count === "number" && !standsForNobody(report, [count, report.not_sent]);
}

/**
 * Where a test could not begin at the server, its report is all zeros. What ran has used processor time, and tells it where the system
 * does. The rule is that of crates/apps/prober/src/bulk.rs.
 */
function standsForNobody({ cpu, outcome }: Record<string, unknown>, counts: readonly unknown[]): boolean {
  const nothing = counts.every((count) => count === undefined || count === 0);
  return nothing && (cpu === undefined || cpu === null) && outcome !== "complete";
}
