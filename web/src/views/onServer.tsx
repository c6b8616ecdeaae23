// What the server keeps: opened one by one, or chosen to be compared with what is on this device.

import { useEffect, useState } from "preact/hooks";
import type { NetRecord } from "../pure/record";
import { server } from "../store/about";
import { key } from "../store/key";
import { useObservable } from "../store/observable";
import { listOnServer, readFromServer, type Listed } from "../store/serverResults";
import { S } from "../strings";
import { dateOf } from "./wording";

interface Props {
  open: (record: NetRecord) => void;
  chosen: readonly string[];
  /** Undefined: no longer. */
  choose: (id: string, record: NetRecord | undefined) => void;
}

export function OnServer({ open, chosen, choose }: Props) {
  const known = useObservable(server);
  const given = useObservable(key);
  const [listed, setListed] = useState<Listed[] | "refused" | undefined>();
  const [told, setTold] = useState("");
  const allowed = known.state === "here" && known.about.results !== "none";
  const wantsKey = known.state === "here" && known.about.key && given === "";
  useEffect(() => {
    if (allowed && !wantsKey) void listOnServer().then((read) => setListed(read ?? "refused"));
  }, [allowed, wantsKey, given]);
  const read = async (id: string, then: (record: NetRecord) => void) => {
    const record = await readFromServer(id);
    setTold(record ? "" : S.results.serverRefused);
    if (record) then(record);
  };
  const toggle = (id: string) => {
    if (chosen.includes(id)) choose(id, undefined);
    else void read(id, (record) => choose(id, record));
  };
  if (!allowed || (listed === undefined && !wantsKey)) return null;
  return (
    <section aria-label={S.results.server}>
      <h2>{S.results.server}</h2>
      {wantsKey && (
        <p class="note">
          {S.results.serverWantsKey} <a href="#server">{S.pages.server}</a>
        </p>
      )}
      {!wantsKey && listed === "refused" && <p class="note">{S.results.serverRefused}</p>}
      {!wantsKey && listed?.length === 0 && <p class="note">{S.results.serverNone}</p>}
      {!wantsKey && listed !== undefined && listed !== "refused" && (
        <ul class="list">
          {listed.map((each) => (
            <li key={each.id} class="card item">
              <input type="checkbox" checked={chosen.includes(each.id)} aria-label={S.results.choose(nameOf(each))} onChange={() => toggle(each.id)} />
              <button type="button" class="plain" onClick={() => void read(each.id, open)}>
                <span class="title">{each.label || (S.results.kinds[each.command] ?? each.command)}</span>
                <span class="when">
                  {dateOf(each.started_at)} · {each.host}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <p class="note" role="status">
        {told}
      </p>
    </section>
  );
}

function nameOf(listed: Listed): string {
  return `${listed.label || (S.results.kinds[listed.command] ?? listed.command)} · ${dateOf(listed.started_at)}`;
}
