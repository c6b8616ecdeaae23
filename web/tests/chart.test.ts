import { expect, test } from "vitest";
import { layOut, type LineChart } from "../src/pure/chart";

const WIDTH = 340;

test("no label stands out of the picture, however long the last one is", () => {
  for (const most of [1, 950, 10_000, 123_456, 1e12]) {
    const points: [number, number][] = [[0, 1], [most, 2]];
    const chart: LineChart = { kind: "lines", title: "", x: { label: "x" }, y: { label: "y" }, series: [{ name: "a", points, look: "line" }] };
    const middles = layOut(chart, WIDTH, 230).shapes.flatMap((shape) => (shape.is === "text" && shape.anchor === "middle" ? [shape] : []));
    expect(middles.length).toBeGreaterThan(1);
    for (const { at, text } of middles) expect(at[0] + text.length * 3.3, text).toBeLessThan(WIDTH);
  }
});
