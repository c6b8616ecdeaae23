// How long the page waits before it takes an answer for lost.
//
// Loss is a verdict: the answer may still be travelling. A patience that is fixed finds no server over a satellite and calls all of its
// answers lost, so patience follows the longest round trip seen so far. The rule is that of crates/base/stats/src/patience.rs.
// Biased: one slow answer makes all later ones waited for longer, which costs time and never makes a loss.

/** Whole ms to wait for something that takes so many round trips, at least `leastMs`. */
export function patienceFor(roundTripMs: number, roundTrips: number, leastMs: number): number {
  return Math.max(leastMs, Math.min(Math.ceil(roundTripMs * roundTrips), MOST_STEP_MS));
}

/** How long single answers are waited for. */
export class AnswerPatience {
  /** `longest` is the longest round trip that is known so far, ms; 0 while nothing is known of the path. */
  constructor(private longest = 0) {}

  /** Takes note of a round trip, in time or late: a late one is the best sign that patience was too short. */
  observe(roundTripMs: number): void {
    this.longest = Math.max(this.longest, roundTripMs);
  }

  /** From now on, ms. */
  get ms(): number {
    const wanted = this.longest > 0 ? this.longest * TIMES : UNKNOWN_MS;
    return Math.min(Math.max(wanted, LEAST_MS), MOST_MS);
  }

  /** After the last request of a flow that was told to end, ms: the answers that are on their way, and no more. */
  get stoppedMs(): number {
    return Math.min(Math.max(this.longest, LEAST_STOPPED_MS), this.ms);
  }
}

/** Longest round trips that are waited for. */
const TIMES = 4;
const LEAST_MS = 1000;
const LEAST_STOPPED_MS = 250;
/** Where nobody has answered yet. */
const UNKNOWN_MS = 5000;
const MOST_MS = 15_000;
/** A step of many round trips, such as opening a data channel. */
const MOST_STEP_MS = 60_000;
