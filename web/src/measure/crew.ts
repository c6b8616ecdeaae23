// Has the page start the workers that a transfer needs, and end them with it.

import type { CrewRequest, EchoRun, FromEchoer, FromMover, Helper, Talk, ToEchoer, ToMover } from "./messages";
import { ConnectionLost } from "./session";
import type { RoundTrip } from "../pure/delay";

type Moved = Extract<FromMover, { say: "received" | "sent" }>;

declare const self: { postMessage(message: CrewRequest, handed?: Transferable[]): void };

/** A helper at work. */
class Hired<Told, Heard> {
  private static count = 0;
  private readonly number: number;
  private readonly line: Talk<Told, Heard>;

  constructor(helper: Helper, onHeard: (message: Heard) => void) {
    Hired.count += 1;
    this.number = Hired.count;
    const { port1, port2 } = new MessageChannel();
    this.line = port1;
    this.line.onmessage = ({ data }) => onHeard(data);
    self.postMessage({ say: "hire", helper, number: this.number, port: port2 }, [port2]);
  }

  tell(order: Told): void {
    this.line.postMessage(order);
  }

  dismiss(): void {
    self.postMessage({ say: "dismiss", number: this.number });
    this.line.close();
  }
}

/** One mover: tell it what to do, await what it counted. */
export class Mover {
  private readonly worker: Hired<ToMover, FromMover>;
  readonly attached: Promise<void>;
  readonly moved: Promise<Moved>;

  constructor(onTicks: (ticks: Extract<FromMover, { say: "ticks" }>["ticks"]) => void) {
    let attached!: () => void;
    let moved!: (result: Moved) => void;
    this.attached = new Promise((resolve) => (attached = resolve));
    this.moved = new Promise((resolve) => (moved = resolve));
    this.worker = new Hired<ToMover, FromMover>("mover", (heard) => {
      if (heard.say === "attached") attached();
      else if (heard.say === "ticks") onTicks(heard.ticks);
      else moved(heard);
    });
  }

  tell(order: ToMover): void {
    this.worker.tell(order);
  }

  dismiss(): void {
    this.worker.dismiss();
  }
}

/** One echoer. `ended` also tells when the connection broke; what came until then is in it. */
export class Echoer {
  private readonly worker: Hired<ToEchoer, FromEchoer>;
  readonly open: Promise<void>;
  readonly ended: Promise<{ run: EchoRun; broken: string | null }>;

  constructor(onTrips: (trips: RoundTrip[]) => void) {
    let open!: () => void;
    let ended!: (result: { run: EchoRun; broken: string | null }) => void;
    this.open = new Promise((resolve) => (open = resolve));
    this.ended = new Promise((resolve) => (ended = resolve));
    this.worker = new Hired<ToEchoer, FromEchoer>("echoer", (heard) => {
      if (heard.say === "open") open();
      else if (heard.say === "trips") onTrips(heard.trips);
      else ended({ run: heard.run, broken: heard.broken });
    });
  }

  tell(order: ToEchoer): void {
    this.worker.tell(order);
  }

  dismiss(): void {
    this.worker.dismiss();
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
