// How fine the browser's clock is, and whether it let our timers run.
//
// Browsers round performance.now() to hinder attacks through shared caches: 5 us where the page is isolated, 100 us in Chromium
// where not, 1 ms in Firefox and Safari. A step is an error of a single round trip, so it stands beside the figures.

/** Smallest step seen, ns. Looks for at most 20 ms. */
export function clockStep(): number {
  const until = performance.now() + 20;
  let least = Number.POSITIVE_INFINITY;
  let last = performance.now();
  for (let steps = 0; steps < 50 && last < until; ) {
    const now = performance.now();
    if (now > last) {
      least = Math.min(least, now - last);
      steps += 1;
      last = now;
    }
  }
  return Number.isFinite(least) ? Math.round(least * 1e6) : 20e6;
}

/**
 * Counts pauses of a timer that should fire every 100 ms. While a device sleeps its monotonic clock may stand still, so the time of day is
 * looked at, too; setting that forward by half a second looks like a sleep.
 */
export class PauseWatch {
  pauses = 0;
  /** ns */
  longest = 0;
  private last = performance.now();
  private lastOfDay = Date.now();
  private readonly timer = setInterval(() => this.look(), EVERY_MS);

  stop(): void {
    this.look();
    clearInterval(this.timer);
  }

  private look(): void {
    const [now, ofDay] = [performance.now(), Date.now()];
    const beyond = Math.max(now - this.last, ofDay - this.lastOfDay) - EVERY_MS;
    [this.last, this.lastOfDay] = [now, ofDay];
    if (beyond < PAUSE_MS) return;
    this.pauses += 1;
    this.longest = Math.max(this.longest, Math.round(beyond * 1e6));
  }
}

const EVERY_MS = 100;
/** A busy phone may be late by a few tens of ms; a background tab is late by a second. */
const PAUSE_MS = 400;
