// A stand-in for `netaware serve`, for driving the page before and beside the real one: the same paths and messages, no cap on
// anything, and a rate that is set instead of measured. `node tests/mock.mjs [port] [Mbit/s]`; stops with its parent's pipe.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

const port = Number(process.argv[2] ?? 14333);
const mbits = Number(process.argv[3] ?? 200);
const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const types = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml", png: "image/png", webmanifest: "application/manifest+json" };
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src *; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const sessions = new Map();
const kept = [];

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://x");
  response.setHeader("access-control-allow-origin", request.headers.origin ?? "*");
  response.setHeader("access-control-allow-headers", "content-type");
  if (request.method === "OPTIONS") return response.end();
  if (url.pathname === "/api/v1/about") return json(response, about());
  if (url.pathname === "/api/v1/results" && request.method === "POST") {
    let body = "";
    for await (const chunk of request) body += chunk;
    kept.push(JSON.parse(body));
    return json(response, {});
  }
  if (url.pathname === "/api/v1/server") return json(response, ownerView());
  if (url.pathname === "/api/v1/results") return json(response, kept);
  if (url.pathname === "/data/down") return down(url, response);
  try {
    const name = url.pathname === "/" ? "index.html" : url.pathname.slice(1);
    const body = await readFile(dist + name.replaceAll("..", ""));
    response.setHeader("content-type", types[name.split(".").pop()] ?? "application/octet-stream");
    response.setHeader("content-security-policy", policy);
    response.setHeader("x-content-type-options", "nosniff");
    response.end(body);
  } catch {
    response.statusCode = 404;
    response.end();
  }
});

function ownerView() {
  return {
    uptime: 60e9,
    sessions: [{ peer: "127.0.0.1:50000", software: "netaware-web 0.1.0", lasting: 3e9, tests: [{ what: "tcp_down", lasting: 1e9 }] }],
    queue: { slots: 1, held: [{ peers: ["127.0.0.1:50000"], expected: 9e9 }], waiting: [] },
    health: { cores: 2, cpu: 0.4, process: 0.1, load: { one: 1, five: 1, fifteen: 1 }, memory: { total: 8e9, available: 6e9 } },
    results: [],
  };
}

function about() {
  return {
    software: "netaware 0.1.0",
    host: "mock",
    port,
    addresses: ["127.0.0.1", "::1"],
    key: false,
    limits: { duration: null, rate: null, bytes: null, streams: null },
    results: "write",
    secure: false,
    datagrams: [],
  };
}

function json(response, value) {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(value));
}

function testOf(url) {
  return sessions.get(url.searchParams.get("token"))?.tests.get(Number(url.searchParams.get("test")));
}

function attached(test, stream) {
  test.attached.push(stream);
  if (test.attached.length === (test.plan.streams ?? 1)) test.say({ type: "ready", test: test.number });
}

function down(url, response) {
  const test = testOf(url);
  if (!test) return response.writeHead(404).end();
  response.setHeader("content-type", "application/octet-stream");
  response.flushHeaders();
  attached(test, response);
}

/** Sends at the set rate in steps of 5 ms, never more than the socket takes. */
function pour(test) {
  const { plan } = test;
  const block = randomBytes(Math.min(plan.length, 65536));
  const begun = performance.now();
  let sent = 0;
  let calls = 0;
  const timer = setInterval(() => {
    const elapsed = performance.now() - begun;
    const over = elapsed >= plan.duration / 1e6 || (plan.bytes && sent >= plan.bytes);
    if (over) {
      clearInterval(timer);
      for (const response of test.attached) response.end();
      const report = { as: "tcp_sender", outcome: "complete", bytes: sent, elapsed: Math.round(elapsed * 1e6), streams: [] };
      test.say({ type: "stream_ends", test: test.number, streams: [{ index: 0, bytes: sent, calls, retransmits: 2, rtt: 900000, min_rtt: 300000, cwnd: 90000, congestion: "cubic" }] });
      setTimeout(() => test.say({ type: "finished", test: test.number, outcome: "complete", report }), 20);
      return;
    }
    const due = Math.min((mbits * 1e3 * elapsed) / 8, plan.bytes ?? Infinity);
    for (let n = 0; sent < due; n += 1) {
      const response = test.attached[n % test.attached.length];
      if (response.writableLength > 1e6) break;
      const part = plan.bytes ? block.subarray(0, Math.min(block.length, plan.bytes - sent)) : block;
      response.write(part);
      sent += part.length;
      calls += 1;
    }
  }, 5);
}

