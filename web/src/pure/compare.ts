// Lays records side by side: a column for each record and IP version, a row for each figure that any of them has.

import type { LineChart, SpreadChart } from "./chart";
import { measuresOf, type Measure } from "./measures";
import type { NetRecord } from "./record";
import { chartsOf } from "./recordCharts";
import type { Version } from "./targets";

export interface Named {
  name: string;
  record: NetRecord;
}

export interface Comparison {
  columns: (Named & { version: Version | undefined })[];
  /** One cell per column. */
  rows: { name: string; cells: (Measure | undefined)[] }[];
}

export function compare(records: readonly Named[]): Comparison {
  const columns = records.flatMap(({ name, record }) => {
    const measures = measuresOf(record);
    const versions = [...new Set(measures.map((each) => each.version))].sort();
    return versions.map((version) => ({ name, record, version, own: measures.filter((each) => each.version === version) }));
  });
  const names = [...new Set(inOneOrder(columns.map(({ own }) => own.map((each) => each.name))))];
  const rows = names.map((name) => ({ name, cells: columns.map(({ own }) => own.find((each) => each.name === name)) }));
  return { columns: columns.map(({ own: _, ...column }) => column), rows };
}

/** What one list has more than the others stands beside what it stands beside there; what has nothing in common comes last. */
function inOneOrder(lists: readonly string[][]): string[] {
  const all: string[] = [];
  for (const list of lists) {
    const common = list.find((name) => all.includes(name));
    let at = common === undefined ? all.length : all.indexOf(common);
    for (const name of list) {
      const known = all.indexOf(name);
      if (known < 0) all.splice(at, 0, name);
      at = (known < 0 ? at : known) + 1;
    }
  }
  return all;
}

/** A picture of one thing that several records have measured. */
export interface Overlay {
  chart: LineChart | SpreadChart;
  /** So many of the records are in it. */
  records: number;
}

/** One for each line of each picture that the records have, with one line per record. What most of them have comes first. */
export function overlays(records: readonly Named[]): Overlay[] {
  const found = new Map<string, Overlay>();
  const of = (title: string, empty: () => LineChart | SpreadChart) => {
    const known = found.get(title) ?? { chart: empty(), records: 0 };
    found.set(title, known);
    known.records += 1;
    return known.chart;
  };
  for (const { name, record } of records) {
    for (const chart of chartsOf(record)) {
      if (chart.kind === "lines") {
        for (const series of chart.series) {
          const title = `${chart.title}: ${series.name}`;
          const onto = of(title, () => ({ ...chart, title, series: [] }));
          // Bars of several records would stand before each other.
          const look = series.look === "bars" && records.length > 1 ? "line" : series.look;
          if (onto.kind === "lines") onto.series.push({ ...series, name, look });
        }
      } else {
        for (const row of chart.rows) {
          const title = `${chart.title}: ${row.name}`;
          const onto = of(title, () => ({ ...chart, title, rows: [] }));
          if (onto.kind === "spreads") onto.rows.push({ ...row, name });
        }
      }
    }
  }
  return [...found.values()].sort((a, b) => b.records - a.records);
}
