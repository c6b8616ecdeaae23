import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { remember, settings } from "../src/store/settings";

let kept: Map<string, string>;

beforeEach(() => {
  kept = new Map();
  vi.stubGlobal("localStorage", { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) });
});

afterEach(() => vi.unstubAllGlobals());

test("the parameters of the matrix and of a walk are there again when the page is", () => {
  const matrix = { ...settings().matrix, way: "up" as const, sweep: false, total: "64KiB", block: "500", runs: "7", udp: true };
  remember({ matrix });
  remember({ walkSeconds: "45", places: ["hall A"] });
  expect(settings()).toEqual({ ...settings(), matrix, walkSeconds: "45", places: ["hall A"] });
  expect([...kept.keys()]).toEqual(["netaware"]);
});

test("what was kept by something else is left where it does not fit", () => {
  const standard = settings();
  for (const text of ["{", "null", "7", '{"matrix":{"total":5,"way":[]},"places":[1,"hall"]}']) {
    kept.set("netaware", text);
    expect({ ...settings(), places: [] }).toEqual({ ...standard, places: [] });
  }
  expect(settings().places).toEqual(["hall"]);
});

test("a browser that keeps nothing only forgets", () => {
  vi.stubGlobal("localStorage", undefined);
  remember({ walkSeconds: "45" });
  expect(settings().walkSeconds).toBe("30");
});
