// What the page's figures are worth: measured by the page in Chromium and by `netaware` on the same path in the same run, in turns,
// beside what the path is known to carry. Prints tables of Markdown for docs/benchmarks.md, and fails where a figure is missed.
//
//   NETAWARE=target/release/netaware node tests/figures.mjs [rate|loopback|paint|crowd] [rounds]
//
//   namespace npage-a: Chromium, netaware          namespace npage-b: netaware serve
//   veth 10.78.0.1, fd00:78::1  ── tbf each way ──  veth 10.78.0.2, fd00:78::2
//
// Beside the page on loopback, M-Lab's own page in the same browser, where both its halves are given: NDT_SERVER=path/to/ndt-server
// and NDT7=folder with the files of the package @m-lab/ndt7 (`npm pack @m-lab/ndt7`, its `src`).
//
// Needs root, ip and tc. `paint` runs in a lab of netaware's own (delay needs an emulator), `crowd` and `loopback` on loopback. Run it
// on a quiet machine and alone: two cores carry the server, the browser and what is between.

import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { ANY_CERTIFICATE, keptEntries, startChromium } from "./chromium.mjs";

const SELF = fileURLToPath(import.meta.url);
const PROGRAM = process.env.NETAWARE ?? "netaware";
const PORT = 14399;

const [what = "all", rounds = "5"] = process.argv.slice(2);

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const home = mkdtempSync(`${tmpdir()}/netaware-figures-`);
const env = { ...process.env, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home };

function run(command, ...args) {
  const ended = spawnSync(command, args, { encoding: "utf8", env, maxBuffer: 1 << 26 });
  if (ended.status !== 0) throw new Error(`${command} ${args.join(" ")}: ${ended.stderr || ended.error}`);
  return ended.stdout;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** "94.1 (93.8 to 94.2)". */
function spread(values, digits = 1) {
  const shown = (value) => value.toFixed(digits);
  return `${shown(median(values))} (${shown(Math.min(...values))} to ${shown(Math.max(...values))})`;
}

/** A server that answers, in front of which `before` words stand (a namespace). */
async function serve(before, address, more = []) {
  const [command, ...args] = [...before, PROGRAM, "serve", "--port", String(PORT), "-q", ...more];
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"], env });
  for (let tries = 0; tries < 100; tries += 1) {
    const asked = spawnSync(before[0] ?? "true", [...before.slice(1), ...(before.length ? ["ss", "-Hltn"] : [])], { encoding: "utf8" });
    if (before.length ? asked.stdout?.includes(`:${PORT}`) : await fetch(`http://${address}:${PORT}/api/v1/about`).then(() => true, () => false)) return child;
    await rest(100);
  }
  throw new Error("the server did not come up");
}

const ended = (child, signal = "SIGTERM") => new Promise((resolve) => (child.once("exit", resolve), child.kill(signal)));

const missed = [];

/** A median that has to be within bounds; what is not makes the whole fail, after all tables have been printed. */
function claim(name, values, least, most) {
  const found = median(values);
  if (!(found >= least && found <= most)) missed.push(`${name}: ${found.toFixed(3)}, wanted ${least} to ${most}`);
}

/** One figure of a record, by IP version. */
function figuresOf(record) {
  return record.versions.map((version) => ({
    version: version.version,
    p50: version.latency?.rtt?.p50,
    down: version.tcp?.find((each) => each.pedigree.direction === "reverse")?.goodput,
    up: version.tcp?.find((each) => each.pedigree.direction === "forward")?.goodput,
  }));
}

/** Played inside a namespace: one quick test of the page, its record on stdout. */
async function inside(url) {
  const browser = await startChromium([ANY_CERTIFICATE]);
  const page = await browser.newPage();
  await page.goto(url);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("button", { name: "Again" }).waitFor({ timeout: 120_000 });
  const [entry] = await keptEntries(page);
  await browser.close();
  process.stdout.write(JSON.stringify(entry.record));
}

/** First paint of a browser that has never been here. */
async function paintInside(url, count) {
  const browser = await startChromium();
  const times = [];
  for (let round = 0; round < count; round += 1) {
    const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
    const page = await context.newPage();
    await page.goto(url);
    await page.getByRole("button", { name: "Start", exact: true }).waitFor();
    times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN));
    await context.close();
  }
  await browser.close();
  process.stdout.write(JSON.stringify(times));
}

