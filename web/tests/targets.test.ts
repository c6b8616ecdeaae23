import { expect, test } from "vitest";
import { candidates, versionOf } from "../src/pure/targets";

test("a literal address tells its version and a name does not", () => {
  const rows: [string, string | undefined][] = [
    ["192.0.2.1", "IPv4"],
    ["[2001:db8::1]", "IPv6"],
    ["::1", "IPv6"],
    ["2001:db8::", "IPv6"],
    ["::ffff:192.0.2.1", "IPv6"],
    ["localhost", undefined],
    ["lab-b.example", undefined],
    ["1.2.3", undefined],
  ];
  for (const [host, want] of rows) expect(versionOf(host), host).toBe(want);
});

test("the address that gave us the page goes first, and a phone never tries its own loopback", () => {
  const page = { protocol: "http:", hostname: "192.0.2.7", port: "14233" };
  const found = candidates(page, ["127.0.0.1", "192.0.2.1", "192.0.2.7", "::1", "fe80::1", "2001:db8::1", "evil.example/"]);
  expect(found.map((each) => each.origin)).toEqual([
    "http://192.0.2.7:14233",
    "http://192.0.2.1:14233",
    "http://[2001:db8::1]:14233",
  ]);
});

test("on the server's own host loopback is measured over both versions", () => {
  const found = candidates({ protocol: "http:", hostname: "localhost", port: "14233" }, []);
  expect(found.map((each) => each.address)).toEqual(["127.0.0.1", "::1"]);
});
