// What the server says about itself. Asked when the page opens and whenever somebody wants to know anew.

import type { Limits } from "../measure/session";
import { patienceFor } from "../pure/patience";
import { fields, list, number, oneOf, text, truth, type Reader } from "../pure/shape";
import { Observable } from "./observable";

export interface About {
  software: string;
  host: string;
  addresses: string[];
  limits: Limits;
  results: "none" | "read" | "write";
  datagrams: string[];
  /** Whether sessions need a key. */
  key: boolean;
  /** SHA-256 of the certificate that the server says it has. */
  certificate?: string;
  /** How long the answer took, ms: a round trip, and some more where the connection was opened for it. */
  answeredMs: number;
}

export type Server = { state: "asking" } | { state: "here"; about: About } | { state: "silent" };

export const server = new Observable<Server>({ state: "asking" });

export async function askServer(): Promise<void> {
  const begun = performance.now();
  try {
    const response = await fetch("api/v1/about", { cache: "no-store", signal: AbortSignal.timeout(patienceMs()) });
    const answeredMs = performance.now() - begun;
    const about = readAbout(await response.json());
    server.set(about ? { state: "here", about: { ...about, answeredMs } } : { state: "silent" });
  } catch {
    server.set({ state: "silent" });
  }
}

/** By the round trip of the page itself; one that a service worker had kept tells nothing of the path. */
function patienceMs(): number {
  const [page] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const isFromServer = page !== undefined && page.workerStart === 0 && page.transferSize > 0;
  return isFromServer ? patienceFor(page.responseStart - page.requestStart, ROUND_TRIPS, PATIENCE_MS) : UNKNOWN_MS;
}

const caps = fields({}, { duration: number, rate: number, bytes: number, streams: number });
const told = fields(
  { software: text(60) },
  {
    host: text(100),
    addresses: list(text(60), 64),
    limits: caps,
    results: oneOf("none", "read", "write"),
    datagrams: list(text(20), 8),
    secure: truth,
    key: truth,
    certificate: text(64),
  },
);

const readAbout: Reader<Omit<About, "answeredMs">> = (value) => {
  const read = told(value);
  if (!read?.software.startsWith("netaware")) return undefined;
  const limits = { duration: null, rate: null, bytes: null, streams: null, ...read.limits };
  return { host: "", addresses: [], results: "none", datagrams: [], key: false, ...read, limits };
};

const PATIENCE_MS = 5000;
/** TCP, TLS, question and answer. */
const ROUND_TRIPS = 4;
const UNKNOWN_MS = 10_000;
