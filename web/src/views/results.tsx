// Everything kept on this device, and on the server where it hands results out: list, filter, compare.

import { useEffect, useState } from "preact/hooks";
import { csvOf } from "../pure/csv";
import { figuresOf } from "../pure/figures";
import { readRecord } from "../pure/readRecord";
import type { NetRecord } from "../pure/record";
import { seriesCharts, seriesOf } from "../pure/seriesCharts";
import { recordOfFragment } from "../pure/share";
import { list } from "../pure/shape";
import { showSpan } from "../pure/units";
import { entries, forget, keep } from "../store/database";
import { useObservable } from "../store/observable";
import { seriesOnServer } from "../store/serverResults";
import { S } from "../strings";
import { Back } from "./back";
import { Compared } from "./compared";
import { OnServer } from "./onServer";
import { Picture } from "./picture";
import { RecordActions } from "./recordActions";
import { Facts, RecordView } from "./recordView";
import { saveText } from "./save";
import { kindOf, nameOf, showRateOf, showRtt, whenOf } from "./wording";

export function Results({ shared }: { shared: string | undefined }) {
  const [open, setOpen] = useState<NetRecord>();
  const [comparing, setComparing] = useState<NetRecord[]>();
  if (shared !== undefined) return <Shared fragment={shared} />;
  if (open) return <One record={open} back={() => setOpen(undefined)} />;
  if (comparing) return <Compared records={comparing} back={() => setComparing(undefined)} />;
  return <Library open={setOpen} compare={setComparing} />;
}

function One({ record, back }: { record: NetRecord; back: () => void }) {
  const here = useObservable(entries).map((entry) => entry.record);
  const [there, setThere] = useState<NetRecord[]>([]);
  useEffect(() => {
    setThere([]);
    // The rest of a series may be where this one came from.
    if (seriesOf(record) && !here.some((each) => each.id === record.id)) void seriesOnServer(record).then(setThere);
  }, [record.id]);
  const all = [...new Map([...there, ...here].map((each) => [each.id, each])).values()];
  return (
    <>
      <Back back={back} />
      <h1>{record.label || kindOf(record)}</h1>
      <About record={record} />
      {seriesCharts(record, all).map((chart) => (
        <Picture key={chart.title} chart={chart} />
      ))}
      <RecordView record={record} />
      <RecordActions record={record} />
    </>
  );
}

function About({ record }: { record: NetRecord }) {
  const { facts } = S.results;
  const series = record.series as { index?: unknown; point?: Record<string, unknown> } | undefined;
  return (
    <section class="card">
      <Facts
        rows={[
          [facts.when, whenOf(record)],
          [facts.from, record.prober.name],
          [facts.to, record.request.host || record.responder?.name || ""],
          [facts.took, showSpan(record.elapsed)],
          [facts.outcome, S.results.outcome[record.outcome] ?? record.outcome],
        ]}
      />
      {typeof series?.index === "number" && (
        <p class="note">{S.results.series(series.index, Object.entries(series.point ?? {}).map(([name, value]) => `${name} ${String(value)}`).join(", "))}</p>
      )}
    </section>
  );
}

function Shared({ fragment }: { fragment: string }) {
  const [record, setRecord] = useState<NetRecord | "reading" | "bad">("reading");
  useEffect(() => {
    void recordOfFragment(fragment).then((read) => setRecord(read ?? "bad"));
  }, [fragment]);
  if (record === "reading") return <p role="status">…</p>;
  if (record === "bad") return <p class="banner" role="alert">{S.results.sharedBad}</p>;
  return (
    <>
      <h1>{S.results.sharedTitle}</h1>
      <p class="banner">{S.results.sharedNote}</p>
      <About record={record} />
      {record.label && <p class="lead">{record.label}</p>}
      <RecordView record={record} />
      <div class="buttons">
        <button
          type="button"
          onClick={() => {
            void keep({ id: record.id, record });
            location.hash = "#results";
          }}
        >
          {S.results.keepShared}
        </button>
      </div>
    </>
  );
}

interface ListProps {
  open: (record: NetRecord) => void;
  compare: (records: NetRecord[]) => void;
}

