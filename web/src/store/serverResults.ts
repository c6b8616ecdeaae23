// Results that the server keeps: list, read, keep. Where it has a key it wants proof of it, which a session gives that is told the owner's token: that
// then goes with each request; the key itself never travels.

import { Session } from "../measure/session";
import { baseOf } from "../pure/base";
import { readRecord } from "../pure/readRecord";
import type { NetRecord } from "../pure/record";
import { seriesOf } from "../pure/seriesCharts";
import { fields, list, number, text } from "../pure/shape";
import { key } from "./key";

/** A result of the server's, without its figures. */
export interface Listed {
  id: string;
  command: string;
  started_at: number;
  host: string;
  label?: string;
}

/** The newest first; undefined where the server does not hand them out. */
export function listOnServer(): Promise<Listed[] | undefined> {
  return asOwner((headers) => listed(PATH, headers));
}

export function readFromServer(id: string): Promise<NetRecord | undefined> {
  return asOwner((headers) => record(id, headers));
}

/** What the server keeps of the series to which this record belongs, the record among them. */
export function seriesOnServer(of: NetRecord): Promise<NetRecord[]> {
  const series = seriesOf(of);
  if (!series) return Promise.resolve([of]);
  return asOwner(async (headers) => {
    const others = ((await listed(`${PATH}?series=${series}`, headers)) ?? []).filter((each) => each.id !== of.id);
    const read: NetRecord[] = [of];
    for (const each of others) {
      const found = await record(each.id, headers);
      if (found && seriesOf(found) === series) read.push(found);
    }
    return read;
  });
}

export type Kept = "kept" | { refused: string };

export async function keepOnServer(sent: NetRecord): Promise<Kept> {
  try {
    const response = await asOwner((headers) =>
      fetch(PATH, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(sent) }),
    );
    return response.ok ? "kept" : { refused: `${response.status} ${(await response.text()).slice(0, 200)}` };
  } catch (error) {
    return { refused: error instanceof Error ? error.message : String(error) };
  }
}

/** The session that proves the key stands for as long as is asked. */
async function asOwner<T>(ask: (headers: Record<string, string>) => Promise<T>): Promise<T> {
  if (key.value === "") return ask({});
  // A key that the server does not take is answered by the server, in its own words.
  const session = await Session.open(baseOf(location.href), { key: key.value }).catch(() => undefined);
  try {
    return await ask(session ? { authorization: `Bearer ${session.owner}` } : {});
  } finally {
    session?.close();
  }
}

async function listed(path: string, headers: Record<string, string>): Promise<Listed[] | undefined> {
  return readListed(await asked(path, headers));
}

async function record(id: string, headers: Record<string, string>): Promise<NetRecord | undefined> {
  return readRecord(await asked(`${PATH}/${id}`, headers));
}

async function asked(path: string, headers: Record<string, string>): Promise<unknown> {
  try {
    const response = await fetch(path, { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_MS) });
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined;
  }
}

const readListed = list(fields({ id: text(40), command: text(20), started_at: number, host: text(100) }, { label: text(100) }), 200);

const PATH = "api/v1/results";
const PATIENCE_MS = 8000;