function commandLine(before, address, version, way, seconds = 4) {
  const [command, ...args] = [...before, PROGRAM, "tcp", `${address}`, "-p", String(PORT), version, "-P", "3", "-t", String(seconds), "-i", "0", "--format", "json", "--no-save", ...(way === "down" ? ["-R"] : [])];
  const record = JSON.parse(run(command, ...args));
  return record.versions[0].tcp[0].goodput;
}

function commandLatency(before, address, version) {
  const [command, ...args] = [...before, PROGRAM, "latency", `${address}`, "-p", String(PORT), version, "--tcp", "--spacing", "10ms", "-c", "200", "--format", "json", "--no-save"];
  const record = JSON.parse(run(command, ...args));
  const [found] = record.versions;
  return (found.latency ?? found.tcp_latency).rtt.p50;
}

const IN_A = ["ip", "netns", "exec", "npage-a"];
const IN_B = ["ip", "netns", "exec", "npage-b"];

function namespaces() {
  remove();
  for (const name of ["npage-a", "npage-b"]) run("ip", "netns", "add", name);
  run("ip", "-n", "npage-a", "link", "add", "lan", "type", "veth", "peer", "name", "lan", "netns", "npage-b");
  for (const [n, name] of [[1, "npage-a"], [2, "npage-b"]]) {
    run("ip", "-n", name, "addr", "add", `10.78.0.${n}/24`, "dev", "lan");
    run("ip", "-n", name, "addr", "add", `fd00:78::${n}/64`, "dev", "lan", "nodad");
    for (const device of ["lo", "lan"]) run("ip", "-n", name, "link", "set", device, "up");
  }
}

function shape(mbits) {
  for (const name of ["npage-a", "npage-b"]) {
    spawnSync("tc", ["-n", name, "qdisc", "del", "dev", "lan", "root"]);
    // What the rate moves in 10 ms may pass at once: a smaller bucket is full before a busy host's timer fires.
    run("tc", "-n", name, "qdisc", "add", "dev", "lan", "root", "tbf", "rate", `${mbits}mbit`, "burst", String(Math.max(16_000, mbits * 1250)), "latency", "50ms");
  }
}

function remove() {
  for (const name of ["npage-a", "npage-b"]) spawnSync("ip", ["netns", "delete", name]);
}

/** Payload of a frame of 1514 bytes, timestamps of TCP taken off. */
const SHARE = { IPv4: 1448 / 1514, IPv6: 1428 / 1514 };
const ADDRESS = { IPv4: "10.78.0.2", IPv6: "fd00:78::2" };

async function rates() {
  namespaces();
  const server = await serve(IN_B, "");
  console.log("| shaped to | | truth | page | `netaware tcp` | page / truth | page / tcp |\n|---|---|---|---|---|---|---|");
  const delays = { IPv4: { page: [], tcp: [] }, IPv6: { page: [], tcp: [] } };
  try {
    for (const mbits of [10, 100, 500]) {
      shape(mbits);
      const seen = {};
      for (let round = 0; round < Number(rounds); round += 1) {
        const record = JSON.parse(run(...IN_A, process.execPath, SELF, "--inside", `http://10.78.0.2:${PORT}/`));
        for (const figures of figuresOf(record)) {
          const { version } = figures;
          const flag = version === "IPv4" ? "-4" : "-6";
          for (const way of ["down", "up"]) {
            const key = `${version} ${way}`;
            const tcp = commandLine(IN_A, ADDRESS[version], flag, way);
            (seen[key] ??= []).push({ page: figures[way] / 1e6, tcp: tcp / 1e6 });
          }
          if (mbits === 500) {
            delays[version].page.push(figures.p50 / 1e6);
            delays[version].tcp.push(commandLatency(IN_A, ADDRESS[version], flag) / 1e6);
          }
        }
      }
      for (const [key, pairs] of Object.entries(seen)) {
        const truth = mbits * SHARE[key.split(" ")[0]];
        const [pages, tcps] = [pairs.map((pair) => pair.page), pairs.map((pair) => pair.tcp)];
        const [ofTruth, ofTcp] = [pairs.map((pair) => pair.page / truth), pairs.map((pair) => pair.page / pair.tcp)];
        console.log(`| ${mbits} Mbit/s | ${key} | ${truth.toFixed(1)} | ${spread(pages)} | ${spread(tcps)} | ${spread(ofTruth, 3)} | ${spread(ofTcp, 3)} |`);
        claim(`${mbits} Mbit/s, ${key}, page / truth`, ofTruth, 0.97, 1.03);
        claim(`${mbits} Mbit/s, ${key}, page / netaware tcp`, ofTcp, 0.95, 1.05);
      }
    }
  } finally {
    await ended(server);
    remove();
  }
  console.log("\n| idle round trip, p50, ms | page | `netaware latency --tcp` |\n|---|---|---|");
  for (const [version, { page, tcp }] of Object.entries(delays)) {
    console.log(`| ${version} | ${spread(page, 3)} | ${spread(tcp, 3)} |`);
    claim(`${version}, idle p50 of the page less that of netaware latency, ms`, page.map((ms, n) => ms - tcp[n]), -0.5, 0.5);
  }
}

