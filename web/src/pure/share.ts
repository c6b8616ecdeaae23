// A result as a link: the record itself travels in the fragment, which browsers never send to a server.
//
// Whoever opens a link believes nothing in it: the length is bounded before anything is unpacked, unpacking stops at its own bound,
// and what comes out is read field by field (readRecord.ts).

import { readRecord } from "./readRecord";
import type { NetRecord } from "./record";

/** Undefined where the record does not fit a link. */
export async function linkOf(record: NetRecord, page: string): Promise<string | undefined> {
  const packed = await pack(JSON.stringify(thinned(record)));
  const link = `${page.split("#")[0]}#${PREFIX}${packed}`;
  return packed.length <= LONGEST_FRAGMENT ? link : undefined;
}

export function isShared(fragment: string): boolean {
  return fragment.replace(/^#/, "").startsWith(PREFIX);
}

export async function recordOfFragment(fragment: string): Promise<NetRecord | undefined> {
  const packed = fragment.replace(/^#/, "").slice(PREFIX.length);
  if (!isShared(fragment) || packed.length > LONGEST_FRAGMENT || !/^[zj][A-Za-z0-9_-]+$/.test(packed)) return undefined;
  try {
    return readRecord(JSON.parse(await unpack(packed)));
  } catch {
    return undefined;
  }
}

/** What a reader of a link looks at: figures and pictures, not every slice and every stream. */
function thinned(record: NetRecord): unknown {
  return JSON.parse(
    JSON.stringify(record, (name, value: unknown) => {
      if (name === "sender_ticks" || name === "streams_ends" || name === "cpu") return undefined;
      if ((name === "sender" || name === "receiver") && typeof value === "object") return { ...value, streams: [] };
      if (name === "receiver_ticks" && Array.isArray(value)) return everySo(value, MOST_TICKS);
      return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
    }),
  );
}

function everySo(values: readonly unknown[], most: number): unknown[] {
  const step = Math.max(1, Math.ceil(values.length / most));
  return values.filter((_, n) => n % step === 0);
}

async function pack(json: string): Promise<string> {
  const plain = new TextEncoder().encode(json);
  if (typeof CompressionStream === "undefined") return `j${base64url(plain)}`;
  const squeezed = new Blob([plain]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `z${base64url(await collect(squeezed, LARGEST_RECORD))}`;
}

async function unpack(packed: string): Promise<string> {
  const bytes = fromBase64url(packed.slice(1));
  if (packed.startsWith("j")) return new TextDecoder().decode(bytes);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new TextDecoder().decode(await collect(stream, LARGEST_RECORD));
}

/** A few kilobytes can unpack to gigabytes: reading stops at the bound. */
async function collect(stream: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new RangeError("larger than any record");
    }
    parts.push(value);
  }
  const all = new Uint8Array(new ArrayBuffer(length));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function base64url(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Uint8Array(new ArrayBuffer(binary.length));
  for (let n = 0; n < binary.length; n += 1) bytes[n] = binary.charCodeAt(n);
  return bytes;
}

const PREFIX = "r=";
/** Longer links are cut by messengers. */
const LONGEST_FRAGMENT = 32_768;
const LARGEST_RECORD = 512 * 1024;
const MOST_TICKS = 50;
