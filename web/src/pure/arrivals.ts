// What has arrived of a transfer down, where the receiver's TCP holds data back from the page.
//
// After a loss it keeps what arrives behind the gap and hands it over at once when the gap is filled: what `read()` has got runs behind by
// up to a whole window, for many round trips, and a count that begins or ends meanwhile is wrong by a tenth in some seconds. What counts
// then is what the receiver's TCP has acknowledged, in order and selectively (RFC 2018), as the server's TCP_INFO knows it: each byte once.
// The rule and its bias are those of the command line, crates/engines/probe/src/held_back.rs. Beside the payload this counts the head of the
// answer and, with TLS, 22 bytes for each 16 KiB.

import type { Tick } from "./warmUp";

/** What the server's TCP knew at the end of a slice, as `SenderTick` of the record: `acked` is of the slice, `held` what waits at its end. */
export interface SenderTick {
  end: number;
  length: number;
  bytes: number;
  /** Absent, like those below, where the server's system does not tell. */
  retransmits?: number;
  rtt?: number;
  cwnd?: number;
  acked?: number;
  held?: number;
}

/** Slices on the server's clock up to the planned end, ns; undefined where nothing was held back, or the server's system does not tell. */
export function arrivals(sender: readonly SenderTick[], planned: number, streams: number): Tick[] | undefined {
  if (!sender.some(({ held = 0 }) => held > 0) || !sender.some(({ acked: some = 0 }) => some > 0)) return undefined;
  let [acked, arrived] = [0, 0];
  const ticks = sender.map(({ end, length, acked: fresh = 0, held = 0 }) => {
    acked += fresh;
    const before = arrived;
    // The two counts are read one stream after the other: what moves from one to the other meanwhile would count twice.
    arrived = Math.max(arrived, acked + held);
    return { end, length, bytes: arrived - before, streams };
  });
  return ticks.filter((tick) => tick.end - tick.length / 2 <= planned);
}
