// What the page and its workers say to each other. Times are nanoseconds from the worker's own zero unless told otherwise.

import type { SenderTick } from "../pure/arrivals";
import type { RoundTrip } from "../pure/delay";
import type { Protocol, Transfer, Way } from "../pure/matrixPlan";
import type { Candidate, Version } from "../pure/targets";
import type { Tick } from "../pure/warmUp";
import type { FlowResult } from "./flow";
import type { PeerAnswer, PeerRequest, PeerTrouble } from "./peers";
import type { ControlMessage, Limits } from "./session";

/** Names of the workers: one script, three parts to play. */
export type Role = "runner" | Helper;
export type Helper = "mover" | "echoer";

/**
 * The page starts the runner's helpers: a worker that a worker starts hangs both now and then in Firefox. Such a helper talks with the
 * runner through the port, and is known by the number.
 */
export type CrewRequest = { say: "hire"; helper: Helper; number: number; port: MessagePort } | { say: "dismiss"; number: number };

/** One end of what two workers say to each other. */
export interface Talk<Told, Heard> {
  postMessage(message: Told): void;
  onmessage: ((event: MessageEvent<Heard>) => void) | null;
  close(): void;
}

export interface QuickSpec {
  kind: "quick";
  candidates: Candidate[];
  /** Only these are measured. */
  versions: Version[];
  limits: Limits;
  /** Of the server's owner; `""` without. */
  key: string;
  /** As far as it is known before there is a session, ms; 0 where it is not. */
  roundTripMs: number;
  idleMs: number;
  transferMs: number;
  /** The server offers datagrams. */
  datagrams: boolean;
  /** Of streams of datagrams; zero: echoes alone. */
  streamMs: number;
}

export interface MatrixSpec {
  kind: "matrix";
  candidates: Candidate[];
  versions: Version[];
  limits: Limits;
  key: string;
  roundTripMs: number;
  way: Way;
  plan: Transfer[];
}

export type Spec = QuickSpec | MatrixSpec;
export type ToRunner = { say: "run"; spec: Spec } | { say: "cancel" } | PeerAnswer;

export type Phase = "latency" | "loss" | "down" | "up";

export type FromRunner =
  | { say: "reached"; reached: Candidate[]; missing: Missing[]; clockStep: number }
  | { say: "queued"; version: Version; place: number; wait: number }
  | { say: "phase"; version: Version; phase: Phase; duration: number }
  | { say: "trips"; version: Version; beside: Phase; trips: RoundTrip[] }
  | { say: "ticks"; version: Version; direction: "down" | "up"; ticks: Tick[] }
  | { say: "loss"; version: Version; lost: number; sent: number }
  | ({ say: "noDatagrams"; version: Version } & NoChannel)
  | PeerRequest
  | CrewRequest
  | { say: "lost"; reason: string }
  | { say: "back" }
  | { say: "transfer"; version: Version; done: number; planned: number; transfer: MeasuredTransfer }
  | { say: "partial"; measured: Measured }
  | { say: "done"; measured: Measured };

export interface Missing {
  version: Version;
  reason: "noAddress" | "noAnswer" | "otherServer";
  tried: string[];
  /** For so long an answer was waited for, ns. */
  waited: number;
}

/** Why there was no data channel, and after how long that was certain, ns. */
export interface NoChannel {
  reason: PeerTrouble;
  waited: number;
}

/** Everything that a run yields; the page makes the record of it. */
export interface Measured {
  outcome: "complete" | "interrupted" | "failed";
  /** By the person. */
  cancelled: boolean;
  elapsed: number;
  versions: MeasuredVersion[];
  missing: Missing[];
  instrument: Instrument;
}

export interface MeasuredVersion {
  version: Version;
  address: string;
  /** From the first byte of the control connection to the welcome. */
  greeting?: number;
  responder?: Record<string, unknown>;
  idle?: EchoRun;
  /** The same in a data channel. */
  datagrams?: EchoRun;
  streams?: DatagramRun[];
  noDatagrams?: NoChannel;
  down?: TransferRun;
  up?: TransferRun;
  matrix?: MeasuredTransfer[];
  /** Of each phase that failed in its last attempt the reason. What another phase does later changes nothing of it. */
  troubles?: Record<string, string>;
}

