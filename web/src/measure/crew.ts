// Starts the workers that a transfer needs, and ends them with it.

import type { EchoRun, FromEchoer, FromMover, ToEchoer, ToMover } from "./messages";
import { ConnectionLost } from "./session";
import type { RoundTrip } from "../pure/delay";

type Moved = Extract<FromMover, { say: "received" | "sent" }>;

/** One mover: tell it what to do, await what it counted. */
export class Mover {
  private readonly worker = new Worker(self.location.href, { type: "module", name: "mover" });
  readonly attached: Promise<void>;
  readonly moved: Promise<Moved>;

  constructor(onTicks: (ticks: Extract<FromMover, { say: "ticks" }>["ticks"]) => void) {
    let attached!: () => void;
    let moved!: (result: Moved) => void;
    this.attached = new Promise((resolve) => (attached = resolve));
    this.moved = new Promise((resolve) => (moved = resolve));
    this.worker.onmessage = ({ data }: MessageEvent<FromMover>) => {
      if (data.say === "attached") attached();
      else if (data.say === "ticks") onTicks(data.ticks);
      else moved(data);
    };
  }

  tell(order: ToMover): void {
    this.worker.postMessage(order);
  }

  dismiss(): void {
    this.worker.terminate();
  }
}

/** One echoer. `ended` also tells when the connection broke; what came until then is in it. */
export class Echoer {
  private readonly worker = new Worker(self.location.href, { type: "module", name: "echoer" });
  readonly open: Promise<void>;
  readonly ended: Promise<{ run: EchoRun; broken: string | null }>;

  constructor(onTrips: (trips: RoundTrip[]) => void) {
    let open!: () => void;
    let ended!: (result: { run: EchoRun; broken: string | null }) => void;
    this.open = new Promise((resolve) => (open = resolve));
    this.ended = new Promise((resolve) => (ended = resolve));
    this.worker.onmessage = ({ data }: MessageEvent<FromEchoer>) => {
      if (data.say === "open") open();
      else if (data.say === "trips") onTrips(data.trips);
      else ended({ run: data.run, broken: data.broken });
    };
  }

  tell(order: ToEchoer): void {
    this.worker.postMessage(order);
  }

  dismiss(): void {
    this.worker.terminate();
  }
}

/** `promise`, unless `ms` pass first. */
export function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new ConnectionLost(`${what} within ${Math.round(ms / 1000)} s`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

export function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
