import { expect, test } from "vitest";
import { readRecord } from "../src/pure/readRecord";
import { numbers, takeIn } from "../src/pure/shape";
import { linkOf, recordOfFragment } from "../src/pure/share";
import type { Chart } from "../src/pure/chart";
import { svgOf } from "../src/pure/svg";
import { record } from "./fixture";

const PAGE = "http://192.0.2.1:14233/#results";

function base64url(text: string): string {
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

test("a shared link carries the whole result", async () => {
  const link = (await linkOf(record(), PAGE))!;
  expect(link.startsWith("http://192.0.2.1:14233/#r=")).toBe(true);
  const read = await recordOfFragment(link.slice(link.indexOf("#")));
  expect(read!.versions[0]!.tcp![0]!.goodput).toBe(80e6);
  expect(read!.label).toBe("hall A");
});

test("damaged and hostile links yield nothing", async () => {
  const bomb = new Blob([new Uint8Array(8_000_000)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const squeezed = base64url(String.fromCharCode(...new Uint8Array(await new Response(bomb).arrayBuffer())));
  const rows = [
    "#r=",
    "#r=z",
    "#r=x123",
    "#r=zAAAA",
    "#r=j" + base64url("null"),
    "#r=j" + base64url('{"schema":1}'),
    `#r=z${squeezed}`,
    `#r=j${"A".repeat(40_000)}`,
    "#r=j<script>",
  ];
  for (const row of rows) expect(await recordOfFragment(row), row.slice(0, 30)).toBeUndefined();
});

test("what nobody measured may be absent and the rest is read all the same", () => {
  const silent = JSON.parse(JSON.stringify(record())) as { versions: { latency?: { jitter?: number; health: object }; tcp?: { health: object }[] }[] };
  for (const version of silent.versions) {
    if (version.latency) {
      delete version.latency.jitter;
      version.latency.health = {};
    }
    for (const tcp of version.tcp ?? []) tcp.health = {};
  }
  const read = readRecord(silent)!;
  expect(read.versions[0]!.latency!.jitter).toBeUndefined();
  expect(read.versions[0]!.latency!.health).toEqual({});
  expect(read.versions[0]!.tcp!.length).toBe(record().versions[0]!.tcp!.length);
});

test("only figures of the right type are kept of what came from outside", () => {
  const given = JSON.parse(JSON.stringify(record()));
  given.versions[0].latency.rtt.p50 = "<img src=x>";
  given.versions[0].tcp[0].goodput = { toString: 1 };
  given.versions[0].__proto__ = { polluted: true };
  given.versions[0].udp = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}');
  given.label = "a\u202eb\u0000" + "x".repeat(500);
  const read = readRecord(given)!;
  expect(read.versions[0]!.latency!.rtt).toBeUndefined();
  expect(read.versions[0]!.tcp![0]!.goodput).toBeUndefined();
  expect(read.label).toHaveLength(100);
  expect(read.label).not.toContain("\u202e");
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test("of a list that is told on and on only so much is kept", () => {
  const slice = numbers("end", "bytes");
  const kept: Record<"end" | "bytes", number>[] = [];
  expect(takeIn(kept, [{ end: 1, bytes: 2, more: 3 }, "x", null, [4]], slice, 3)).toEqual([{ end: 1, bytes: 2 }]);
  expect(takeIn(kept, [{ end: Number.NaN }, { bytes: "7" }, { end: 5, bytes: 6 }], slice, 3)).toHaveLength(2);
  expect(takeIn(kept, [{ end: 9, bytes: 9 }], slice, 3)).toEqual([]);
  expect(takeIn(kept, "no list", slice, 3)).toEqual([]);
  expect(kept).toEqual([{ end: 1, bytes: 2 }, { end: 0, bytes: 0 }, { end: 0, bytes: 0 }]);
});

test("other schemas and broken identities are no records", () => {
  const given = () => JSON.parse(JSON.stringify(record()));
  expect(readRecord({ ...given(), schema: 2 })).toBeUndefined();
  expect(readRecord({ ...given(), id: "../../etc/passwd" })).toBeUndefined();
  expect(readRecord({ ...given(), started_at: Number.MAX_VALUE })).toBeUndefined();
  expect(readRecord([given()])).toBeUndefined();
});

test("script in a title stays text in an exported picture", () => {
  const chart: Chart = {
    kind: "lines",
    title: `</title><script>alert("1")</script>`,
    x: { label: "s" },
    y: { label: "Mbit/s" },
    series: [{ name: "<b>&'", points: [[0, 1], [1, 2]], look: "line" }, { name: "b", points: [[0, Number.NaN]], look: "dots" }],
  };
  const svg = svgOf([chart, chart]);
  expect(svg.match(/<polyline/g)?.length).toBe(2 * (svgOf([chart]).match(/<polyline/g)?.length ?? Number.NaN));
  expect(svg).not.toContain("<script");
  expect(svg).not.toContain("<b>");
  expect(svg).not.toContain("NaN");
});

test("an empty chart is drawn without a figure that is none", () => {
  for (const log of [false, true]) {
    const axis = { label: "x", log };
    const svg = svgOf([{ kind: "lines", title: "t", x: axis, y: axis, series: [{ name: "a", points: [], look: "bars" }] }]);
    expect(svg).not.toMatch(/NaN|Infinity/);
  }
});
