// The quick test: a dial, a button under the thumb, and the result in plain words.

import { useState } from "preact/hooks";
import { server } from "../store/about";
import { keep } from "../store/database";
import { cancel, isMeasuring, live, measureQuick, type Live, type VersionLive } from "../store/live";
import { useObservable } from "../store/observable";
import type { Phase } from "../measure/messages";
import { lossOf } from "../pure/figures";
import type { NetRecord } from "../pure/record";
import { VERSIONS, type Version } from "../pure/targets";
import { showSpan, splitRate, splitShare, splitTrip, wholeSeconds } from "../pure/units";
import { S } from "../strings";
import { Curve } from "./curve";
import { Dial } from "./dial";
import { RecordActions } from "./recordActions";
import { RecordView } from "./recordView";

export function Quick() {
  const state = useObservable(live);
  const known = useObservable(server);
  const now = state.kind === "quick" ? state : { ...state, stage: "idle" as const };
  const measuring = isMeasuring(state.stage);
  const start = () => {
    if (known.state !== "here") return;
    void measureQuick({ label: "", versions: VERSIONS, length: "full", about: known.about, keepAs: {} });
  };
  return (
    <>
      <h1>{S.quick.title}</h1>
      {now.stage === "idle" && <p class="lead">{S.quick.lead}</p>}
      <div class="stage card">
        <Dial {...reading(now)} clockStep={now.clockStep} />
        <Status now={now} />
        <button class={measuring ? "big stop" : "big"} type="button" disabled={known.state !== "here" && !measuring} onClick={measuring ? cancel : start}>
          {measuring ? S.quick.stop : now.record ? S.quick.again : S.quick.start}
        </button>
        {now.stage !== "idle" && <Tiles now={now} />}
        {measuring && now.curve.x.length > 1 && <Curve curve={now.curve} />}
      </div>
      {now.stage === "done" && now.record && <Finished key={now.record.id} record={now.record} />}
    </>
  );
}

interface Reading {
  phase: Phase | undefined;
  value: number | undefined;
  caption: string;
}

/** While it runs what is measured now; afterwards the faster way down, which most people came for. */
function reading(now: Live): Reading {
  if (now.stage === "done" && now.record) return headline(now.record);
  const { phase, version } = now;
  if (!phase || !version || now.stage === "unreachable") return { phase: undefined, value: undefined, caption: S.quick.ready };
  return { phase, value: now.figures[version]?.[phase], caption: S.quick.dial(S.phases[phase], version) };
}

function headline(record: NetRecord): Reading {
  const measured = VERSIONS.map((version) => ({ version, value: final(record, version)?.down })).filter(({ value }) => value !== undefined);
  measured.sort((a, b) => b.value! - a.value!);
  const best = measured[0];
  return { phase: "down", value: best?.value, caption: best ? S.quick.dial(S.phases.down, best.version) : S.phases.down };
}

/** Spoken by screen readers as it changes; figures are not in it, they would never let the listener go. */
export function Status({ now }: { now: Live }) {
  return (
    <div class="status" role="status">
      {statusText(now).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

function statusText(now: Live): string[] {
  const missing = [
    ...now.missing.map((each) => S.quick.notOver(each.version, S.quick.missing[each.reason](wholeSeconds(each.waited)))),
    ...now.noDatagrams.map((each) => S.noDatagrams.over(each.version, S.noDatagrams.why[each.reason](wholeSeconds(each.waited)))),
  ];
  switch (now.stage) {
    case "idle":
    case "running":
      return missing;
    case "looking":
      return [S.quick.looking];
    case "queued":
      return [now.queue ? S.quick.queued(now.queue.place, showSpan(now.queue.wait)) : ""];
    case "lost":
      return [S.quick.lost];
    case "busyElsewhere":
      return [S.quick.busyElsewhere];
    case "unreachable":
      return [S.quick.unreachable, now.problem ?? S.quick.unreachableAdvice, ...missing];
    case "done":
      return [now.record?.outcome === "complete" ? S.quick.saved : S.quick.partial, ...missing];
  }
}

const PHASES: readonly Phase[] = ["latency", "loss", "down", "up"];

function splitOf(phase: Phase, clockStep: number): (value: number) => [string, string] {
  if (phase === "latency") return (value) => splitTrip(value, clockStep);
  return phase === "loss" ? splitShare : splitRate;
}

function Tiles({ now }: { now: Live }) {
  const versions = VERSIONS.filter((version) => now.figures[version] || !now.missing.some((each) => each.version === version));
  return (
    <dl class="tiles" aria-label={S.quick.tiles}>
      {PHASES.map((phase) => (
        <div key={phase} class={now.stage === "running" && now.phase === phase ? `tile ${phase} active` : `tile ${phase}`}>
          <dt>{S.phases[phase]}</dt>
          {versions.map((version) => (
            <dd key={version}>
              <small>{version}</small>
              <TileFigure value={tileValue(now, version, phase)} split={splitOf(phase, now.clockStep)} />
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}

/** While it runs the live figure, afterwards the result's: they differ, because the result leaves the warm-up out. */
function tileValue(now: Live, version: Version, phase: Phase): number | undefined {
  return final(now.record, version)?.[phase] ?? now.figures[version]?.[phase];
}

function TileFigure({ value, split }: { value: number | undefined; split: (value: number) => [string, string] }) {
  if (value === undefined) return <b>–</b>;
  const [figure, unit] = split(value);
  return (
    <b>
      {figure} <span class="unit">{unit}</span>
    </b>
  );
}

function final(record: NetRecord | undefined, version: Version): VersionLive | undefined {
  const own = record?.versions.find((each) => each.version === version);
  if (!own) return undefined;
  const rate = (direction: string) => own.tcp?.find((tcp) => tcp.pedigree.direction === direction)?.goodput;
  const [latency, loss, down, up] = [own.latency?.rtt?.p50, lossOf(own), rate("reverse"), rate("forward")];
  return { ...(latency === undefined ? {} : { latency }), ...(loss === undefined ? {} : { loss }), ...(down === undefined ? {} : { down }), ...(up === undefined ? {} : { up }) };
}

function Finished({ record }: { record: NetRecord }) {
  return (
    <>
      <RecordView record={record} />
      <LabelField record={record} />
      <RecordActions record={record} />
    </>
  );
}

function LabelField({ record }: { record: NetRecord }) {
  const [label, setLabel] = useState(record.label ?? "");
  const save = (event: Event) => {
    event.preventDefault();
    const labelled = { ...record, label: label.trim() };
    void keep({ id: record.id, record: labelled });
    live.set({ ...live.value, record: labelled });
  };
  return (
    <form class="card row" onSubmit={save}>
      <label class="field grow">
        <span>{S.quick.label}</span>
        <input type="text" maxLength={100} value={label} placeholder={S.quick.labelHint} onInput={(event) => setLabel(event.currentTarget.value)} />
      </label>
      <button type="submit">{S.quick.keepLabel}</button>
    </form>
  );
}
