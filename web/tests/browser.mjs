// A real browser uses the page against a real server, as a person would: phone and desktop, light and dark, both IP versions.
//
// With NETAWARE=path/to/netaware the program itself serves; without it the stand-in mock.mjs does, and scenes that need the program say
// so. SHOTS=folder keeps pictures.
// Whatever appears in the console is a failure, and so is every violation that axe finds.
//
//   node tests/browser.mjs                all scenes, in two lanes at a time: most of a scene is waiting
//   node tests/browser.mjs "walk|TLS"     those whose claim has one of these words

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { ANY_CERTIFICATE, keptEntries, startChromium } from "./chromium.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const only = process.argv[2];
/** As many processes as cores of the machine that CI has. */
const LANES = 2;
/** "0/2": the first of two processes that share the scenes. */
const [lane, lanes] = (process.env.LANE ?? "0/1").split("/").map(Number);
const PORT = 14377 + lane;
const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

const PHONE = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const DESKTOP = { viewport: { width: 1280, height: 860 } };
const QUICK_MS = 60_000;
/** Of a picture: the rest of a long page shows nothing new. */
const TALLEST = 1600;

const home = mkdtempSync(`${tmpdir()}/netaware-web-`);
const store = `${home}/results.db`;
const KEY = "sesame and lilies";
writeFileSync(`${home}/key`, `${KEY}\n`);

async function serve(more = [], scheme = "http") {
  const program = process.env.NETAWARE;
  const env = { ...process.env, XDG_DATA_HOME: home };
  const mock = fileURLToPath(new URL("mock.mjs", import.meta.url));
  const child = program
    ? spawn(program, ["serve", "--port", String(PORT), `--results=${store}`, "--qr", "never", ...more], { stdio: ["ignore", "pipe", "ignore"], env })
    : spawn(process.execPath, [mock, String(PORT), "80"], { stdio: "ignore" });
  child.printed = "";
  child.stdout?.on("data", (text) => (child.printed += text));
  for (let tries = 0; tries < 100; tries += 1) {
    if (scheme === "https" && child.printed.includes("SHA-256")) return child;
    if (await fetch(`http://127.0.0.1:${PORT}/api/v1/about`).then((response) => response.ok, () => false)) return child;
    await rest(100);
  }
  throw new Error("the server did not come up");
}

function rest(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A page that fails the test by whatever it prints. `expected` are texts that belong to the scene. */
async function open(browser, options, path = "", expected = [], origin = `http://127.0.0.1:${PORT}`) {
  const context = await browser.newContext({ ...options, serviceWorkers: "allow" });
  const page = await context.newPage();
  const printed = [];
  page.on("console", (message) => {
    if (!expected.some((text) => message.text().includes(text))) printed.push(message.text());
  });
  page.on("pageerror", (error) => printed.push(String(error)));
  await page.goto(`${origin}/${path}`);
  await page.waitForSelector("main h1, main [role=alert]");
  return { page, context, quiet: () => assert.deepEqual(printed, [], "the console stays empty") };
}

/** As tall as the page is, so that the bar at the bottom covers nothing. */
async function picture(page, name) {
  if (!shots) return;
  const size = page.viewportSize();
  const height = await page.evaluate(() => document.querySelector("main").scrollHeight + 70);
  await page.setViewportSize({ width: size.width, height: Math.min(Math.max(size.height, height), TALLEST) });
  // As many dots as the page has: small enough for a guide.
  await page.screenshot({ path: `${shots}/${name}.png`, scale: "css" });
  await page.setViewportSize(size);
}

/** Rules of axe on the page as it stands, and nothing wider than the screen. */
async function accessible(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
  assert.deepEqual(told, [], `axe: ${where}`);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wider <= 0, `${where} is ${wider} px wider than the screen`);
}

/** What the device has kept, newest first. */
async function kept(page) {
  const all = (await keptEntries(page)).map((entry) => entry.record);
  return all.sort((a, b) => b.started_at - a.started_at);
}

async function quickTest(page) {
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
}

