// One record, whoever measured it: verdicts, figures, pictures, and one tap deeper the pedigree.

import type { ComponentChildren } from "preact";
import { chartsOf } from "../pure/recordCharts";
import { evidenceOf, figuresOf, lostTrips, type VersionFigures } from "../pure/figures";
import type { Health, LatencyResult, NetRecord, TcpResult } from "../pure/record";
import { USES, verdict, type UseVerdict } from "../pure/verdict";
import { showSize, showSpan, showTrip } from "../pure/units";
import { S } from "../strings";
import { MatrixTables } from "./matrixTables";
import { Picture } from "./picture";
import { because, showInterval, showRateOf, showRtt } from "./wording";

export function RecordView({ record }: { record: NetRecord }) {
  const figures = figuresOf(record);
  const measured = figures.filter((own) => own.latency || own.down || own.up);
  return (
    <div class="record">
      {record.command === "test" && <Verdicts figures={measured} />}
      {measured.length > 0 && <FigureTable figures={figures} />}
      <MatrixTables record={record} />
      {chartsOf(record).map((chart) => (
        <Picture key={chart.title} chart={chart} />
      ))}
      <Warnings record={record} />
      {measured.length > 0 && <Pedigrees figures={measured} />}
      <Others record={record} />
    </div>
  );
}

export function Verdicts({ figures }: { figures: readonly VersionFigures[] }) {
  if (figures.length === 0) return null;
  return (
    <section class="card" aria-label={S.verdict.title}>
      <h2>{S.verdict.title}</h2>
      <ul class="verdicts">
        {USES.map((use) => {
          const each = figures.map((own) => ({ version: own.version, verdict: verdict(use, evidenceOf(own)), clockStep: own.clockStep }));
          const alike = each.every((one) => one.verdict.grade === each[0]!.verdict.grade);
          return (alike ? each.slice(0, 1) : each).map((one) => (
            <VerdictRow key={use + one.version} verdict={one.verdict} clockStep={one.clockStep} over={alike ? "" : S.verdict.over(one.version)} />
          ));
        })}
      </ul>
      <p class="note">
        {S.verdict.careful} {figures.some((own) => evidenceOf(own).loss === undefined) && S.verdict.lossUnknown}
      </p>
    </section>
  );
}

function VerdictRow({ verdict: found, clockStep, over }: { verdict: UseVerdict; clockStep: number; over: string }) {
  return (
    <li>
      <span class="use">
        <strong>{S.uses[found.use]}</strong> {over}
      </span>
      <span class={`grade ${found.grade}`}>{S.grades[found.grade]}</span>
      <span class="because">{because(found, clockStep)}</span>
    </li>
  );
}

type Row = [string, (own: VersionFigures) => ComponentChildren];

