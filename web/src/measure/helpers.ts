// The page's part in the runner's crew: it starts each helper when the runner asks for one, and ends it.

import type { CrewRequest, Role } from "./messages";

/** All helpers of one run. */
export class Helpers {
  private readonly workers = new Map<number, Worker>();

  heard(request: CrewRequest): void {
    if (request.say === "dismiss") {
      this.workers.get(request.number)?.terminate();
      this.workers.delete(request.number);
      return;
    }
    const worker = workerOf(request.helper);
    worker.postMessage(request.port, [request.port]);
    this.workers.set(request.number, worker);
  }

  dismissAll(): void {
    for (const worker of this.workers.values()) worker.terminate();
    this.workers.clear();
  }
}

/** To be kept as long as it works: a browser may end a worker that nobody holds. */
export function workerOf(role: Role): Worker {
  return new Worker(new URL("../measure/worker.ts", import.meta.url), { type: "module", name: role });
}
