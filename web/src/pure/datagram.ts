// The datagrams of docs/protocol.md §4, as a page writes and reads them, one in each message of a data channel.
//
//   0     2     3     4       8          16        24          32          40
//   "Na"  kind  zero  flow    sequence   sent at   received    answered    …      the last two only in an echo's reply

export const KIND = { request: 5, reply: 6, data: 7, end: 8 } as const;

export interface DatagramHeader {
  kind: number;
  flow: number;
  seq: number;
  /** ns of the sender's clock. */
  sentAt: number;
}

/** Writes the header; `bytes` must have room for it. */
export function writeHeader(bytes: DataView, { kind, flow, seq, sentAt }: DatagramHeader): void {
  bytes.setUint16(0, MAGIC);
  bytes.setUint16(2, kind << 8);
  bytes.setUint32(4, flow);
  bytes.setBigUint64(8, BigInt(seq));
  bytes.setBigUint64(16, BigInt(Math.max(0, Math.round(sentAt))));
}

/** Undefined for what is no datagram of ours, or has a number that no stream of a page reaches. */
export function readHeader(bytes: DataView): DatagramHeader | undefined {
  if (bytes.byteLength < HEADER_LENGTH || bytes.getUint16(0) !== MAGIC) return undefined;
  const [seq, sentAt] = [Number(bytes.getBigUint64(8)), Number(bytes.getBigUint64(16))];
  if (!Number.isSafeInteger(seq)) return undefined;
  return { kind: bytes.getUint8(2), flow: bytes.getUint32(4), seq, sentAt };
}

/** What the responder says of its own time in a reply, ns. */
export function responderTime(bytes: DataView): number {
  return Number(bytes.getBigUint64(32) - bytes.getBigUint64(24));
}

export const HEADER_LENGTH = 24;
/** Shortest echo with room for the responder's stamps. */
export const ECHO_LENGTH = 44;
/** Longest message of a data channel: each then travels in a packet of its own (docs/methods/data-channel.md). */
export const MOST_PAYLOAD = 1024;
const MAGIC = 0x4e61;