const scenes = {
  async "one tap measures both IP versions and tells what they are good for"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" });
    await accessible(page, "quick test, ready");
    await picture(page, "quick-ready-phone-light");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await rest(2500);
    await picture(page, "quick-running-phone-light");
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
    await accessible(page, "quick test, done");
    await picture(page, "quick-done-phone-light");
    await page.getByText("How these figures came about").click();
    await accessible(page, "quick test, pedigree");
    const [record] = await kept(page);
    console.log(JSON.stringify(record.versions.map((each) => [each.version, each.latency?.rtt?.p50, ...(each.tcp ?? []).map((tcp) => [tcp.pedigree.direction, tcp.goodput, tcp.latency_under_load?.latency.rtt?.p50])])), record.warnings);
    assert.equal(record.outcome, "complete");
    assert.deepEqual(record.versions.map((each) => each.version), ["IPv4", "IPv6"]);
    for (const version of record.versions) {
      assert.ok(version.latency.rtt.count > 100, "round trips");
      assert.deepEqual(version.tcp.map((tcp) => tcp.pedigree.direction), ["reverse", "forward"]);
      for (const tcp of version.tcp) {
        assert.ok(tcp.goodput > 1e6, "a rate");
        assert.ok(tcp.latency_under_load.latency.received > 20, "round trips under load");
        const ticks = tcp.receiver_ticks.reduce((total, tick) => total + tick.bytes, 0);
        assert.ok(ticks <= tcp.bytes && ticks >= tcp.bytes * 0.8, `slices hold ${ticks} of ${tcp.bytes}`);
      }
      if (process.env.NETAWARE) datagramsAreCounted(version);
    }
    await keepOnServer(page, record);
    quiet();
    await context.close();
  },

  async "results are listed, compared, shared, and a label with script in it stays text"(browser) {
    const options = { ...PHONE, colorScheme: "dark" };
    const { page, context, quiet } = await open(browser, options);
    await quickTest(page);
    await picture(page, "quick-done-phone-dark");
    await page.getByLabel("Label").fill("<img src=x onerror=alert(1)>");
    await page.getByRole("button", { name: "Keep label" }).click();
    await page.getByRole("button", { name: "Again" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
    await page.getByRole("link", { name: "Results" }).click();
    await page.waitForSelector(".item");
    await accessible(page, "results");
    await picture(page, "results-phone-dark");
    assert.equal(await page.locator("main img").count(), 0, "a label is text");
    for (const box of await page.locator(".item input[type=checkbox]").all()) await box.check();
    await page.getByRole("button", { name: "Compare" }).click();
    await accessible(page, "compared");
    await picture(page, "compare-phone-dark");
    await page.getByRole("button", { name: "All results" }).click();
    await page.locator(".item button.plain").last().click();
    await accessible(page, "one result");
    await page.getByRole("button", { name: "Share link" }).click();
    const link = await page.locator("input.link").inputValue();
    const second = await context.newPage();
    await second.goto(link);
    await second.getByRole("heading", { name: "Shared with you" }).waitFor();
    assert.equal(await second.locator("main img").count(), 0, "a shared label is text");
    await accessible(second, "shared");
    await second.goto(`http://127.0.0.1:${PORT}/#r=zAAAA`);
    await second.getByText("The link holds no result").waitFor();
    quiet();
    await context.close();
  },

  async "a block matrix of the 17 pairs fills tables and graphs, and absurd wishes are explained"(browser) {
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" }, "#matrix");
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("1kB");
    await page.getByRole("textbox", { name: "Block size" }).fill("20kB");
    await page.getByText("does not fit a total of").waitFor();
    assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
    await accessible(page, "matrix, absurd");
    await picture(page, "matrix-absurd-desktop-light");
    await page.getByLabel("The 17 pairs").check();
    await page.getByLabel("Runs").fill("2");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator("table.wide").first().waitFor({ timeout: 180_000 });
    await accessible(page, "matrix, done");
    await picture(page, "matrix-done-desktop-light");
    await page.setViewportSize(PHONE.viewport);
    await picture(page, "matrix-done-phone-light");
    await page.setViewportSize(DESKTOP.viewport);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    for (const version of record.versions) {
      assert.deepEqual(version.matrix.map((each) => each.protocol), ["tcp", "tcp_nodelay"]);
      for (const matrix of version.matrix) {
        assert.equal(matrix.cells.length, 17);
        for (const cell of matrix.cells) {
          for (const run of cell.runs) {
            assert.deepEqual([run.outcome, run.client.bytes, run.server.bytes, run.lost], ["complete", cell.bytes, cell.bytes, 0]);
          }
        }
      }
    }
    await page.getByLabel("Up: this device sends").check();
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("100kB");
    await page.getByRole("textbox", { name: "Block size" }).fill("1kB");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Start" }).waitFor({ timeout: 60_000 });
    const [up] = await kept(page);
    for (const run of up.versions.flatMap((version) => version.matrix).flatMap((matrix) => matrix.cells[0].runs)) {
      assert.deepEqual([run.client.calls, run.client.bytes, run.server.bytes], [100, 100_000, 100_000]);
    }
    await keepOnServer(page, up);
    quiet();
    await context.close();
  },

  async "blocks travel as datagrams, which have a bound that is explained at the field"(browser) {
    if (!process.env.NETAWARE) return;
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" }, "#matrix");
    await page.getByLabel("UDP-like").check();
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("100kB");
    await page.getByRole("textbox", { name: "Block size" }).fill("2kB");
    await page.getByText("A datagram of a data channel carries at most").waitFor();
    await page.getByRole("textbox", { name: "Block size" }).fill("20");
    await page.getByText("needs 24 B for its number and time").waitFor();
    assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
    await accessible(page, "matrix, absurd datagrams");
    for (const way of ["Up: this device sends", "Down: the server sends"]) {
      await page.getByLabel(way).check();
      await page.getByRole("textbox", { name: "Block size" }).fill("1kB");
      await page.getByRole("button", { name: "Start" }).click();
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await page.getByRole("button", { name: "Start" }).waitFor({ timeout: 60_000 });
      const [record] = await kept(page);
      assert.equal(record.outcome, "complete");
      for (const version of record.versions) {
        assert.deepEqual(version.matrix.map((each) => each.protocol), ["tcp", "tcp_nodelay", "udp"]);
        for (const run of version.matrix[2].cells[0].runs) {
          const [sent, received] = way.startsWith("Up") ? [run.client, run.server] : [run.server, run.client];
          assert.deepEqual([run.outcome, sent.bytes, sent.bytes - received.bytes], ["complete", 100_000, run.lost], JSON.stringify(run));
        }
      }
      await page.getByText("UDP-like (WebRTC data channel), IPv4").waitFor();
      await accessible(page, "matrix of datagrams");
      await keepOnServer(page, record);
    }
    await page.getByLabel("The 17 pairs").check();
    await page.getByRole("textbox", { name: "Runs" }).fill("1");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Start" }).waitFor({ timeout: 120_000 });
    const [sweep] = await kept(page);
    for (const version of sweep.versions) assert.deepEqual(version.matrix.map((each) => each.cells.length), [17, 17, 12]);
    quiet();
    await context.close();
  },

  async "without WebRTC the page says so and measures over TCP"(browser) {
    if (!process.env.NETAWARE) return;
    const context = await browser.newContext({ ...PHONE, serviceWorkers: "allow" });
    await context.addInitScript(() => delete globalThis.RTCPeerConnection);
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${PORT}/#matrix`);
    await page.getByText("this browser has no WebRTC").waitFor();
    assert.ok(await page.getByLabel("UDP-like").isDisabled());
    await page.getByRole("link", { name: "Test" }).click();
    await quickTest(page);
    await page.getByText("This browser has no WebRTC").first().waitFor();
    await accessible(page, "without WebRTC");
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.ok(record.warnings.some((warning) => warning.includes("no WebRTC")), record.warnings.join());
    assert.ok(record.versions.every((version) => version.tcp.length === 2 && version.latency.lost === 0 && !version.udp));
    await context.close();
  },

  async "a browser that cannot hand a channel over runs the flow on the page's own thread"(browser) {
    if (!process.env.NETAWARE) return;
    const context = await browser.newContext({ ...PHONE, serviceWorkers: "allow" });
    await context.addInitScript(() => {
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (message, handed) {
        if (handed?.length > 0) throw new DOMException("not here", "DataCloneError");
        return postMessage.call(this, message);
      };
    });
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${PORT}/`);
    await quickTest(page);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    for (const version of record.versions) datagramsAreCounted(version);
    await context.close();
  },

  async "where UDP is blocked the page says so after some seconds and goes on"(browser) {
    if (!process.env.NETAWARE) return;
    const context = await browser.newContext({ ...PHONE, serviceWorkers: "allow" });
    // Nobody listens at the address to which the browser is sent.
    await context.addInitScript(() => {
      const { setRemoteDescription } = RTCPeerConnection.prototype;
      RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
        return setRemoteDescription.call(this, { type, sdp: sdp.replace(/ \d+ typ host/, " 9 typ host") });
      };
    });
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${PORT}/`);
    await quickTest(page);
    await page.getByText("No data channel came about within 6 s").first().waitFor();
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.ok(record.warnings.some((warning) => warning.includes("no data channel came about")), record.warnings.join());
    assert.ok(record.versions.every((version) => version.tcp.length === 2 && !version.udp));
    await context.close();
  },

  async "a walk compares its places"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "#walk");
    await accessible(page, "walk, empty");
    await page.getByLabel("Where are you?").fill("hall A");
    await page.getByRole("button", { name: "Here" }).click();
    // Longer than a test takes: the place is named before the next one begins.
    await page.getByLabel("Seconds from one").fill("25");
    await page.getByRole("button", { name: "Start the walk" }).click();
    await page.getByText("1 measurement", { exact: true }).waitFor({ timeout: QUICK_MS });
    await page.getByLabel("Where are you?").fill("hall B");
    await page.getByRole("button", { name: "Here" }).click();
    await page.getByText("2 measurements").waitFor({ timeout: QUICK_MS });
    await page.getByRole("button", { name: "hall A" }).click();
    await page.getByText("3 measurements").waitFor({ timeout: QUICK_MS });
    await page.getByRole("button", { name: "End the walk" }).click();
    await accessible(page, "walk, done");
    await picture(page, "walk-phone-light");
    const places = await page.locator("main table tbody th").allTextContents();
    assert.deepEqual(places, ["hall A", "hall B"]);
    await page.reload();
    await page.getByRole("button", { name: /3 measurements/ }).click();
    assert.deepEqual(await page.locator("main table tbody th").allTextContents(), ["hall A", "hall B"]);
    quiet();
    await context.close();
  },

  async "two tabs do not measure at once"(browser) {
    const { page, context, quiet } = await open(browser, DESKTOP);
    const second = await context.newPage();
    await second.goto(`http://127.0.0.1:${PORT}/`);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.latency.active");
    await second.getByRole("button", { name: "Start", exact: true }).click();
    await second.getByText("Another tab of this page is measuring").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Ended early").waitFor({ timeout: 10_000 });
    const [record] = await kept(page);
    assert.equal(record.outcome, "interrupted");
    quiet();
    await context.close();
  },

  async "the server's page tells what is allowed"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "dark" }, "#server");
    await page.getByText("netaware").first().waitFor();
    await page.getByText(process.env.NETAWARE ? "WebRTC data channel" : "none: the page measures over TCP").waitFor();
    // Other sessions of this address wait and measure while the owner looks.
    const others = await context.newPage();
    await others.goto(`http://127.0.0.1:${PORT}/`);
    await others.getByRole("button", { name: "Start", exact: true }).click();
    await others.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await page.getByRole("heading", { name: "Who is here" }).waitFor();
    if (process.env.NETAWARE) await page.getByText(/about .* left/).waitFor({ timeout: 10_000 });
    await page.getByText(/processors .* busy/).waitFor({ timeout: 10_000 });
    await accessible(page, "server");
    await picture(page, "server-phone-dark");
    quiet();
    await context.close();
  },

  async "a picture of the floor is tapped on, kept, and refused where it is none"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "#walk");
    await page.getByText("Floor plan", { exact: true }).click();
    const chooser = page.locator("input[type=file]");
    await chooser.setInputFiles({ name: "plan.png", mimeType: "image/png", buffer: Buffer.from("no picture") });
    await page.getByText("That is no picture").waitFor();
    await chooser.setInputFiles({ name: "plan.png", mimeType: "image/png", buffer: readFileSync(new URL("../public/icon-512.png", import.meta.url)) });
    const plan = page.getByAltText(/Floor plan/);
    await plan.waitFor();
    const box = await plan.boundingBox();
    await page.mouse.click(box.x + box.width * 0.25, box.y + box.height * 0.75);
    await page.getByLabel("Where are you?").fill("stairs");
    await page.getByRole("button", { name: "Here" }).click();
    await page.getByLabel("Seconds from one").fill("60");
    await page.getByRole("button", { name: "Start the walk" }).click();
    await page.getByText("1 measurement", { exact: true }).waitFor({ timeout: QUICK_MS });
    await page.getByRole("button", { name: "End the walk" }).click();
    await page.getByLabel("Measured at stairs").or(page.getByTitle("Measured at stairs")).or(page.getByText("Measured at stairs")).first().waitFor({ state: "attached" });
    await accessible(page, "walk with a plan");
    await picture(page, "walk-plan-phone-light");
    const spots = (await keptEntries(page)).map((entry) => entry.spot);
    assert.ok(spots.length === 1 && Math.abs(spots[0][0] - 0.25) < 0.02 && Math.abs(spots[0][1] - 0.75) < 0.02, JSON.stringify(spots));
    await page.reload();
    await page.getByAltText(/Floor plan/).waitFor();
    quiet();
    await context.close();
  },

  async "a full device shows the result and says that it is not kept"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" });
    const devtools = await context.newCDPSession(page);
    const quota = (quotaSize) => devtools.send("Storage.overrideQuotaForOrigin", { origin: `http://127.0.0.1:${PORT}`, ...quotaSize });
    await quota({ quotaSize: 1 });
    await quickTest(page);
    await page.getByText("The storage of this device is full").waitFor();
    await accessible(page, "full");
    assert.deepEqual(await kept(page), []);
    await page.getByRole("link", { name: "Results" }).click();
    assert.equal(await page.locator(".item").count(), 1, "it is shown all the same");
    await quota({});
    await page.getByRole("link", { name: "Test" }).click();
    await page.getByRole("button", { name: "Again" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
    assert.equal((await kept(page)).length, 1, "with room again it keeps again");
    assert.equal(await page.getByText("The storage of this device is full").count(), 0);
    quiet();
    await context.close();
  },

  async "a phone that slept in the middle says so"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", ["WebSocket", "ERR_", "Failed to load"]);
    const devtools = await browser.newBrowserCDPSession();
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
    const asleep = processInfo.filter((process) => process.type === "renderer").map((process) => process.id);
    for (const id of asleep) process.kill(id, "SIGSTOP");
    await rest(2000);
    for (const id of asleep) process.kill(id, "SIGCONT");
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: 2 * QUICK_MS });
    const [record] = await kept(page);
    assert.ok(record.warnings.some((warning) => warning.includes("held our timers up")), record.warnings.join());
    quiet();
    await context.close();
  },

  async "a path that goes silent without a word is noticed, and the test goes on when it is back"(browser, restart) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", ["WebSocket", "ERR_", "Failed to load"]);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await rest(500);
    // As when Wi-Fi is lost: nothing comes, and nobody says why.
    restart.signal("SIGSTOP");
    await page.getByText("The connection is gone").waitFor({ timeout: 20_000 });
    restart.signal("SIGCONT");
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: 2 * QUICK_MS });
    const [record] = await kept(page);
    assert.ok(record.warnings.some((warning) => warning.includes("connection was lost")), record.warnings.join());
    assert.ok(record.versions.every((version) => version.tcp.length === 2), "what had been interrupted was run again");
    quiet();
    await context.close();
  },

  async "where the server has one IP version the other is told as missing"(browser, restart) {
    if (!process.env.NETAWARE) return console.log("        left out: needs the program");
    await restart.stop();
    await restart.start(["--bind", "127.0.0.1"]);
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "dark" }, "", ["WebSocket", "ERR_"]);
    await quickTest(page);
    await page.getByText(/IPv6: not measured/).first().waitFor();
    await accessible(page, "one version");
    const [record] = await kept(page);
    assert.deepEqual(record.versions.filter((version) => version.tcp?.length).map((version) => version.version), ["IPv4"]);
    quiet();
    await context.close();
    await restart.stop();
    await restart.start();
  },

  async "pictures are saved as PNG and SVG, tables as CSV and JSON"(browser) {
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" });
    await quickTest(page);
    for (const [name, ending, begins] of [
      ["SVG", ".svg", "<svg"],
      ["PNG", ".png", "\u0089PNG"],
      ["CSV", ".csv", ""],
      ["JSON", ".json", "{"],
    ]) {
      const downloading = page.waitForEvent("download", (download) => download.suggestedFilename().endsWith(ending));
      await page.getByRole("button", { name, exact: true }).first().click();
      const download = await downloading;
      assert.ok(download.suggestedFilename().endsWith(ending), download.suggestedFilename());
      const content = readFileSync(await download.path(), "latin1");
      assert.ok(content.length > 200 && content.startsWith(begins), `${ending}: ${content.slice(0, 40)}`);
    }
    quiet();
    await context.close();
  },

  async "over TLS the code's fingerprint stands beside the server's, and a key opens what is the owner's"(_, restart) {
    if (!process.env.NETAWARE) return console.log("        left out: needs the program");
    // Who trusts a certificate by hand has trusted it for workers too.
    const browser = await startChromium([ANY_CERTIFICATE]);
    await restart.stop();
    const server = await restart.start(["--tls", "--key-file", `${home}/key`], "https");
    const pairs = /SHA-256: ([0-9A-F:]{95})/.exec(server.printed)[1];
    const digest = pairs.replaceAll(":", "").toLowerCase();
    const origin = `https://127.0.0.1:${PORT}`;
    const options = { ...PHONE, colorScheme: "light", ignoreHTTPSErrors: true };
    const { page, context, quiet } = await open(browser, options, `#tls=${digest}`, ["ERR_CERT", "SSL certificate"], origin);
    await page.getByText("This server wants a key").waitFor();
    await page.getByRole("link", { name: "Server", exact: true }).first().click();
    await page.getByText(pairs).nth(1).waitFor();
    assert.equal(await page.getByText("has another certificate").count(), 0);
    await page.getByLabel("Key of the server").fill("wrong");
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText("the proof does not fit").waitFor();
    await page.getByLabel("Key of the server").fill(KEY);
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText(/processors .* busy/).waitFor({ timeout: 10_000 });
    await accessible(page, "owner");
    await picture(page, "server-tls-phone-light");
    await page.getByRole("link", { name: "Test" }).click();
    await quickTest(page);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.ok(record.versions.every((version) => version.tcp.every((tcp) => tcp.goodput > 1e6)), "rates over TLS");
    const other = await context.newPage();
    await other.goto(`${origin}/#tls=${"0".repeat(64)}`);
    await other.getByText("has another certificate").first().waitFor();
    const led = await context.newPage();
    await led.goto(`http://127.0.0.1:${PORT}/#results`);
    assert.equal(led.url(), `${origin}/#results`);
    quiet();
    await browser.close();
    await restart.stop();
    await restart.start();
  },

  async "every control is reached by the keyboard"(browser) {
    const { page, context, quiet } = await open(browser, DESKTOP);
    await page.getByRole("button", { name: "Start", exact: true }).waitFor();
    const reached = [];
    for (let n = 0; n < 9; n += 1) {
      await page.keyboard.press("Tab");
      reached.push(await page.evaluate(() => document.activeElement?.textContent ?? ""));
    }
    for (const name of ["Skip to the page", "Test", "Blocks", "Walk", "Results", "Server", "Start"]) assert.ok(reached.includes(name), `${name} in ${reached}`);
    quiet();
    await context.close();
  },

  async "stored results open without a server, and a test that loses it keeps what it had and goes on"(browser, restart) {
    const lost = ["ERR_", "WebSocket connection", "Failed to load"];
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", lost);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await rest(1500);
    await restart.stop();
    await page.getByText("The connection is gone").waitFor({ timeout: 15_000 });
    await picture(page, "quick-lost-phone-light");
    await restart.start();
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: 2 * QUICK_MS });
    const [record] = await kept(page);
    assert.ok(record.warnings.some((warning) => warning.includes("connection was lost")), record.warnings.join());
    assert.equal(record.outcome, "complete");
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    await restart.stop();
    await page.reload();
    await page.getByText("The server does not answer").waitFor();
    await page.getByRole("link", { name: "Results" }).click();
    await page.waitForSelector(".item");
    await accessible(page, "without a server");
    await restart.start();
    quiet();
    await context.close();
  },
};

