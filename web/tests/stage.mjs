// What scenes stand on: the server, pages that are watched, and what many of them look at.
//
// With NETAWARE=path/to/netaware the program itself serves; without it the stand-in mock.mjs does. SHOTS=folder keeps pictures.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { keptEntries } from "./chromium.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

/** The program, where scenes have it. */
export const NETAWARE = process.env.NETAWARE;
/** What a scene returns that needs it where it is not. */
export const LEFT_OUT = "left out: needs the program";
/** Of this lane. */
export const PORT = 14377 + Number(process.env.LANE ?? 0);
export const ORIGIN = `http://127.0.0.1:${PORT}`;
export const PHONE = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
export const DESKTOP = { viewport: { width: 1280, height: 860 } };
export const QUICK_MS = 60_000;
/** Of a picture: the rest of a long page shows nothing new. */
const TALLEST = 2000;

/** The link of the name, small as it is: "Test" in the bar leads to the same page, as WCAG 2.5.8 wants of small targets. */
const HOME = 'class="brand"';

/** A folder of this lane. */
export const home = mkdtempSync(`${tmpdir()}/netaware-web-`);
/** What the server keeps for pages. */
export const store = `${home}/results.db`;
export const KEY = "sesame and lilies";
writeFileSync(`${home}/key`, `${KEY}\n`);

/** Every server of this lane. */
const servers = [];

/** Fails if a thread of any server so far has panicked, whatever the page noticed of it. */
export function noServerPanicked() {
  for (const { complained } of servers) assert.ok(!complained.includes("panicked at"), `the server panicked: ${complained}`);
}

/** Without the settings of whoever runs this: no variable and no file of theirs reaches the program. */
function cleanEnvironment() {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("NETAWARE"));
  return { ...Object.fromEntries(others), HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home };
}

/** Comes back when it answers at `origin`, or where that is https has printed the fingerprint of its certificate. */
export async function serve(more = [], origin = ORIGIN) {
  const env = cleanEnvironment();
  const mock = fileURLToPath(new URL("mock.mjs", import.meta.url));
  const flags = ["--port", String(PORT), `--results=${store}`, ...(more.includes("--qr") ? [] : ["--qr", "never"]), ...more];
  const child = NETAWARE
    ? spawn(NETAWARE, ["serve", ...flags], { stdio: ["ignore", "pipe", "pipe"], env })
    : spawn(process.execPath, [mock, String(PORT), "80"], { stdio: "ignore" });
  child.printed = "";
  child.complained = "";
  child.stdout?.on("data", (text) => (child.printed += text));
  child.stderr?.on("data", (text) => (child.complained += text));
  servers.push(child);
  for (let tries = 0; tries < 100; tries += 1) {
    // Whoever answers then is another server, left there by another run.
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    if (origin.startsWith("https") && child.printed.includes("SHA-256")) return child;
    if (await fetch(`${origin}/api/v1/about`).then((response) => response.ok, () => false)) return child;
    await rest(100);
  }
  throw new Error("the server did not come up");
}

/** What the program prints, with those words behind its name. */
export async function netaware(...words) {
  const { stdout, stderr } = await promisify(execFile)(NETAWARE, words, { env: cleanEnvironment(), maxBuffer: 64e6 });
  assert.ok(!stderr.includes("panicked at"), `${words.join(" ")} panicked: ${stderr}`);
  return stdout;
}

