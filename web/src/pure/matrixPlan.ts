// Which transfers a block matrix makes, and what is wrong with a wish before it is sent: docs/guide/matrix.md.

import { HEADER_LENGTH, MOST_PAYLOAD } from "./datagram";
import { parseSize, showSize } from "./units";

export type Protocol = "tcp" | "tcp_nodelay" | "udp";
export type Way = "up" | "down";

export interface Cell {
  bytes: number;
  block: number;
}

/** The 17 pairs of total and block that S. A. Tan's handheld tool ran in three halls. */
export const SEVENTEEN_PAIRS: readonly Cell[] = [
  ...[50, 100, 500, 1000].map((block) => ({ bytes: 1000, block })),
  ...[50, 100, 500, 1000, 5000, 10_000].map((block) => ({ bytes: 10_000, block })),
  ...[50, 100, 500, 1000, 5000, 10_000, 100_000].map((block) => ({ bytes: 100_000, block })),
];

export interface Transfer extends Cell {
  protocol: Protocol;
  round: number;
}

/** Every cell once in each round; the protocol that goes first changes from cell to cell, so that drift hits both alike. */
export function transfers(cells: readonly Cell[], protocols: readonly Protocol[], runs: number): Transfer[] {
  const planned: Transfer[] = [];
  for (let round = 0; round < runs; round += 1) {
    cells.forEach((cell, n) => {
      const order = (n + round) % 2 === 0 ? protocols : [...protocols].reverse();
      for (const protocol of order) if (fits(cell, protocol)) planned.push({ ...cell, protocol, round });
    });
  }
  return planned;
}

/** A block that travels as a datagram must fit one, and have room for its header. */
export function fits(cell: Cell, protocol: Protocol): boolean {
  return protocol !== "udp" || (cell.block >= HEADER_LENGTH && cell.block <= MOST_PAYLOAD);
}

/** What a person typed. */
export interface Wish {
  /** UDP-like is among what is chosen. */
  udp: boolean;
  sweep: boolean;
  total: string;
  block: string;
  runs: string;
}

export type Field = "total" | "block" | "runs";
export type Complaints = Partial<Record<Field, Complaint>>;

/** A reason of the list in strings.ts, with the figures to fill in. */
export interface Complaint {
  reason: "notASize" | "nothing" | "tooLarge" | "blockTooLarge" | "blockOverTotal" | "tooManyWrites" | "notACount" | "overCap" | "blockOverDatagram" | "blockBelowHeader";
  given?: string;
  bound?: string;
}

export type Checked = { cells: readonly Cell[]; runs: number } | { complaints: Complaints };

/** `cap` is the owner's cap on the bytes of a transfer. */
export function check(wish: Wish, cap: number | null): Checked {
  const complaints: Complaints = {};
  const runs = /^\s*\d{1,4}\s*$/.test(wish.runs) ? Number(wish.runs) : 0;
  if (runs < 1 || runs > MOST_RUNS) complaints.runs = { reason: "notACount", bound: `${MOST_RUNS}` };
  const cells = wish.sweep ? SEVENTEEN_PAIRS : oneCell(wish, complaints);
  const largest = Math.max(0, ...cells.map((cell) => cell.bytes));
  if (cap !== null && largest > cap) complaints.total = { reason: "overCap", given: showSize(largest), bound: showSize(cap) };
  return Object.keys(complaints).length > 0 ? { complaints } : { cells, runs };
}

function oneCell(wish: Wish, complaints: Complaints): Cell[] {
  const bytes = sized(wish.total, "total", complaints, MOST_BYTES, "tooLarge");
  const block = sized(wish.block, "block", complaints, MOST_BLOCK, "blockTooLarge");
  if (bytes === undefined || block === undefined) return [];
  if (wish.udp && block > MOST_PAYLOAD) complaints.block = { reason: "blockOverDatagram", given: showSize(block), bound: showSize(MOST_PAYLOAD) };
  else if (wish.udp && block < HEADER_LENGTH) complaints.block = { reason: "blockBelowHeader", given: showSize(block), bound: showSize(HEADER_LENGTH) };
  else if (block > bytes) complaints.block = { reason: "blockOverTotal", given: showSize(block), bound: showSize(bytes) };
  else if (Math.ceil(bytes / block) > MOST_WRITES) {
    complaints.block = { reason: "tooManyWrites", given: `${Math.ceil(bytes / block)}`, bound: `${MOST_WRITES}` };
  }
  return [{ bytes, block }];
}

function sized(
  text: string,
  field: "total" | "block",
  complaints: Complaints,
  most: number,
  over: "tooLarge" | "blockTooLarge",
): number | undefined {
  const size = parseSize(text);
  if (size === undefined) complaints[field] = { reason: "notASize", given: text.slice(0, 30) };
  else if (size === 0) complaints[field] = { reason: "nothing" };
  else if (size > most) complaints[field] = { reason: over, given: showSize(size), bound: showSize(most) };
  else return size;
  return undefined;
}

const MOST_RUNS = 100;
/** The bounds of `netaware matrix`. */
const MOST_BYTES = 1e9;
const MOST_BLOCK = 1024 * 1024;
/** Each is a message of its own: a million take a phone about a minute. */
const MOST_WRITES = 1e6;