export interface EchoRun {
  /** Absent: a WebSocket. */
  transport?: "datagrams";
  length: number;
  spacing: number;
  trips: RoundTrip[];
  sent: number;
  /** Without an answer: lost if these are datagrams, and unknown over TCP, which repeats what is lost. */
  unanswered: number;
  /** Of datagrams: requests that had not had their patience when the flow was ended early. */
  unknown?: number;
  bad: number;
  /** How long an answer was waited for at the end, ns. */
  patience: number;
  /** Why it ended before its time. */
  broken?: string;
  /** Requests that left more than `LATE` after they were due. */
  lateSends: number;
  worstLateness: number;
  /** Claims of the server about its own time that cannot be, and were not taken out. */
  implausible: number;
  elapsed: number;
  /** Of datagrams only: turns that were left out because too much waited in the browser, answers after their patience, answers
   * overtaken, answers to what had been answered. */
  notSent?: number;
  late?: number;
  reordered?: number;
  duplicates?: number;
}

/** A stream of datagrams; `report` is the server's end, shaped as the record has it. */
export interface DatagramRun {
  direction: "down" | "up";
  outcome: "complete" | "interrupted" | "failed";
  length: number;
  /** ns; null: unpaced. */
  gap: number | null;
  page: FlowResult;
  report?: Record<string, unknown>;
  /** The server's slices, where it received. */
  ticks?: Record<string, unknown>[];
  /** Packets that the browser itself dropped on the way out. */
  discarded: number;
}

export interface TransferRun {
  direction: "down" | "up";
  streams: number;
  outcome: "complete" | "interrupted" | "failed";
  reason?: string;
  /** The receiver's slices: the page's own for down, the server's for up. */
  ticks: Tick[];
  /** Down: what had arrived by the planned end, where that is known and the page was handed some of it late (pure/arrivals.ts). */
  arrived?: Tick[];
  /** Down: the server's slices. */
  senderTicks?: SenderTick[];
  /** What the receiver counted in all, and in which time; bytes are absent where it told nothing. */
  bytes?: number;
  elapsed: number;
  /** What the page handed over, less what its browser still held at the end; of up only, and never a figure of the network. */
  handedOver?: number;
  /** Up: from the first message handed over until the server had confirmed the end, ns. */
  confirmed?: number;
  /** Down: what the first read brought; it is not in the slices, because nobody knows how long it took. */
  first?: number;
  /** Reads of the page, or messages that it handed over. */
  calls: number;
  /** `report` of the server's `finished`, and its `stream_ends`. */
  report?: Record<string, unknown>;
  streamEnds: Record<string, unknown>[];
  loaded?: EchoRun;
  /** It was as fast as the server's owner allows. */
  capped: boolean;
}

export interface MeasuredTransfer extends Transfer {
  way: Way;
  outcome: "complete" | "interrupted" | "failed";
  reason?: string;
  /** Absent when the transfer did not even begin. */
  page?: EndCount;
  server?: EndCount;
  /** Absent where nobody told. */
  retransmits?: number;
}

/** What one end of a transfer counted; `first` is what the first read brought. */
export interface EndCount {
  bytes: number;
  calls: number;
  elapsed: number;
  first: number;
}

/** What the browser did to the measurement. */
export interface Instrument {
  /** Smallest step of the clock, ns. */
  clockStep: number;
  isolated: boolean;
  /** Pauses of the runner's own timer beyond `PAUSE_MS`: a sleeping phone, a throttled tab, a busy processor. */
  pauses: number;
  longestPause: number;
  lostConnections: number;
}

/** To a mover: move bytes for this transfer. */
export type ToMover =
  | { say: "receive"; urls: string[]; duration: number; total: number | null; roundTripMs: number }
  | { say: "attach"; urls: string[] }
  | { say: "send"; length: number; duration: number; total: number | null; rate: number | null; roundTripMs: number }
  | { say: "abort" };

export type FromMover =
  | { say: "attached" }
  | { say: "ticks"; ticks: Tick[] }
  /** `early`: a stream ended in good order, but before its time and without all bytes. */
  | { say: "received"; bytes: number; elapsed: number; reads: number; first: number; broken: string | null; early: boolean }
  | { say: "sent"; bytes: number; messages: number; elapsed: number; broken: string | null };

/** To an echoer: open the socket, then send. `length` and `spacing` in bytes and ns. */
export type ToEchoer = { say: "open"; url: string } | { say: "go"; length: number; spacing: number; duration: number; roundTripMs: number } | { say: "stop" };

export type FromEchoer =
  | { say: "open" }
  | { say: "trips"; trips: RoundTrip[] }
  | { say: "ended"; run: EchoRun; broken: string | null };

export type { ControlMessage, PeerTrouble, Protocol };