function sink(test) {
  const { plan } = test;
  const begun = performance.now();
  let [bytes, reads, first, sliceBytes, sliceAt, open] = [0, 0, 0, 0, begun, test.attached.length];
  const tick = () => {
    const now = performance.now();
    const slice = { end: Math.round((now - begun) * 1e6), length: Math.round((now - sliceAt) * 1e6), bytes: sliceBytes, streams: open };
    [sliceBytes, sliceAt] = [0, now];
    test.say({ type: "receiver_ticks", test: test.number, ticks: [slice] });
  };
  const timer = setInterval(tick, plan.tick / 1e6);
  const end = () => {
    if (test.over) return;
    test.over = true;
    clearInterval(timer);
    const elapsed = Math.round((performance.now() - begun) * 1e6);
    test.say({ type: "stream_ends", test: test.number, streams: [{ index: 0, bytes, calls: reads, first_read: first }] });
    test.say({ type: "finished", test: test.number, outcome: "complete", report: { as: "tcp_receiver", bytes, elapsed, streams: [] } });
  };
  for (const socket of test.attached) {
    socket.on("message", (data) => {
      first ||= data.length;
      bytes += data.length;
      sliceBytes += data.length;
      reads += 1;
    });
    socket.on("close", () => (open -= 1) === 0 && end());
  }
  setTimeout(() => test.attached.forEach((socket) => socket.close()), plan.duration / 1e6 + 1500);
}

const sockets = new WebSocketServer({ noServer: true, maxPayload: 2 ** 21 });
server.on("upgrade", (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (ws) => {
    const url = new URL(request.url, "http://x");
    if (url.pathname === "/control") control(ws);
    else if (url.pathname === "/echo") echo(ws, url);
    else attached(testOf(url), ws);
  });
});

function echo(ws, url) {
  const test = testOf(url);
  ws.on("message", (data) => {
    const received = process.hrtime.bigint();
    const answer = Buffer.alloc(16 + data.length);
    answer.writeBigUInt64BE(received, 0);
    data.copy(answer, 16);
    answer.writeBigUInt64BE(process.hrtime.bigint(), 8);
    ws.send(answer);
  });
  attached(test, ws);
}

function control(ws) {
  const session = { token: randomBytes(16).toString("hex"), tests: new Map() };
  sessions.set(session.token, session);
  const say = (message) => ws.readyState === 1 && ws.send(JSON.stringify(message));
  ws.on("close", () => sessions.delete(session.token));
  ws.on("message", (data) => {
    const message = JSON.parse(data.toString());
    const test = session.tests.get(message.test);
    if (message.type === "hello") {
      const host = { name: "mock", kernel: "Linux 6.18", cpu: "none", cores: 2, virtualisation: "", software: "0.1.0" };
      say({ type: "welcome", version: 1, software: "netaware 0.1.0", token: session.token, host, limits: {} });
    } else if (message.type === "ping") say({ type: "pong", seq: message.seq });
    else if (message.type === "reserve") {
      say({ type: "queued", place: 1, expected_wait: 600000000 });
      setTimeout(() => say({ type: "admitted", reservation: randomBytes(16).toString("hex"), lease: message.expected }), 600);
    } else if (message.type === "open") {
      session.tests.set(message.test, { number: message.test, plan: message.plan, attached: [], say });
      say({ type: "opened", test: message.test });
    } else if (message.type === "start") {
      say({ type: "started", test: message.test });
      if (test.plan.kind === "tcp" && test.plan.direction === "reverse") pour(test);
      else if (test.plan.kind === "tcp") sink(test);
    }
  });
}

server.listen(port, "::", () => console.log(`mock on ${port}`));
