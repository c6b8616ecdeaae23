// Results kept on this device: IndexedDB, or this tab's memory where the browser gives none (private windows), which is told.

import { readRecord } from "../pure/readRecord";
import type { NetRecord } from "../pure/record";
import { Observable } from "./observable";

/** A kept result. `walk` and `spot` (shares of the plan's width and height) are of results that were taken on a walk. */
export interface Entry {
  id: string;
  record: NetRecord;
  walk?: string;
  spot?: [number, number];
}

/** Newest first. */
export const entries = new Observable<Entry[]>([]);
export type StoreState = "opening" | "kept" | "memoryOnly" | "full";
export const storeState = new Observable<StoreState>("opening");

let database: IDBDatabase | undefined;
let settle: () => void;
/** Views may ask before the store is open. */
const settled = new Promise<void>((resolve) => (settle = resolve));

export async function openStore(): Promise<void> {
  try {
    database = await opened();
    const all = await asked<Entry[]>(database.transaction(RESULTS).objectStore(RESULTS).getAll());
    entries.set(newestFirst([...entries.value, ...all]));
    storeState.set("kept");
  } catch {
    storeState.set("memoryOnly");
  } finally {
    settle();
  }
}

/** Shows the entry in any case; whether it is kept is told by `storeState`. */
export async function keep(entry: Entry): Promise<void> {
  entries.set(newestFirst([entry, ...entries.value.filter((each) => each.id !== entry.id)]));
  await write(RESULTS, (store) => store.put(entry));
}

/** Kept for the next time that the page opens, and not shown until then: while something is measured nothing else should be done. */
export async function keepForLater(entry: Entry): Promise<void> {
  await write(RESULTS, (store) => store.put(entry));
}

export async function forget(ids: readonly string[]): Promise<void> {
  entries.set(entries.value.filter((entry) => !ids.includes(entry.id)));
  await write(RESULTS, (store) => {
    for (const id of ids) store.delete(id);
  });
  if (storeState.value === "full") storeState.set("kept");
}

export async function keepPlan(plan: Blob | undefined): Promise<void> {
  await write(PLANS, (store) => (plan ? store.put(plan, PLAN) : store.delete(PLAN)));
}

export async function keptPlan(): Promise<Blob | undefined> {
  await settled;
  if (!database) return undefined;
  const plan: unknown = await asked(database.transaction(PLANS).objectStore(PLANS).get(PLAN));
  return plan instanceof Blob ? plan : undefined;
}

async function write(name: string, change: (store: IDBObjectStore) => void): Promise<void> {
  if (!database) return;
  try {
    const transaction = database.transaction(name, "readwrite");
    change(transaction.objectStore(name));
    await done(transaction);
    if (storeState.value === "full") storeState.set("kept");
  } catch (error) {
    const full = error instanceof DOMException && error.name === "QuotaExceededError";
    storeState.set(full ? "full" : "memoryOnly");
  }
}

function opened(): Promise<IDBDatabase> {
  const request = indexedDB.open("netaware", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(RESULTS, { keyPath: "id" });
    request.result.createObjectStore(PLANS);
  };
  return asked(request);
}

function asked<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** A full disk shows as the transaction's abort, not as the request's error. */
function done(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
    transaction.onerror = () => reject(transaction.error);
  });
}

/** Older pages may have kept what this one cannot draw: it stays in the store and out of the list. */
function newestFirst(all: readonly Entry[]): Entry[] {
  const readable = all.filter((entry) => readRecord(entry.record) !== undefined);
  return readable.sort((a, b) => b.record.started_at - a.record.started_at);
}

const RESULTS = "results";
const PLANS = "plans";
const PLAN = "floor";
