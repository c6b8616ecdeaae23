import { expect, test } from "vitest";
import { evidenceOf, figuresOf } from "../src/pure/figures";
import { verdict, type Evidence } from "../src/pure/verdict";
import { record } from "./fixture";

const FINE: Evidence = { down: 90e6, up: 40e6, idleMedian: 12e6, variation: 4e6, loaded: 60e6 };

test("a use is as good as its worst figure", () => {
  const rows: [Partial<Evidence>, "call" | "game" | "film", string, string | undefined][] = [
    [{}, "call", "good", undefined],
    [{}, "game", "good", undefined],
    [{}, "film", "good", undefined],
    [{ up: 2e6 }, "call", "fair", "up"],
    [{ up: 0.5e6 }, "call", "poor", "up"],
    [{ loaded: 900e6 }, "call", "poor", "loaded"],
    [{ loaded: 150e6 }, "game", "fair", "loaded"],
    [{ idleMedian: 180e6 }, "game", "poor", "idleMedian"],
    [{ down: 20e6 }, "film", "fair", "down"],
    [{ down: 9e6 }, "film", "poor", "down"],
    [{ loss: 0 }, "call", "good", undefined],
    [{ loss: 0.02 }, "call", "fair", "loss"],
    [{ loss: 0.1 }, "call", "poor", "loss"],
    [{ loss: 0.1 }, "game", "poor", "loss"],
    [{ loss: 0.1 }, "film", "good", undefined],
  ];
  for (const [change, use, grade, worst] of rows) {
    const found = verdict(use, { ...FINE, ...change });
    expect(found.grade, JSON.stringify(change)).toBe(grade);
    if (worst) expect(found.reasons[0]!.figure).toBe(worst);
  }
});

test("what was not measured leaves the verdict open, unless something else decides it", () => {
  expect(verdict("film", {}).grade).toBe("unknown");
  expect(verdict("call", { ...FINE, up: undefined })).toMatchObject({ grade: "unknown", missing: ["up"] });
  expect(verdict("call", { down: 0.1e6 }).grade).toBe("poor");
});

test("where loss could not be measured the other figures decide", () => {
  expect(verdict("call", FINE)).toMatchObject({ grade: "good", missing: [] });
});

test("the loss of a verdict is that of the worse way", () => {
  const figures = figuresOf(record())[0]!;
  expect(evidenceOf(figures).loss).toBeUndefined();
  const streams = [{ direction: "down", lost: 1, sent: 100 }, { direction: "up", lost: 7, sent: 100 }] as const;
  expect(evidenceOf({ ...figures, streams: [...streams] }).loss).toBe(0.07);
  const datagrams = { ...figures.latency!, lost: 9, sent: 100, pedigree: { ...figures.latency!.pedigree, method: "web-datagrams-latency" } };
  expect(evidenceOf({ ...figures, latency: datagrams, streams: [...streams] }).loss).toBe(0.09);
});
