import { expect, test } from "vitest";
import { proof } from "../src/measure/proof";
import { certificateOf, differs, inPairs } from "../src/store/certificate";
import { readView } from "../src/store/owner";

test("proofs are those of the protocol", async () => {
  const nonces: [string, string] = ["01".repeat(16), "02".repeat(16)];
  // HMAC-SHA-256("sesame", label ‖ nonces), by openssl.
  expect(await proof("prober", "sesame", nonces)).toBe("4e7d0485421d5c1ecd079a234ddd03440808dc39332510a5008a2231a6e23c6c");
  expect(await proof("responder", "sesame", nonces)).toBe("9db4bda18506e61e1482c742b304b30860348afb79c6cb3fc11218f44a4d5ecc");
});

test("only a whole fingerprint in the fragment is one", () => {
  const digest = "a5".repeat(32);
  expect(certificateOf(`#tls=${digest}`)).toBe(digest);
  expect(certificateOf(`#tls=${digest.toUpperCase()}`)).toBe(digest);
  for (const fragment of ["", "#tls=", "#tls=a5", `#tls=${digest}0`, `#r=${digest}`, `#tls=${"<b>".repeat(21)}x`]) expect(certificateOf(fragment)).toBeUndefined();
  expect(inPairs("00ff")).toBe("00:FF");
  expect([differs(digest, digest), differs(undefined, digest), differs(digest, undefined), differs(digest, "00")]).toEqual([false, false, false, true]);
});

test("what a server tells its owner is read field by field", () => {
  const told = {
    uptime: 1,
    sessions: [{ peer: "192.0.2.1:9", software: "<b>x\u202e", lasting: 2, tests: [{ what: "tcp_down", lasting: 3 }, { what: 1 }] }, "nobody"],
    queue: { slots: 1, held: [], waiting: [{ peers: ["192.0.2.1:9"], expected: 4 }] },
    health: { cores: 2, cpu: "much", load: { one: 1 } },
    results: [{ command: "test", host: "a", started_at: 1 }],
  };
  const view = readView(told)!;
  expect(view.sessions).toHaveLength(1);
  expect(view.sessions[0]!.software).not.toContain("\u202e");
  expect(view.sessions[0]!.tests).toEqual([{ what: "tcp_down", lasting: 3 }]);
  expect([view.health.cpu, view.health.load]).toEqual([undefined, undefined]);
  expect(readView({ ...told, queue: undefined })).toBeUndefined();
});
