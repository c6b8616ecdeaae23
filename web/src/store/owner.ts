// What only the server's owner sees. Asked while somebody looks at it, and no oftener than a person can read.

import { Session } from "../measure/session";
import { baseOf } from "../pure/base";
import { fields, list, number, text, type Reader } from "../pure/shape";
import { Observable } from "./observable";

export interface OwnerView {
  uptime: number;
  sessions: { peer: string; software: string; lasting: number; tests: { what: string; lasting: number }[] }[];
  queue: { slots: number; held: Place[]; waiting: Place[] };
  results?: { command: string; host: string; label?: string; started_at: number }[];
  health: { cores: number; cpu?: number; process?: number; steal?: number; load?: { one: number; five: number; fifteen: number }; memory?: { total: number; available: number } };
}

interface Place {
  peers: string[];
  expected: number;
}

export type Owner = { state: "asking" } | { state: "here"; view: OwnerView } | { state: "refused"; why: string };

export const owner = new Observable<Owner>({ state: "asking" });

/** Asks every two seconds until the returned function is called. With a key its proof is a session of its own, held open meanwhile, which is told the owner's token. */
export function watchOwner(given: string): () => void {
  let session: Session | undefined;
  let over = false;
  const ask = async () => {
    try {
      if (given !== "" && !session?.alive) session = await Session.open(baseOf(location.href), { key: given });
      const view = await asked(session?.owner);
      if (!over) owner.set(view);
    } catch (error) {
      if (!over) owner.set({ state: "refused", why: error instanceof Error ? error.message : String(error) });
    }
    if (over) session?.close();
    else timer = setTimeout(() => void ask(), ASK_EVERY_MS);
  };
  owner.set({ state: "asking" });
  let timer = setTimeout(() => void ask(), 0);
  return () => {
    over = true;
    clearTimeout(timer);
    session?.close();
  };
}

async function asked(token: string | undefined): Promise<Owner> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch("api/v1/server", { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  const body: unknown = await response.json();
  const view = response.ok ? readView(body) : undefined;
  return view ? { state: "here", view } : { state: "refused", why: readProblem(body)?.error ?? `${response.status}` };
}

const readProblem = fields({ error: text(300) }, {});
const place = fields({ peers: list(text(60), 32), expected: number }, {});
const test = fields({ what: text(20), lasting: number }, {});
const session = fields({ peer: text(60), software: text(80), lasting: number, tests: list(test, 64) }, {});
const read = fields(
  {
    uptime: number,
    sessions: list(session, 1000),
    queue: fields({ slots: number, held: list(place, 1000), waiting: list(place, 1000) }, {}),
    health: fields(
      { cores: number },
      {
        cpu: number,
        process: number,
        steal: number,
        load: fields({ one: number, five: number, fifteen: number }, {}),
        memory: fields({ total: number, available: number }, {}),
      },
    ),
  },
  { results: list(fields({ command: text(20), host: text(100), started_at: number }, { label: text(100) }), 10) },
);

export const readView: Reader<OwnerView> = read;

const ASK_EVERY_MS = 2000;
const PATIENCE_MS = 5000;
