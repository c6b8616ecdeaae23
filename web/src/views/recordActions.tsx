// What can be done with a record: share it, export it, keep it on the server.

import { useState } from "preact/hooks";
import { csvOf } from "../pure/csv";
import type { NetRecord } from "../pure/record";
import { chartsOf } from "../pure/recordCharts";
import { linkOf } from "../pure/share";
import { server } from "../store/about";
import { useObservable } from "../store/observable";
import { keepOnServer } from "../store/serverResults";
import { S } from "../strings";
import { savePng, saveSvg, saveText } from "./save";

export function RecordActions({ record }: { record: NetRecord }) {
  const [told, setTold] = useState("");
  const [link, setLink] = useState("");
  const known = useObservable(server);
  const charts = chartsOf(record);
  const name = `netaware-${record.command}-${record.id.slice(0, 8)}`;
  const share = async () => {
    const made = await linkOf(record, location.href);
    setLink(made ?? "");
    if (!made) return setTold(S.results.shareTooLong);
    setTold((await copied(made)) ? S.results.shared : S.results.shareShow);
  };
  const send = async () => {
    const answer = await keepOnServer(record);
    setTold(answer === "kept" ? S.results.sent : S.results.sendFailed(answer.refused));
  };
  return (
    <section class="card" aria-label={S.results.exports}>
      <div class="buttons">
        <button type="button" onClick={() => void share()}>
          {S.results.share}
        </button>
        {known.state === "here" && known.about.results === "write" && (
          <button type="button" onClick={() => void send()}>
            {S.results.send}
          </button>
        )}
        <button type="button" onClick={() => saveText(csvOf([record]), `${name}.csv`, "text/csv")}>
          {S.results.exportCsv}
        </button>
        <button type="button" onClick={() => saveText(JSON.stringify(record, undefined, 2), `${name}.json`, "application/json")}>
          {S.results.exportJson}
        </button>
        {charts.length > 0 && (
          <>
            <button type="button" onClick={() => saveSvg(charts, `${name}.svg`)}>
              {S.results.exportSvg}
            </button>
            <button type="button" onClick={() => void savePng(charts, `${name}.png`)}>
              {S.results.exportPng}
            </button>
          </>
        )}
      </div>
      <p class="note" role="status">
        {told}
      </p>
      {link && <input class="link" type="text" readOnly aria-label={S.results.share} value={link} onFocus={(event) => event.currentTarget.select()} />}
    </section>
  );
}

/** The clipboard is kept from pages without TLS; there the person copies the link from its field. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
