import { expect, test } from "vitest";
import { arrivals, type SenderTick } from "../src/pure/arrivals";
import { recordOf } from "../src/pure/record";
import { around, measured } from "./fixture";

const TICK = 100e6;

function sender(ackedAndHeld: readonly [number, number][]): SenderTick[] {
  return ackedAndHeld.map(([acked, held], n) => ({ end: (n + 1) * TICK, length: TICK, bytes: 0, retransmits: 0, rtt: 0, cwnd: 0, acked, held }));
}

const bytesOf = (found: { bytes: number }[] | undefined) => found?.map((tick) => tick.bytes);

// The rows of crates/engines/probe/src/held_back.rs.
test("what waits behind a gap counts when it arrives, once, and is never taken back", () => {
  expect(bytesOf(arrivals(sender([[100, 0], [0, 100], [0, 200], [0, 300], [400, 0], [100, 0]]), 9e9, 1))).toEqual(Array(6).fill(100));
  expect(bytesOf(arrivals(sender([[100, 50], [40, 0], [100, 0]]), 9e9, 1))).toEqual([150, 0, 90]);
});

test("without gaps or without a tale of acknowledgements the page's own count is the better one", () => {
  expect(arrivals([], 9e9, 1)).toBeUndefined();
  expect(arrivals(sender([[100, 0], [100, 0]]), 9e9, 1)).toBeUndefined();
  expect(arrivals(sender([[0, 100], [0, 0]]), 9e9, 1)).toBeUndefined();
});

test("what follows the planned end is left out", () => {
  const told = sender([[100, 1], [100, 1], [7, 1]]);
  expect(arrivals(told, 2 * TICK, 3)).toHaveLength(2);
  expect(arrivals(told, 2 * TICK, 3)![0]).toEqual({ end: TICK, length: TICK, bytes: 101, streams: 3 });
});

test("a record goes by what arrived and says so, and keeps what the page was handed", () => {
  const run = measured();
  const down = run.versions[0]!.down!;
  // A stream that stalls for the last second: the page was handed a quarter less than had arrived.
  down.ticks = down.ticks.map((tick, n) => (n < 20 ? tick : { ...tick, bytes: tick.bytes / 4 }));
  down.senderTicks = down.ticks.map((tick, n) => ({ ...sender([[tick.bytes, 0]])[0]!, end: tick.end, held: n < 20 ? 0 : ((n - 19) * 3e6) / 4 }));
  const told = recordOf(run, around).versions[0]!.tcp![0]!;
  expect([told.counted, told.goodput! < 79e6]).toEqual(["delivered", true]);
  down.arrived = arrivals(down.senderTicks, 3e9, 1)!;
  const found = recordOf(run, around).versions[0]!.tcp![0]!;
  expect(found.counted).toBe("acknowledged");
  expect(found.goodput! / 80e6).toBeGreaterThan(0.99);
  expect(found.receiver_ticks).toEqual(down.ticks);
  expect(found.pedigree.uncertainty).toContain("acknowledged");
});
