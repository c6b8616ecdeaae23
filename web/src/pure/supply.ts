// What a page hands to its sockets, and how much of that left the browser.
//
// Handed over is no figure of the network: browsers take megabytes at once. Here it decides when to hand over more, and what is told as sent
// leaves out what still waits inside the browser. That leans high by what the kernel's socket buffers hold when a path breaks, which no page sees.

import { sum } from "./statistics";

/** Of a WebSocket what is needed. */
export interface Outlet {
  readonly bufferedAmount: number;
  send(block: Uint8Array<ArrayBuffer>): void;
}

export interface SupplyOrder {
  length: number;
  /** ns. */
  duration: number;
  /** Bytes; null: as much as goes in the time. */
  total: number | null;
  /** bit/s; null: as fast as it goes. */
  rate: number | null;
}

/** Hands over blocks while little enough waits inside the browser: a tenth of a second's worth at the rate seen so far. Times in ms. */
export class Supply {
  private handed = 0;
  private messages = 0;
  /** Of each outlet that broke, what it held then. */
  private readonly stuck = new Map<Outlet, number>();

  constructor(
    private readonly order: SupplyOrder,
    private readonly block: Uint8Array<ArrayBuffer>,
    private readonly begun: number,
    private readonly clock: () => number,
  ) {}

  /** Whether there was room for anything. */
  fill(outlet: Outlet, outlets: readonly Outlet[]): boolean {
    const [room, before] = [this.room(outlets), this.handed];
    while (outlet.bufferedAmount < room && !this.over() && this.allowed()) {
      const left = this.order.total === null ? this.block.length : this.order.total - this.handed;
      const block = left < this.block.length ? this.block.subarray(0, left) : this.block;
      outlet.send(block);
      this.handed += block.length;
      this.messages += 1;
    }
    return this.handed > before;
  }

  over(): boolean {
    if (this.order.total !== null && this.handed >= this.order.total) return true;
    return this.clock() - this.begun >= this.order.duration / 1e6;
  }

  /** Remembers what waits in outlets that are broken, before a browser forgets it with the connection. */
  broke(outlets: readonly Outlet[]): void {
    for (const outlet of outlets) this.stuck.set(outlet, Math.max(outlet.bufferedAmount, this.stuck.get(outlet) ?? 0));
  }

  /** Once all outlets are closed, as far as they would: what waits in them then has not left and never will. */
  totals(outlets: readonly Outlet[]): { bytes: number; messages: number } {
    const unsent = sum(outlets.map((outlet) => Math.max(outlet.bufferedAmount, this.stuck.get(outlet) ?? 0)));
    return { bytes: Math.max(0, this.handed - unsent), messages: this.messages };
  }

  private room(outlets: readonly Outlet[]): number {
    const waiting = sum(outlets.map((outlet) => outlet.bufferedAmount));
    const left = this.handed - waiting;
    const elapsed = Math.max(this.clock() - this.begun, 1);
    const worth = ((left / elapsed) * BUFFERED_MS) / outlets.length;
    return Math.min(Math.max(worth, LEAST_BUFFERED), MOST_BUFFERED);
  }

  /** With a cap of the owner's on the rate the plan carries a rate, and the server ends a test that exceeds it. */
  private allowed(): boolean {
    if (this.order.rate === null) return true;
    return this.handed * 8e3 <= this.order.rate * (this.clock() - this.begun + 50);
  }
}

const BUFFERED_MS = 100;
const LEAST_BUFFERED = 256 * 1024;
const MOST_BUFFERED = 4 * 1024 * 1024;