/** Everybody in turns, so that what else the host does meets all alike. */
async function loopback() {
  const everybody = { "page, http": () => pageOnce("http"), "page, https": () => pageOnce("https", ["--tls"]) };
  if (process.env.NDT_SERVER && process.env.NDT7) everybody["ndt7, http"] = ndt7Once;
  const seen = {};
  for (let round = 0; round < Number(rounds); round += 1)
    for (const [name, once] of Object.entries(everybody)) (seen[name] ??= []).push(await once());
  console.log("| loopback, Gbit/s | down | up | server's CPU s per GB, both ways |\n|---|---|---|---|");
  for (const [name, runs] of Object.entries(seen)) {
    const [down, up, cpu] = ["down", "up", "cpu"].map((key) => spread(runs.map((run) => run[key]), 2));
    console.log(`| ${name} | ${down} | ${up} | ${cpu} |`);
  }
  if (!seen["ndt7, http"]) return;
  const ratios = (key) => seen["page, http"].map((run, n) => run[key] / seen["ndt7, http"][n][key]);
  console.log(`\npage / ndt7, round by round: down ${spread(ratios("down"), 2)}, up ${spread(ratios("up"), 2)}`);
  for (const key of ["down", "up"]) claim(`loopback, ${key}, page / ndt7`, ratios(key), 1, Infinity);
}

async function pageOnce(scheme, more = []) {
  const server = spawn(PROGRAM, ["serve", "--port", String(PORT), "-q", ...more], { stdio: "ignore", env });
  await rest(700);
  const before = ticks(server.pid);
  const record = JSON.parse(run(process.execPath, SELF, "--inside", `${scheme}://127.0.0.1:${PORT}/`));
  const spent = ticks(server.pid) - before;
  const moved = record.versions.flatMap((version) => version.tcp).reduce((sum, tcp) => sum + tcp.bytes, 0);
  const [v4] = figuresOf(record);
  await ended(server);
  return { down: v4.down / 1e9, up: v4.up / 1e9, cpu: spent / 100 / (moved / 1e9) };
}

/** The figures that its own page shows: down what the client counted, up what the server did. */
async function ndt7Once() {
  const html = `${home}/ndt7`;
  cpSync(process.env.NDT7, html, { recursive: true });
  writeFileSync(`${html}/index.html`, '<!doctype html><title>ndt7</title><script src="ndt7.js"></script>');
  mkdirSync(`${home}/ndt7-data`, { recursive: true });
  const off = "127.0.0.1:0";
  const server = spawn(
    process.env.NDT_SERVER,
    ["-ndt7_addr_cleartext", `127.0.0.1:${PORT}`, "-ndt7_addr", off, "-ndt5_addr", off, "-ndt5_ws_addr", off, "-ndt5_wss_addr", off, "-health_addr", off, "-prometheusx.listen-address", off, "-htmldir", html, "-datadir", `${home}/ndt7-data`],
    { stdio: "ignore", cwd: home },
  );
  await rest(700);
  const before = ticks(server.pid);
  const { down, up, moved } = JSON.parse(run(process.execPath, SELF, "--ndt7", `http://127.0.0.1:${PORT}/`));
  const cpu = (ticks(server.pid) - before) / 100 / (moved / 1e9);
  await ended(server, "SIGKILL");
  return { down: down / 1e9, up: up / 1e9, cpu };
}

