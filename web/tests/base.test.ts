import { expect, test } from "vitest";
import { baseOf } from "../src/pure/base";

test("a page below a path of a reverse proxy finds its server there", () => {
  const rows: [string, string][] = [
    ["http://192.0.2.1:14233/", "http://192.0.2.1:14233"],
    ["http://192.0.2.1:14233/index.html?a=/b#results", "http://192.0.2.1:14233"],
    ["https://example.com/speed/#server", "https://example.com/speed"],
  ];
  for (const [href, want] of rows) expect(baseOf(href), href).toBe(want);
});
