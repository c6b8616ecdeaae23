import { expect, test } from "vitest";
import { MIDDLE, movedBy, type Spot } from "../src/pure/spot";

test("arrow keys move a spot and never off the plan", () => {
  const rows: [string, boolean, Spot, Spot | undefined][] = [
    ["ArrowLeft", false, MIDDLE, [0.45, 0.5]],
    ["ArrowRight", false, MIDDLE, [0.55, 0.5]],
    ["ArrowUp", true, MIDDLE, [0.5, 0.49]],
    ["ArrowDown", true, MIDDLE, [0.5, 0.51]],
    ["ArrowLeft", false, [0.02, 1], [0, 1]],
    ["ArrowDown", false, [0.02, 1], [0.02, 1]],
    ["Tab", false, MIDDLE, undefined],
    ["constructor", false, MIDDLE, undefined],
  ];
  for (const [key, shiftKey, from, to] of rows) expect(movedBy(key, { shiftKey }, from), key).toEqual(to);
});

test("many small steps come back to where they began", () => {
  let spot: Spot = MIDDLE;
  for (const key of ["ArrowRight", "ArrowLeft"]) for (let n = 0; n < 37; n += 1) spot = movedBy(key, { shiftKey: true }, spot)!;
  expect(spot).toEqual(MIDDLE);
});