/** On loopback nothing is lost, and both ends agree. */
function datagramsAreCounted({ latency, latency_tcp, udp }) {
  assert.equal(latency.pedigree.method, "web-datagrams-latency");
  assert.equal(latency_tcp.pedigree.method, "web-latency");
  assert.deepEqual([latency.received, latency.lost], [latency.sent, 0], "echoes");
  assert.deepEqual(udp.map((stream) => stream.pedigree.direction), ["reverse", "forward"]);
  for (const { sent, not_sent, received, loss, receiver } of udp) {
    assert.ok(sent > 150 && sent + not_sent <= 200, `${sent} sent, ${not_sent} not`);
    assert.deepEqual([received, loss.lost, receiver.reordered], [sent, 0, 0], "a stream");
    assert.ok(receiver.jitter > 0 && receiver.delay_variation.count === received, "delays");
  }
}

/** The program must understand what the page calls a record. */
async function keepOnServer(page, record) {
  const button = page.getByRole("button", { name: "Keep on the server" });
  if ((await button.count()) === 0) return;
  await button.click();
  await page.getByText("Kept on the server.").waitFor({ timeout: 5000 });
  if (!process.env.NETAWARE) return;
  const back = await fetch(`http://127.0.0.1:${PORT}/api/v1/results/${record.id}`).then((response) => response.json());
  assert.equal(back.id, record.id);
}

