// Two tabs that measure at once halve each other's figures, so a tab takes the turn before it measures.
//
// The browser's own locks are without a race, and are only given to pages over TLS or on the host itself. Elsewhere tabs speak over a
// broadcast channel: who wants the turn says so under a random number and waits; of two that want it at once the lower number wins. A tab that
// hears nothing for longer than the patience (asleep, held by a debugger) can still be missed. Tabs of another address of the same server are
// another origin, which no page sees: these wait for each other in the server's queue.

/** What tabs hear of each other; a BroadcastChannel. */
export interface Wire {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

type Said = { say: "want" | "mine"; by: number };

/** The turn to measure, among all tabs of this browser and address. */
export class Turn {
  private state: "free" | "wanting" | "held" = "free";
  private number = 0;
  private beaten: (() => void) | undefined;

  constructor(
    private readonly wire: Wire | undefined,
    private readonly locks: Pick<LockManager, "request"> | undefined,
    private readonly random: () => number = Math.random,
  ) {
    if (wire) wire.onmessage = ({ data }) => this.heard(data);
  }

  /** What ends the turn; undefined where another tab has it. */
  async take(): Promise<(() => void) | undefined> {
    if (this.state !== "free") return undefined;
    const unlock = this.locks ? await locked(this.locks) : () => {};
    if (!unlock) return undefined;
    if (!(await this.isUncontested())) {
      unlock();
      return undefined;
    }
    this.state = "held";
    return () => {
      this.state = "free";
      unlock();
    };
  }

  private async isUncontested(): Promise<boolean> {
    if (!this.wire) return true;
    this.state = "wanting";
    this.number = this.random();
    const won = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(true), PATIENCE_MS);
      this.beaten = () => {
        clearTimeout(timer);
        resolve(false);
      };
      this.say("want");
    });
    this.beaten = undefined;
    if (!won) this.state = "free";
    return won;
  }

  private heard(data: unknown): void {
    const { say, by } = (data ?? {}) as Partial<Said>;
    if (typeof by !== "number" || this.state === "free") return;
    if (say === "mine") this.beaten?.();
    else if (say !== "want") return;
    else if (this.state === "held" || this.number < by) this.say("mine");
    else this.beaten?.();
  }

  private say(say: Said["say"]): void {
    this.wire?.postMessage({ say, by: this.number } satisfies Said);
  }
}

/** Holds the lock until the returned function is called; undefined where somebody else has it. */
function locked(locks: Pick<LockManager, "request">): Promise<(() => void) | undefined> {
  return new Promise((resolve) => {
    const held = locks.request(LOCK, { ifAvailable: true }, (lock) => {
      if (!lock) return resolve(undefined);
      return new Promise<void>((release) => resolve(release));
    });
    // Where the browser refuses locks altogether, the channel is asked alone.
    held.catch(() => resolve(() => {}));
  });
}

export const turn = new Turn(
  typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("netaware"),
  typeof navigator === "undefined" ? undefined : navigator.locks,
);

const LOCK = "netaware";
const PATIENCE_MS = 200;
