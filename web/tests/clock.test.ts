import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PauseWatch } from "../src/measure/clock";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("timers that come on time are no pauses, a long one is told with its length", () => {
  const watch = new PauseWatch();
  vi.advanceTimersByTime(5000);
  expect(watch.pauses).toBe(0);
  // The processor was elsewhere: time went on, the timer did not.
  vi.setSystemTime(Date.now() + 2000);
  vi.advanceTimersByTime(100);
  watch.stop();
  expect(watch.pauses).toBe(1);
  expect(Math.abs(watch.longest - 2e9)).toBeLessThan(2e8);
});

test("a device that slept with its monotonic clock standing still has paused", () => {
  const watch = new PauseWatch();
  vi.advanceTimersByTime(300);
  const standing = performance.now();
  vi.setSystemTime(Date.now() + 60_000);
  expect(performance.now()).toBe(standing);
  vi.advanceTimersByTime(100);
  watch.stop();
  expect([watch.pauses, Math.round(watch.longest / 1e9)]).toEqual([1, 60]);
});
