// The block matrix: what to send in blocks of which size, and the tables and graphs of it.

import { useState } from "preact/hooks";
import { check, transfers, type Complaints, type Field, type Protocol } from "../pure/matrixPlan";
import type { NetRecord } from "../pure/record";
import { server, type About, type Server } from "../store/about";
import { cancel, isMeasuring, live, measureMatrix, offersDatagrams } from "../store/live";
import { useObservable } from "../store/observable";
import { remember, settings, type Settings } from "../store/settings";
import { S } from "../strings";
import { Status } from "./quick";
import { RecordActions } from "./recordActions";
import { RecordView } from "./recordView";

type Wish = Settings["matrix"];

export function Matrix() {
  const [kept, setWish] = useState<Wish>(settings().matrix);
  const known = useObservable(server);
  // What cannot be had is not asked for, and is remembered for where it can.
  const wish = datagramsAbsent(known) === undefined ? kept : { ...kept, udp: false };
  const state = useObservable(live);
  const own = state.kind === "matrix";
  const measuring = isMeasuring(state.stage);
  const cap = known.state === "here" ? known.about.limits.bytes : null;
  const checked = check(wish, cap);
  const complaints = "complaints" in checked ? checked.complaints : {};
  const protocols = protocolsOf(wish);
  const absent = datagramsAbsent(known);
  const ready = known.state === "here" && !("complaints" in checked) && protocols.length > 0;
  const change = (part: Partial<Wish>) => {
    const next = { ...kept, ...part };
    setWish(next);
    remember({ matrix: next });
  };
  const start = () => {
    if (known.state === "here" && !("complaints" in checked)) begin(wish, known.about, transfers(checked.cells, protocols, checked.runs));
  };
  return (
    <>
      <h1>{S.matrix.title}</h1>
      <p class="lead">{S.matrix.lead}</p>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (measuring) cancel();
          else start();
        }}
      >
        <Choices wish={wish} change={change} absent={absent} />
        <Sizes wish={wish} change={change} complaints={complaints} />
        <button class={measuring ? "big stop" : "big"} type="submit" disabled={!measuring && !ready}>
          {measuring ? S.matrix.stop : S.matrix.start}
        </button>
        {own && <Status now={state} />}
        {own && measuring && state.progress.planned > 0 && (
          <>
            <progress aria-label={S.matrix.title} max={state.progress.planned} value={state.progress.done} />
            <p class="note">{S.matrix.progress(state.progress.done, state.progress.planned)}</p>
          </>
        )}
      </form>
      {own && state.stage === "done" && state.record && <Finished record={state.record} />}
    </>
  );
}

function Finished({ record }: { record: NetRecord }) {
  return (
    <>
      <RecordView record={record} />
      <RecordActions record={record} />
    </>
  );
}

function begin(wish: Wish, about: About, plan: ReturnType<typeof transfers>): void {
  const options = { from: "web page", direction: wish.way, bytes: wish.sweep ? "17 pairs" : wish.total, blocks: wish.sweep ? "17 pairs" : wish.block, runs: wish.runs };
  void measureMatrix({ label: "", way: wish.way, plan, options, about });
}

/** Why there is no UDP-like protocol to choose; undefined where there is. */
function datagramsAbsent(known: Server): string | undefined {
  if (typeof RTCPeerConnection === "undefined") return S.matrix.udpMissing;
  return known.state === "here" && !offersDatagrams(known.about) ? S.matrix.udpAbsent : undefined;
}

function protocolsOf(wish: Wish): Protocol[] {
  return [
    ...(wish.tcp ? (["tcp"] as const) : []), ...(wish.nodelay ? (["tcp_nodelay"] as const) : []),
    ...(wish.udp ? (["udp"] as const) : []),
  ];
}

interface PartProps {
  wish: Wish;
  change: (part: Partial<Wish>) => void;
}

function Choices({ wish, change, absent }: PartProps & { absent: string | undefined }) {
  return (
    <>
      <fieldset>
        <legend>{S.matrix.way}</legend>
        <Radio name="way" checked={wish.way === "down"} text={S.matrix.down} choose={() => change({ way: "down" })} />
        <Radio name="way" checked={wish.way === "up"} text={S.matrix.up} choose={() => change({ way: "up" })} />
        <p class="note">{wish.way === "up" ? S.matrix.upNote : S.matrix.downNote}</p>
      </fieldset>
      <fieldset>
        <legend>{S.matrix.protocol}</legend>
        <Check checked={wish.tcp} text={S.matrix.tcp} toggle={() => change({ tcp: !wish.tcp })} />
        <Check checked={wish.nodelay} text={S.matrix.tcp_nodelay} toggle={() => change({ nodelay: !wish.nodelay })} />
        <Check checked={wish.udp} text={S.matrix.udp_web} toggle={() => change({ udp: !wish.udp })} disabled={absent !== undefined} />
        {!wish.tcp && !wish.nodelay && !wish.udp && <p class="complaint">{S.matrix.oneProtocol}</p>}
        <p class="note">{absent ?? S.matrix.udpNote}</p>
      </fieldset>
    </>
  );
}

function Sizes({ wish, change, complaints }: PartProps & { complaints: Complaints }) {
  return (
    <fieldset>
      <legend>{S.matrix.sizes}</legend>
      <Radio name="sizes" checked={wish.sweep} text={S.matrix.sweep} choose={() => change({ sweep: true })} />
      <Radio name="sizes" checked={!wish.sweep} text={S.matrix.single} choose={() => change({ sweep: false })} />
      {!wish.sweep && (
        <div class="row tops">
          <Entry field="total" value={wish.total} complaints={complaints} type={(total) => change({ total })} />
          <Entry field="block" value={wish.block} complaints={complaints} type={(block) => change({ block })} />
        </div>
      )}
      <Entry field="runs" value={wish.runs} complaints={complaints} type={(runs) => change({ runs })} />
    </fieldset>
  );
}

interface EntryProps {
  field: Field;
  value: string;
  complaints: Complaints;
  type: (value: string) => void;
}

function Entry({ field, value, complaints, type }: EntryProps) {
  const complaint = complaints[field];
  const id = `complaint-${field}`;
  return (
    <label class="field grow">
      <span>{S.matrix.fields[field]}</span>
      <input
        type="text"
        inputMode={field === "runs" ? "numeric" : "text"}
        autocapitalize="off"
        maxLength={20}
        value={value}
        aria-invalid={complaint !== undefined}
        {...(complaint ? { "aria-describedby": id } : {})}
        onInput={(event) => type(event.currentTarget.value)}
      />
      {complaint && (
        <span class="complaint" id={id}>
          {S.matrix.complaints[complaint.reason](complaint)}
        </span>
      )}
    </label>
  );
}

export function Radio({ name, checked, text, choose }: { name: string; checked: boolean; text: string; choose: () => void }) {
  return (
    <label class="choice">
      <input type="radio" name={name} checked={checked} onChange={choose} />
      <span>{text}</span>
    </label>
  );
}

function Check({ checked, text, toggle, disabled = false }: { checked: boolean; text: string; toggle: () => void; disabled?: boolean }) {
  return (
    <label class="choice">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={toggle} />
      <span>{text}</span>
    </label>
  );
}
