import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Session } from "../src/measure/session";
import { giveKey } from "../src/store/key";
import { keepOnServer, listOnServer, readFromServer, seriesOnServer } from "../src/store/serverResults";
import { record } from "./fixture";

const TOKEN = "ab".repeat(16);
const OWNER = "cd".repeat(32);
const SERIES = "01900000-0000-7000-8000-000000000000";
/** Path and Authorization of each request. */
let requests: [string, string | undefined][];
let answers: Record<string, unknown>;
let closed: number;

beforeEach(() => {
  [requests, answers, closed] = [[], {}, 0];
  vi.stubGlobal("location", { href: "https://192.0.2.1:14233/#results" });
  vi.stubGlobal("fetch", async (path: string, init: RequestInit = {}) => {
    requests.push([`${init.method ?? "GET"} ${path}`, (init.headers as Record<string, string>).authorization]);
    return path in answers ? Response.json(answers[path]) : new Response("no", { status: 403 });
  });
  const session = { token: TOKEN, owner: OWNER, close: () => (closed += 1) } as unknown as Session;
  vi.spyOn(Session, "open").mockImplementation(async (_origin, wish) => {
    if (wish?.key !== "sesame") throw new Error("the server does not know the key itself");
    return session;
  });
});

afterEach(() => {
  giveKey("");
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("without a key results are asked for without proof", async () => {
  answers["api/v1/results"] = [{ id: record().id, command: "test", started_at: 1, host: "a", extra: "<b>" }];
  expect(await listOnServer()).toEqual([{ id: record().id, command: "test", started_at: 1, host: "a" }]);
  expect(requests).toEqual([["GET api/v1/results", undefined]]);
  expect(Session.open).not.toHaveBeenCalled();
});

test("with a key listing, reading and keeping prove it, and the session of the proof is closed", async () => {
  giveKey("sesame\n");
  answers = { "api/v1/results": [], [`api/v1/results/${record().id}`]: record() };
  expect(await listOnServer()).toEqual([]);
  expect((await readFromServer(record().id))!.id).toBe(record().id);
  expect(await keepOnServer(record())).toBe("kept");
  expect(requests.map(([, proof]) => proof)).toEqual([`Bearer ${OWNER}`, `Bearer ${OWNER}`, `Bearer ${OWNER}`]);
  expect(requests[2]![0]).toBe("POST api/v1/results");
  expect(closed).toBe(3);
});

test("a wrong key is answered by the server's own refusal", async () => {
  giveKey("simsim");
  expect(await listOnServer()).toBeUndefined();
  expect(await keepOnServer(record())).toEqual({ refused: "403 no" });
});

test("a scan that was opened from the server has its other points from there", async () => {
  const point = (index: number) => ({ ...record(), id: `01900000-0000-7000-8000-00000000000${index}`, series: { id: SERIES, kind: "scan", index, planned: 2, point: { streams: `${index}` } } });
  const [first, second, foreign] = [point(1), point(2), { ...record(), id: "01900000-0000-7000-8000-000000000009" }];
  const list = [first, second, foreign].map(({ id }) => ({ id, command: "test", started_at: 1, host: "a" }));
  answers = { [`api/v1/results?series=${SERIES}`]: list, [`api/v1/results/${second.id}`]: second, [`api/v1/results/${foreign.id}`]: foreign };
  expect((await seriesOnServer(first)).map(({ id }) => id)).toEqual([first.id, second.id]);
  expect((await seriesOnServer(record())).map(({ id }) => id)).toEqual([record().id]);
});
