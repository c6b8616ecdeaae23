// What the figures are good for, in three everyday uses.
//
// The thresholds are what the makers of such programs ask of a network, rounded to the careful side; the sources stand beside
// them. A grade goes by the end of the interval that is worse for the person: a promise that the data do not carry is none.
// Loss counts where it was measured; a path that carries TCP alone tells none, and whoever shows the grade says so.

export type Use = "call" | "game" | "film";
export type Grade = "good" | "fair" | "poor" | "unknown";

/** What a verdict is made of; absent is what was not measured. Rates in bit/s, times in ns. */
export interface Evidence {
  /** Lower bound of the interval where there is one. */
  down?: number | undefined;
  up?: number | undefined;
  idleMedian?: number | undefined;
  /** 95th percentile of the excess over the smallest round trip. */
  variation?: number | undefined;
  /** 95th percentile of the round trip beside a transfer, the worse direction. */
  loaded?: number | undefined;
  /** Share of datagrams, 0 to 1. */
  loss?: number | undefined;
}

export type Figure = keyof Evidence;

/** One figure held against its two thresholds. */
export interface Reason {
  figure: Figure;
  value: number;
  grade: Grade;
  /** The threshold that decided: of "good" the one that was met, else the one that was missed. */
  threshold: number;
}

export interface UseVerdict {
  use: Use;
  grade: Grade;
  /** Worst first. */
  reasons: Reason[];
  /** Figures that the use needs and nobody measured. */
  missing: Figure[];
}

export const USES: readonly Use[] = ["call", "game", "film"];

export function verdict(use: Use, evidence: Evidence): UseVerdict {
  const needs = NEEDS[use];
  const missing = needs.filter((need) => !need.dispensable && evidence[need.figure] === undefined).map((need) => need.figure);
  const reasons = needs.flatMap((need) => held(need, evidence[need.figure]));
  reasons.sort((a, b) => RANK[b.grade] - RANK[a.grade]);
  const worst = reasons[0]?.grade ?? "unknown";
  const grade = missing.length > 0 && worst !== "poor" ? "unknown" : worst;
  return { use, grade, reasons, missing };
}

function held(need: Need, value: number | undefined): Reason[] {
  if (value === undefined) return [];
  const meets = (threshold: number) => (need.more ? value >= threshold : value <= threshold);
  const grade: Grade = meets(need.good) ? "good" : meets(need.fair) ? "fair" : "poor";
  return [{ figure: need.figure, value, grade, threshold: grade === "poor" ? need.fair : need.good }];
}

interface Need {
  figure: Figure;
  more: boolean;
  good: number;
  fair: number;
  /** Not every browser can measure it: without it the others decide. */
  dispensable?: true;
}

const RANK: Record<Grade, number> = { good: 0, fair: 1, unknown: 2, poor: 3 };
const MS = 1e6;
const MBIT = 1e6;

const NEEDS: Record<Use, readonly Need[]> = {
  // Zoom and Teams ask for 3 to 4 Mbit/s each way for a group in high definition and for about 1 in standard definition.
  // ITU-T G.114: 150 ms one way is fine, 400 ms is the end; a call adds some 100 ms of its own, so of round trips 200 and 500.
  // ITU-T G.1010: speech bears 3 % of loss, video 1 %.
  call: [
    { figure: "down", more: true, good: 4 * MBIT, fair: 1 * MBIT },
    { figure: "up", more: true, good: 4 * MBIT, fair: 1 * MBIT },
    { figure: "loaded", more: false, good: 200 * MS, fair: 500 * MS },
    { figure: "variation", more: false, good: 30 * MS, fair: 80 * MS },
    { figure: "loss", more: false, good: 0.01, fair: 0.03, dispensable: true },
  ],
  // Players of fast games notice from about 50 ms on and lose by about 100 (Claypool and Claypool 2006). What is lost comes again with
  // the next state of the game: some percent are seen, more make players jump.
  game: [
    { figure: "idleMedian", more: false, good: 50 * MS, fair: 100 * MS },
    { figure: "variation", more: false, good: 15 * MS, fair: 40 * MS },
    { figure: "loaded", more: false, good: 100 * MS, fair: 200 * MS },
    { figure: "down", more: true, good: 3 * MBIT, fair: 1 * MBIT },
    { figure: "loss", more: false, good: 0.01, fair: 0.05, dispensable: true },
  ],
  // A film comes over TCP, which shows loss in its rate. Netflix asks for 15 Mbit/s, YouTube for 20, others for 25.
  film: [{ figure: "down", more: true, good: 25 * MBIT, fair: 15 * MBIT }],
};