/** All scenes by processes that share them, each with a server and a browser of its own; how many failed. */
async function inLanes() {
  const each = Array.from({ length: LANES }, (_, n) => {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url)], { stdio: "inherit", env: { ...process.env, LANE: `${n}/${LANES}` } });
    return new Promise((resolve) => child.once("exit", (code) => resolve(code === 0 ? 0 : 1)));
  });
  return (await Promise.all(each)).reduce((sum, one) => sum + one, 0);
}

/** The scenes of this lane, one after the other; how many failed. */
async function inThisLane() {
  let server = await serve();
  const restart = {
    async stop() {
      const gone = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGCONT");
      server.kill("SIGKILL");
      await gone;
    },
    async start(more, scheme) {
      server = await serve(more, scheme);
      return server;
    },
    signal(name) {
      server.kill(name);
    },
  };
  let browser = await startChromium();
  let failed = 0;
  for (const [n, [claim, scene]] of Object.entries(scenes).entries()) {
    if (only ? !only.split("|").some((part) => claim.includes(part)) : n % lanes !== lane) continue;
    const began = performance.now();
    const took = () => `${((performance.now() - began) / 1000).toFixed(0)} s`;
    try {
      await scene(browser, restart);
      console.log(`ok      ${claim} (${took()})`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${claim} (${took()})\n${error?.stack ?? error}`);
      // Whatever it left behind is no matter of the next one's.
      await browser.close();
      await restart.stop();
      await restart.start();
      browser = await startChromium();
    }
  }
  await browser.close();
  await restart.stop();
  return failed;
}

const failed = only || process.env.LANE ? await inThisLane() : await inLanes();
process.exit(failed === 0 ? 0 : 1);
