import { expect, test } from "vitest";
import { verdict, type Evidence } from "../src/pure/verdict";

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
