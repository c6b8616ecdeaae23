// Results side by side: one table of all figures that any of them has, and one picture at a time.

import { useState } from "preact/hooks";
import { compare, overlays } from "../pure/compare";
import { csvOf } from "../pure/csv";
import type { Measure } from "../pure/measures";
import type { NetRecord } from "../pure/record";
import { showBounds, splitRate, splitSpan } from "../pure/units";
import { S } from "../strings";
import { Back } from "./back";
import { Picture } from "./picture";
import { savePng, saveSvg, saveText } from "./save";
import { kindOf, showMeasure, whenOf } from "./wording";

export function Compared({ records, back }: { records: NetRecord[]; back: () => void }) {
  const named = records.map((record, n) => ({ name: record.label || `${n + 1}`, record }));
  const { columns, rows } = compare(named);
  const pictures = overlays(named);
  const [title, setTitle] = useState("");
  const picture = pictures.find(({ chart }) => chart.title === title) ?? pictures[0];
  const charts = pictures.map(({ chart }) => chart);
  return (
    <>
      <Back back={back} />
      <h1>{S.results.compareTitle}</h1>
      <section class="card">
        {rows.length === 0 && <p class="lead">{S.results.compareNothing}</p>}
        {rows.length > 0 && (
          <div class="scroll" tabIndex={0} role="region" aria-label={S.results.compareTitle}>
            <table class="wide">
              <thead>
                <tr>
                  <th scope="col">{S.table.figure}</th>
                  {columns.map(({ name, record, version }) => (
                    <th key={record.id + version} scope="col">
                      {name}
                      <small>{version ?? kindOf(record)}</small>
                      <small>{whenOf(record)}</small>
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map(({ name, cells }) => (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    {cells.map((measure, n) => (
                      <td key={n}>{measure ? <Cell measure={measure} /> : "–"}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {picture && (
        <section class="card">
          <label class="field">
            <span>{S.results.overlay}</span>
            <select value={picture.chart.title} onChange={(event) => setTitle(event.currentTarget.value)}>
              {charts.map((chart) => (
                <option key={chart.title} value={chart.title}>
                  {chart.title}
                </option>
              ))}
            </select>
          </label>
          {picture.records < records.length && <p class="note">{S.results.overlaySome(picture.records, records.length)}</p>}
          {picture.records > COLOURS && <p class="note">{S.results.overlayColours}</p>}
          <Picture chart={picture.chart} ratio={0.88} />
        </section>
      )}
      <div class="buttons">
        <button type="button" onClick={() => saveText(csvOf(records), "netaware.csv", "text/csv")}>
          {S.results.exportCsv}
        </button>
        {picture && (
          <>
            <button type="button" onClick={() => saveSvg([picture.chart], "netaware.svg")}>
              {S.results.exportSvg}
            </button>
            <button type="button" onClick={() => void savePng([picture.chart], "netaware.png")}>
              {S.results.exportPng}
            </button>
          </>
        )}
      </div>
    </>
  );
}

function Cell({ measure }: { measure: Measure }) {
  const { lo, hi, unit } = measure;
  const split = unit === "bit/s" ? splitRate : unit === "ns" ? splitSpan : undefined;
  return (
    <>
      {showMeasure(measure)}
      {measure.counts && <small>{S.table.lost(...measure.counts)}</small>}
      {split && lo !== undefined && hi !== undefined && hi > lo && <small>{showBounds(lo, hi, split, S.table.to)}</small>}
    </>
  );
}

/** Of the style sheet. */
const COLOURS = 6;
