// A walk: the quick test again and again, each with the place where the person said to be. It goes on while other pages are open.

import type { NetRecord } from "../pure/record";
import { uuidV7 } from "../pure/record";
import { VERSIONS } from "../pure/targets";
import type { Visit } from "../pure/places";
import type { About } from "./about";
import type { Entry } from "./database";
import { isMeasuring, live, measureQuick } from "./live";
import { Observable } from "./observable";

export interface WalkState {
  running: boolean;
  id: string;
  visits: (Visit & { spot?: [number, number] })[];
  /** Where the person is now. */
  place: string;
  /** On the plan, shares of its width and height. */
  spot?: [number, number];
  /** Seconds until the next measurement; absent while one runs. */
  next?: number;
  /** The place of a measurement that yielded nothing. */
  failed?: string;
}

export const walk = new Observable<WalkState>({ running: false, id: "", visits: [], place: "" });

let timer: ReturnType<typeof setInterval> | undefined;

export function startWalk(about: About, everySeconds: number): void {
  const now = walk.value;
  const id = now.visits.length > 0 ? now.id : uuidV7(Date.now(), crypto.getRandomValues(new Uint8Array(10)));
  walk.set({ ...now, running: true, id });
  let due = Date.now();
  const look = () => {
    if (!walk.value.running) return;
    const left = Math.ceil((due - Date.now()) / 1000);
    if (left > 0) return show({ next: left });
    if (isMeasuring(live.value.stage)) return;
    due = Date.now() + everySeconds * 1000;
    void visit(about);
  };
  clearInterval(timer);
  timer = setInterval(look, 500);
  look();
}

export function endWalk(): void {
  clearInterval(timer);
  const { next: _, ...rest } = walk.value;
  walk.set({ ...rest, running: false });
}

export function newWalk(): void {
  endWalk();
  walk.set({ running: false, id: "", visits: [], place: walk.value.place });
}

/** Shows a walk that was kept; it can be walked on. */
export function openWalk(id: string, kept: readonly Entry[]): void {
  endWalk();
  const own = kept.filter((entry) => entry.walk === id).reverse();
  const visits = own.map(({ record, spot }) => ({ place: record.label ?? "", record, ...(spot ? { spot } : {}) }));
  walk.set({ running: false, id, visits, place: walk.value.place });
}

export function standAt(place: string, spot?: [number, number]): void {
  const { spot: _, ...rest } = walk.value;
  walk.set({ ...rest, place, ...(spot ? { spot } : {}) });
}

/** The place counts as it was when the measurement began: a person who walks on meanwhile is told so by the next one. */
async function visit(about: About): Promise<void> {
  const { next: _, failed: __, ...now } = walk.value;
  walk.set(now);
  const { place, spot, id } = now;
  const keepAs = { walk: id, ...(spot ? { spot } : {}) };
  const record = await measureQuick({ label: place, versions: VERSIONS, length: "short", about, keepAs });
  walk.set({ ...walk.value, ...(record ? visited(place, record, spot) : { failed: place }) });
}

function visited(place: string, record: NetRecord, spot: [number, number] | undefined): Pick<WalkState, "visits"> {
  return { visits: [...walk.value.visits, { place, record, ...(spot ? { spot } : {}) }] };
}

function show(change: Partial<WalkState>): void {
  if (walk.value.next !== change.next) walk.set({ ...walk.value, ...change });
}
