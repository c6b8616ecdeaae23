// Compares the places of a walk: of each figure the median over the visits, between the smallest and the largest.

import { evidenceOf, figuresOf } from "./figures";
import { rangeOf, type NetRecord } from "./record";
import type { Interval } from "./statistics";
import type { Version } from "./targets";

export type PlaceFigure = "down" | "up" | "idle" | "loaded";
export const PLACE_FIGURES: readonly PlaceFigure[] = ["down", "up", "idle", "loaded"];

export interface Visit {
  place: string;
  record: NetRecord;
}

export interface PlaceSummary {
  place: string;
  visits: number;
  spread: Partial<Record<PlaceFigure, Interval>>;
  values: Partial<Record<PlaceFigure, number[]>>;
}

/** In the order of the first visit. */
export function comparePlaces(visits: readonly Visit[], version: Version): PlaceSummary[] {
  const places = [...new Set(visits.map((visit) => visit.place))];
  return places.map((place) => {
    const records = visits.filter((visit) => visit.place === place).map((visit) => visit.record);
    const summary: PlaceSummary = { place, visits: records.length, spread: {}, values: {} };
    for (const figure of PLACE_FIGURES) {
      const values = records.flatMap((record) => valueOf(record, version, figure) ?? []);
      const spread = rangeOf(values);
      if (spread) summary.spread[figure] = spread;
      summary.values[figure] = values;
    }
    return summary;
  });
}

export function valueOf(record: NetRecord, version: Version, figure: PlaceFigure): number | undefined {
  const own = figuresOf(record).find((figures) => figures.version === version);
  if (!own) return undefined;
  if (figure === "idle") return own.latency?.rtt?.p50;
  if (figure === "loaded") return evidenceOf(own).loaded;
  return own[figure]?.goodput;
}