function Library({ open, compare }: ListProps) {
  const all = useObservable(entries).map((entry) => entry.record);
  const [filter, setFilter] = useState("");
  const [kind, setKind] = useState("");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [fetched, setFetched] = useState<readonly NetRecord[]>([]);
  const [told, setTold] = useState("");
  const found = all.filter((record) => (kind === "" || record.command === kind) && matches(record, filter));
  const choose = (id: string) => setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  const picked = all.filter((record) => chosen.includes(record.id));
  const foreign = fetched.filter((record) => !picked.some((each) => each.id === record.id));
  const fetch = (id: string, record: NetRecord | undefined) => setFetched([...fetched.filter((each) => each.id !== id), ...(record ? [record] : [])]);
  const openFile = async (file: File | undefined) => {
    const records = file ? await recordsOf(file) : [];
    for (const record of records) await keep({ id: record.id, record });
    setTold(file && records.length === 0 ? S.results.openBad : "");
  };
  return (
    <>
      <h1>{S.results.title}</h1>
      <div class="card row">
        <label class="field grow">
          <span>{S.results.filter}</span>
          <input type="search" maxLength={100} value={filter} placeholder={S.results.filterHint} onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>{S.results.kind}</span>
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">{S.results.allKinds}</option>
            {[...new Set(all.map((record) => record.command))].sort().map((each) => (
              <option key={each} value={each}>
                {S.results.kinds[each] ?? each}
              </option>
            ))}
          </select>
        </label>
      </div>
      {picked.length + foreign.length > 0 && <Chosen here={picked} there={foreign} compare={compare} done={() => setChosen([])} />}
      <section aria-label={S.results.here}>
        {found.length === 0 && <p class="lead">{S.results.none}</p>}
        <ul class="list">
          {found.slice(0, MOST_SHOWN).map((record) => (
            <Item key={record.id} record={record} chosen={chosen.includes(record.id)} choose={() => choose(record.id)} open={() => open(record)} />
          ))}
        </ul>
      </section>
      <label class="file button">
        {S.results.open}
        <input
          type="file"
          accept="application/json,.json,.ndjson"
          onChange={(event) => {
            void openFile(event.currentTarget.files?.[0]);
            event.currentTarget.value = "";
          }}
        />
      </label>
      <p class="note" role="status">
        {told}
      </p>
      <OnServer open={open} chosen={fetched.map((record) => record.id)} choose={fetch} />
    </>
  );
}

function Item({ record, chosen, choose, open }: { record: NetRecord; chosen?: boolean; choose?: () => void; open: () => void }) {
  return (
    <li class="card item">
      {choose && <input type="checkbox" checked={chosen ?? false} aria-label={S.results.choose(nameOf(record))} onChange={choose} />}
      <button type="button" class="plain" onClick={open}>
        <span class="title">{record.label || kindOf(record)}</span>
        <span class="when">
          {whenOf(record)}
          {record.label ? ` · ${kindOf(record)}` : ""}
          {record.outcome === "complete" ? "" : ` · ${S.results.outcome[record.outcome]}`}
        </span>
        {figuresOf(record).map((own) => {
          const parts = [
            own.down && `↓ ${showRateOf(own.down)}`,
            own.up && `↑ ${showRateOf(own.up)}`,
            own.latency && showRtt(own.latency, "p50", own.clockStep),
          ].filter((part) => part);
          return parts.length > 0 && (
            <span key={own.version} class="summary">
              <small>{own.version}</small> {parts.join("  ")}
            </span>
          );
        })}
      </button>
    </li>
  );
}

interface ChosenProps {
  here: NetRecord[];
  /** Only on the server; what is deleted is on this device. */
  there: NetRecord[];
  compare: (records: NetRecord[]) => void;
  done: () => void;
}

function Chosen({ here, there, compare, done }: ChosenProps) {
  const [sure, setSure] = useState(false);
  const records = [...here, ...there];
  const remove = () => {
    void forget(here.map((record) => record.id));
    setSure(false);
    done();
  };
  return (
    <div class="card chosen" role="group" aria-label={S.results.chosen(records.length)}>
      <p>
        {sure ? S.results.removeSure(here.length) : S.results.chosen(records.length)}
        {there.length > 0 && <small>{S.results.chosenOnServer(there.length)}</small>}
      </p>
      <div class="buttons">
        {sure ? (
          <>
            <button type="button" class="danger" onClick={remove}>
              {S.results.remove}
            </button>
            <button type="button" onClick={() => setSure(false)}>
              {S.results.cancel}
            </button>
          </>
        ) : (
          <>
            <button type="button" class="primary" disabled={records.length < 2} onClick={() => compare(records)}>
              {S.results.compare}
            </button>
            <button type="button" onClick={() => saveText(csvOf(records), "netaware.csv", "text/csv")}>
              {S.results.exportCsv}
            </button>
            <button type="button" onClick={() => saveText(JSON.stringify(records, undefined, 2), "netaware.json", "application/json")}>
              {S.results.exportJson}
            </button>
            {here.length > 0 && (
              <button type="button" onClick={() => setSure(true)}>
                {S.results.remove}
              </button>
            )}
          </>
        )}
      </div>
    </div>
  );
}

function matches(record: NetRecord, filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const fields = [nameOf(record), kindOf(record), record.request.host, record.prober.name, ...record.versions.map((version) => version.address ?? "")];
  const all = fields.join(" ").toLowerCase();
  return words.every((word) => all.includes(word));
}

/** A record, a list of records, or one on each line as `--format ndjson` ends. */
async function recordsOf(file: File): Promise<NetRecord[]> {
  if (file.size > LARGEST_FILE) return [];
  const content = await file.text();
  const whole = parsed(content);
  const values = whole === undefined ? content.split("\n").map(parsed) : Array.isArray(whole) ? whole : [whole];
  return list(readRecord, 1000)(values) ?? [];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MOST_SHOWN = 200;
const LARGEST_FILE = 64e6;