export function rest(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Fails a scene by whatever any page of the context or its service worker prints. `expected` are texts that belong to the scene. */
export function watched(context, expected = []) {
  const printed = [];
  const heard = (text) => {
    if (!expected.some((part) => text.includes(part))) printed.push(text);
  };
  context.on("console", (message) => heard(message.text()));
  context.on("weberror", (error) => heard(String(error.error())));
  context.on("serviceworker", (worker) => worker.on("console", (message) => heard(`service worker: ${message.text()}`)));
  return () => assert.deepEqual(printed, [], "the console stays empty");
}

/** A page in a context of its own that is watched. */
export async function open(browser, options, path = "", expected = [], origin = ORIGIN) {
  const context = await browser.newContext({ ...options, serviceWorkers: "allow" });
  const quiet = watched(context, expected);
  const page = await context.newPage();
  await page.goto(`${origin}/${path}`);
  await page.waitForSelector("main h1, main [role=alert]");
  return { page, context, quiet };
}

/** As tall as the page is, so that the bar at the bottom covers nothing; where that is too tall, down to `end`. */
export async function picture(page, name, end) {
  if (!shots) return;
  const size = page.viewportSize();
  const height = await page.evaluate(() => document.querySelector("main").scrollHeight + 70);
  await page.setViewportSize({ width: size.width, height: Math.min(Math.max(size.height, height), TALLEST) });
  await end?.evaluate((element, bar) => scrollTo(0, element.getBoundingClientRect().bottom + scrollY - innerHeight + bar), 80);
  // As many dots as the page has: small enough for a guide.
  await page.screenshot({ path: `${shots}/${name}.png`, scale: "css" });
  await page.setViewportSize(size);
}

/** Rules of axe on the page as it stands, targets large enough for a thumb among them, and nothing wider than the screen. */
export async function accessible(page, where) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } }));
  const told = violations.flatMap(({ id, nodes }) => nodes.filter(({ html }) => !(id === "target-size" && html.includes(HOME))).map(({ html }) => `${id}: ${html.slice(0, 120)}`));
  assert.deepEqual(told, [], `axe: ${where}`);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${where} is ${wider} px wider than the screen`);
}

/** The same, light and dark. */
export async function accessibleInBoth(page, where) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await accessible(page, `${where}, ${colorScheme}`);
  }
}

/** The same, on a phone and on a desktop: for what is hard to come by. */
export async function accessibleAnywhere(page, where) {
  const size = page.viewportSize();
  for (const { viewport } of [PHONE, DESKTOP]) {
    await page.setViewportSize(viewport);
    await accessibleInBoth(page, `${where}, ${viewport.width} px`);
  }
  await page.setViewportSize(size);
}

/** Waits until a tile of the quick test shows a figure. */
export async function measures(page, tile) {
  await page.locator(`.tile.${tile}.active b`, { hasText: /\d/ }).first().waitFor({ timeout: QUICK_MS });
}

/** Both IP versions are in a record, and this holds of each. */
export function ofBothVersions(record, holds, what) {
  assert.deepEqual(record.versions.map(({ version }) => version), ["IPv4", "IPv6"]);
  assert.ok(record.versions.every(holds), what);
}

/** What the device has kept, newest first. */
export async function kept(page) {
  const all = (await keptEntries(page)).map((entry) => entry.record);
  return all.sort((a, b) => b.started_at - a.started_at);
}

/** A matrix of one pair, on the page of matrices: a second of measuring. */
export async function smallMatrix(page) {
  await page.getByRole("link", { name: "Blocks", exact: true }).first().click();
  await page.getByLabel("One pair").check();
  await page.getByRole("textbox", { name: "Total bytes" }).fill("20kB");
  await page.getByRole("textbox", { name: "Block size" }).fill("1kB");
  await page.getByRole("textbox", { name: "Runs" }).fill("1");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("table", { name: /TCP_NODELAY, IPv6/ }).waitFor({ timeout: QUICK_MS });
}

export async function quickTest(page) {
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
}

/** The results of this device alone: those that an earlier scene left on the server are listed on the same page. */
export function here(page) {
  return page.getByRole("region", { name: "On this device" });
}

/** On loopback nothing is lost, and both ends agree. */
export function datagramsAreCounted({ latency, latency_tcp, udp }) {
  assert.equal(latency.pedigree.method, "web-datagrams-latency");
  assert.equal(latency_tcp.pedigree.method, "web-latency");
  assert.deepEqual([latency.received, latency.lost], [latency.sent, 0], "echoes");
  assert.deepEqual(udp.map((stream) => stream.pedigree.direction), ["reverse", "forward"]);
  for (const { sent, not_sent, received, loss, receiver } of udp) {
    // On a busy machine the browser's congestion control holds some back, and says so.
    assert.ok(sent > 100 && sent + not_sent <= 200, `${sent} sent, ${not_sent} not`);
    assert.deepEqual([received, loss.lost, receiver.reordered], [sent, 0, 0], "a stream");
    assert.ok(receiver.jitter > 0 && receiver.delay_variation.count === received, "delays");
  }
}

/** The program must understand what the page calls a record. */
export async function keepOnServer(page, record) {
  const button = page.getByRole("button", { name: "Keep on the server" });
  if (NETAWARE) assert.equal(await button.count(), 1, "the program keeps results");
  if ((await button.count()) === 0) return;
  await button.click();
  await page.getByText("Kept on the server.").waitFor();
  if (!NETAWARE) return;
  const back = await fetch(`${ORIGIN}/api/v1/results/${record.id}`).then((response) => response.json());
  assert.equal(back.id, record.id);
}