async function ndt7Inside(url) {
  const browser = await startChromium();
  const page = await browser.newPage();
  await page.goto(url);
  const found = await page.evaluate(
    (server) =>
      new Promise((resolve, reject) => {
        const seen = {};
        const config = { server, protocol: "ws", mlabDataPolicyInapplicable: true };
        const told = {
          error: reject,
          downloadComplete: ({ LastClientMeasurement: last }) => (seen.down = last),
          uploadComplete: ({ LastServerMeasurement: last }) => (seen.up = last.TCPInfo),
        };
        ndt7.test(config, told).then(() => resolve(seen));
      }),
    new URL(url).host,
  );
  await browser.close();
  const { down, up } = found;
  const moved = down.NumBytes + up.BytesReceived;
  process.stdout.write(JSON.stringify({ down: down.MeanClientMbps * 1e6, up: (up.BytesReceived * 8e6) / up.ElapsedTime, moved }));
}

async function paint() {
  const scenario = `${home}/paint.toml`;
  writeFileSync(scenario, PAINT);
  spawnSync(PROGRAM, ["lab", "down", "--prefix", "npaint"], { env });
  run(PROGRAM, "lab", "up", scenario, "--prefix", "npaint");
  const at = (side) => ["ip", "netns", "exec", `npaint-${side}`];
  const server = await serve(at("b"), "");
  try {
    const times = JSON.parse(run(...at("a"), process.execPath, SELF, "--paint", `http://10.77.0.2:${PORT}/`, rounds));
    console.log(`first contentful paint over 1 Mbit/s and a round trip of 100 ms, s: ${spread(times.map((ms) => ms / 1000), 2)}, ${times.length} fresh browsers`);
    claim("first paint, ms", times, 0, 3000);
  } finally {
    await ended(server);
    run(PROGRAM, "lab", "down", "--prefix", "npaint");
  }
}

/** Fifty control sessions that wait as pages do, with a ping a second each. */
async function crowd() {
  const server = await serve([], "127.0.0.1");
  const pages = [];
  let queued = 0;
  for (let n = 0; n < 51; n += 1) {
    const socket = new WebSocket(`ws://127.0.0.1:${PORT}/control`);
    pages.push(socket);
    await new Promise((resolve, reject) => (socket.once("open", resolve), socket.once("error", reject)));
    socket.send(JSON.stringify({ type: "hello", version: 1, software: "crowd", nonce: "0".repeat(32) }));
    await new Promise((resolve, reject) => {
      socket.on("message", (data) => {
        const message = JSON.parse(data);
        if (message.type === "welcome") socket.send(JSON.stringify({ type: "reserve", expected: 7200e9 }));
        if (message.type === "error") reject(new Error(JSON.stringify(message)));
        if (message.type === "queued" && !socket.counted) {
          socket.counted = true;
          queued += 1;
        }
        if (message.type === "queued" || message.type === "admitted") resolve();
      });
    });
    let seq = 0;
    socket.timer = setInterval(() => socket.send(JSON.stringify({ type: "ping", seq: (seq += 1) })), 1000);
  }
  const shares = [];
  for (let round = 0; round < Number(rounds); round += 1) {
    const [before, began] = [ticks(server.pid), performance.now()];
    await rest(20_000);
    shares.push((ticks(server.pid) - before) / ((performance.now() - began) / 1000));
  }
  const open = pages.filter((socket) => socket.readyState === WebSocket.OPEN).length;
  console.log(`${queued} browsers wait in the queue (${open} of 51 connections open at the end): ${spread(shares, 2)} % of a core, ${shares.length} times 20 s, in steps of 0.05 %`);
  claim("cost of a queue, % of a core", shares, 0, 1);
  for (const socket of pages) {
    clearInterval(socket.timer);
    socket.close();
  }
  await ended(server);
}

/** CPU time of a process, user and system, in hundredths of a second. */
function ticks(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

const PAINT = `about = "1 Mbit/s, 50 ms each way"

[[hop]]
rate = "1Mbit/s"
delay = "50ms"
overhead = 14
queue = { bytes = "64kB" }
`;

if (what === "--inside") await inside(process.argv[3]);
else if (what === "--ndt7") await ndt7Inside(process.argv[3]);
else if (what === "--paint") await paintInside(process.argv[3], Number(process.argv[4]));
else {
  const parts = { crowd, paint, loopback, rate: rates };
  for (const [name, part] of Object.entries(parts)) if (what === "all" || what === name) await part();
  if (missed.length > 0) {
    console.error(`not reached:\n  ${missed.join("\n  ")}`);
    process.exitCode = 1;
  }
}