export function FigureTable({ figures }: { figures: readonly VersionFigures[] }) {
  const rows: Row[] = [
    [S.table.down, (own) => <Rate tcp={own.down} />],
    [S.table.up, (own) => <Rate tcp={own.up} />],
    [S.table.rtt, (own) => <b>{showRtt(own.latency, "p50", own.clockStep)}</b>],
    [S.table.rttTail, (own) => own.latency && `${showRtt(own.latency, "p95", own.clockStep)} · ${showRtt(own.latency, "p99", own.clockStep)}`],
    [S.table.rttRange, (own) => own.latency && `${showRtt(own.latency, "min", own.clockStep)} · ${showRtt(own.latency, "max", own.clockStep)}`],
    [S.table.ipdv, (own) => own.latency?.ipdv && showSpan(own.latency.ipdv.mean)],
    [S.table.pdv, (own) => own.latency?.pdv && showTrip(own.latency.pdv.p95, own.clockStep)],
    [S.table.loadedDown, (own) => <Loaded tcp={own.down} clockStep={own.clockStep} />],
    [S.table.loadedUp, (own) => <Loaded tcp={own.up} clockStep={own.clockStep} />],
    [S.table.loss, (own) => <Loss own={own} />],
    ...(figures.some((own) => own.streams.some((stream) => stream.jitter !== undefined)) ? [[S.table.jitter, jitterOf] as Row] : []),
    ...(figures.some((own) => own.latencyTcp) ? [[S.table.rttTcp, (own) => own.latencyTcp && showRtt(own.latencyTcp, "p50", own.clockStep)] as Row] : []),
  ];
  return (
    <section class="card" aria-label={S.table.title}>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">{S.table.figure}</th>
            {figures.map((own) => (
              <th key={own.version} scope="col">
                {own.version}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, cell]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {figures.map((own) => (
                <td key={own.version}>{cell(own) || "–"}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {figures.map((own) => own.unreachable && <p key={own.version} class="note">{S.quick.notOver(own.version, own.unreachable)}</p>)}
    </section>
  );
}

/** Round trips as a whole, below them each way by itself. */
function Loss({ own }: { own: VersionFigures }) {
  const known = lostTrips(own);
  const trips = known && S.table.lostBothWays(S.table.lost(known.lost, known.of));
  if (trips === undefined && own.streams.length === 0) return <>{S.table.notMeasured}</>;
  return (
    <>
      {trips}
      {own.streams.map(({ direction, lost, sent }) => (
        <small key={direction}>{S.table.lostOneWay(S.table[direction], S.table.lost(lost, sent))}</small>
      ))}
    </>
  );
}

function jitterOf(own: VersionFigures): ComponentChildren {
  return own.streams.map(({ direction, jitter }) => jitter !== undefined && <small key={direction}>{S.table.lostOneWay(S.table[direction], showSpan(jitter))}</small>);
}

function Rate({ tcp }: { tcp: TcpResult | undefined }) {
  if (!tcp) return <>–</>;
  return (
    <>
      <b>{showRateOf(tcp)}</b>
      <small>{showInterval(tcp)}</small>
      {tcp.outcome !== "complete" && <small>{S.results.outcome[tcp.outcome]}</small>}
    </>
  );
}

function Loaded({ tcp, clockStep }: { tcp: TcpResult | undefined; clockStep: number }) {
  const latency = tcp?.latency_under_load?.latency;
  if (!latency?.rtt) return <>–</>;
  return (
    <>
      {showRtt(latency, "p50", clockStep)}
      <small>{S.table.p95(showRtt(latency, "p95", clockStep))}</small>
    </>
  );
}

function Warnings({ record }: { record: NetRecord }) {
  if (record.warnings.length === 0) return null;
  return (
    <section class="card quiet" aria-label={S.pedigree.warnings}>
      <h2>{S.pedigree.warnings}</h2>
      <ul class="plain">
        {record.warnings.map((warning) => (
          <li key={warning}>{warning}</li>
        ))}
      </ul>
    </section>
  );
}

function Pedigrees({ figures }: { figures: readonly VersionFigures[] }) {
  return (
    <details class="card">
      <summary>{S.pedigree.title}</summary>
      {figures.map((own) => (
        <div key={own.version}>
          {own.latency && <LatencyPedigree latency={own.latency} name={S.phases.latency} />}
          {own.latencyTcp && <LatencyPedigree latency={own.latencyTcp} name={S.table.rttTcp} />}
          {own.down && <TcpPedigree tcp={own.down} name={S.table.down} />}
          {own.up && <TcpPedigree tcp={own.up} name={S.table.up} />}
        </div>
      ))}
    </details>
  );
}

function LatencyPedigree({ latency, name }: { latency: LatencyResult; name: string }) {
  const { pedigree, health } = latency;
  return (
    <Facts
      title={`${name}, ${pedigree.version}`}
      rows={[
        [S.pedigree.method, pedigree.method],
        [S.pedigree.counted, S.pedigree.roundTrip(showSize(latency.payload), latency.received)],
        [S.pedigree.clock, S.pedigree.clocks[pedigree.clock]],
        [S.pedigree.uncertainty, pedigree.uncertainty],
        [S.pedigree.instrument, troubles(health)],
      ]}
    />
  );
}

/** A row of what somebody measured; none of what nobody did. */
function present<T>(value: T | undefined, row: (value: T) => [string, string]): [string, string][] {
  return value === undefined ? [] : [row(value)];
}

function TcpPedigree({ tcp, name }: { tcp: TcpResult; name: string }) {
  const { pedigree } = tcp;
  const beside = tcp.latency_under_load?.latency.health;
  return (
    <Facts
      title={`${name}, ${pedigree.version}`}
      rows={[
        [S.pedigree.method, pedigree.method],
        ...present(tcp.bytes, (bytes) => [S.pedigree.counted, S.pedigree.bytes(showSize(bytes), tcp.streams, showSpan(tcp.measured))]),
        ...present(tcp.warm_up, (it) => [S.pedigree.warmUp, S.pedigree.omitted(showSpan(it.omitted), it.rule)]),
        [S.pedigree.clock, S.pedigree.clocks[pedigree.clock]],
        [S.pedigree.uncertainty, pedigree.uncertainty],
        ...(tcp.limit ? [[S.pedigree.limit, `${tcp.limit.by}: ${tcp.limit.evidence}`] as [string, string]] : []),
        [S.pedigree.instrument, troubles(beside ?? {})],
      ]}
    />
  );
}

function troubles(health: Health): string {
  const { late_sends: late, worst_lateness: worst, stamp_fallbacks: refused } = health;
  if (late === undefined && refused === undefined) return S.pedigree.nobodyWatched;
  const told = [late ? S.pedigree.late(late, showSpan(worst ?? 0)) : "", refused ? S.pedigree.refused(refused) : ""];
  return told.filter((text) => text !== "").join("; ") || S.pedigree.nothing;
}

export function Facts({ title, rows }: { title?: string; rows: [string, ComponentChildren][] }) {
  return (
    <>
      {title && <h3>{title}</h3>}
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

/** What other commands measured, as their record has it. */
function Others({ record }: { record: NetRecord }) {
  const known = new Set(["version", "address", "unreachable", "failed_phases", "reach", "latency", "latency_tcp", "tcp", "matrix"]);
  const rest = record.versions.flatMap((version) =>
    Object.entries(version)
      .filter(([name, value]) => !known.has(name) && value !== undefined)
      .map(([name, value]) => [`${version.version} ${name}`, value] as const),
  );
  const more = [...rest, ...(record.ability ? [["ability", record.ability] as const] : []), ...(record.comparison ? [["comparison", record.comparison] as const] : [])];
  if (more.length === 0) return null;
  return (
    <details class="card" open={!record.versions.some((version) => version.latency || version.tcp || version.matrix)}>
      <summary>{S.results.details}</summary>
      {more.map(([name, value]) => (
        <Tree key={name} name={name} value={value} />
      ))}
    </details>
  );
}

/** `delays`: the parent is a summary of delays, so its plain numbers are ns. */
function Tree({ name, value, delays = false }: { name: string; value: unknown; delays?: boolean }) {
  const words = name.replaceAll("_", " ");
  if (typeof value !== "object" || value === null) {
    return (
      <p class="leaf">
        <span>{words}</span> <b>{shown(name, value, delays)}</b>
      </p>
    );
  }
  const entries = Object.entries(value).slice(0, 200);
  return (
    <details class="branch" open={entries.length <= 12 && !Array.isArray(value)}>
      <summary>
        {words} {Array.isArray(value) ? `(${value.length})` : ""}
      </summary>
      {entries.map(([key, each]) => (
        <Tree key={key} name={key} value={each} delays={"p50" in value && "p95" in value} />
      ))}
    </details>
  );
}

function shown(name: string, value: unknown, delays: boolean): string {
  if (typeof value !== "number") return String(value);
  if (SPANS.test(name) || (delays && name !== "count")) return showSpan(value);
  return value.toLocaleString("en-GB", { maximumFractionDigits: 3 });
}

/** Fields of the schema that are ns wherever they stand. */
const SPANS = /^(elapsed|took|jitter|greeting|patience|worst_lateness|send_gap|stamp_error)$|_ns$/;
