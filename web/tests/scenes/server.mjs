// Serving: who may look, TLS, and the codes that a camera reads.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate, createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import jsQr from "jsqr";
import { ANY_CERTIFICATE, startChromium } from "../chromium.mjs";
import { KEY, LEFT_OUT, NETAWARE, ORIGIN, PHONE, PORT, QUICK_MS, accessible, accessibleInBoth, here, home, kept, netaware, ofBothVersions, open, picture, quickTest, rest } from "../stage.mjs";

const SECURE = ORIGIN.replace("http:", "https:");

export const scenes = {
  async "over TLS the code's fingerprint stands beside the server's, and a key opens what is the owner's"(_, server) {
    if (!NETAWARE) return LEFT_OUT;
    // Who trusts a certificate by hand has trusted it for workers too.
    const browser = await startChromium([ANY_CERTIFICATE]);
    await server.stop();
    const { printed } = await server.start(["--tls", "--key-file", `${home}/key`], SECURE);
    const pairs = /SHA-256: ([0-9A-F:]{95})/.exec(printed)[1];
    const digest = pairs.replaceAll(":", "").toLowerCase();
    const options = { ...PHONE, colorScheme: "light", ignoreHTTPSErrors: true };
    const { page, context, quiet } = await open(browser, options, `#tls=${digest}`, ["ERR_CERT", "SSL certificate"], SECURE);
    await page.getByText("This server wants a key").waitFor();
    await page.getByRole("link", { name: "Server", exact: true }).first().click();
    await page.getByText(pairs).nth(1).waitFor();
    assert.equal(await page.getByText("has another certificate").count(), 0);
    await page.getByLabel("Key of the server").fill("wrong");
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText("the proof does not fit").waitFor();
    await page.getByLabel("Key of the server").fill(KEY);
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText(/processors .* busy/).waitFor();
    await accessible(page, "owner");
    await picture(page, "server-tls-phone-light");
    await page.getByRole("link", { name: "Test" }).click();
    await quickTest(page);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    ofBothVersions(record, ({ tcp }) => tcp.length === 2 && tcp.every(({ goodput }) => goodput > 1e6), "rates over TLS");
    await page.getByRole("button", { name: "Keep on the server" }).click();
    await page.getByText("Kept on the server.").waitFor();
    await keptIsReadWithTheKey(browser, options);
    const other = await context.newPage();
    await other.goto(`${SECURE}/#tls=${"0".repeat(64)}`);
    await other.getByText("has another certificate").first().waitFor();
    const led = await context.newPage();
    await led.goto(`${ORIGIN}/#results`);
    assert.equal(led.url(), `${SECURE}/#results`);
    quiet();
    await browser.close();
    await server.stop();
    await server.start();
  },

  async "the server's page tells what is allowed"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "dark" }, "#server");
    await page.getByText("netaware").first().waitFor();
    await page.getByText(NETAWARE ? "WebRTC data channel" : "none: the page measures over TCP").waitFor();
    // Other sessions of this address wait and measure while the owner looks.
    const others = await context.newPage();
    await others.goto(`${ORIGIN}/`);
    await others.getByRole("button", { name: "Start", exact: true }).click();
    await others.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await page.getByRole("heading", { name: "Who is here" }).waitFor();
    if (NETAWARE) await page.getByText(/about .* left/).waitFor();
    await page.getByText(/processors .* busy/).waitFor();
    await accessible(page, "server");
    await picture(page, "server-phone-dark");
    quiet();
    await context.close();
  },

  async "who only sees the codes that are printed has a result in three taps"(browser, server) {
    if (!NETAWARE) return LEFT_OUT;
    await server.stop();
    const serving = await server.start(["--qr", "always"]);
    const codes = await codesOf(serving);
    for (const { printed, drawing } of codes) assert.equal(decoded(drawing), printed, drawing.join("\n"));
    const hosts = codes.map(({ printed }) => new URL(printed).hostname);
    for (const address of addresses()) assert.ok(hosts.includes(address) || hosts.includes(`[${address}]`), `${address} has a code, as ${hosts} have`);
    // The camera offers to open what it has read.
    let taps = 1;
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", APART, new URL(codes[0].printed).origin);
    const tap = (name) => {
      taps += 1;
      return page.getByRole("button", { name, exact: true }).tap();
    };
    await tap("Start");
    await page.getByText("Kept on this device.").waitFor({ timeout: QUICK_MS });
    await page.getByRole("img", { name: /^Down over IPv[46]: [\d.]+ [kMG]bit\/s$/ }).waitFor();
    assert.ok(taps <= 3, `${taps} taps`);
    quiet();
    await context.close();
    await server.stop();
    await server.start();
  },

  async "a page without TLS that came from another host says what needs it, and strangers do not see who is here"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const address = addresses().find((each) => each.includes("."));
    if (address === undefined) return nothingBut("loopback");
    const origin = `http://${address}:${PORT}`;
    for (const [from, status] of [[ORIGIN, 200], [origin, 403]]) assert.equal((await fetch(`${from}/api/v1/server`)).status, status, from);
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "dark" }, "#server", ["403"], origin);
    await page.getByText("no: the page cannot be installed, work offline or keep the screen on").waitFor();
    await page.getByText(/owner/).and(page.getByRole("status")).waitFor();
    assert.equal(await page.getByText(/processors .* busy/).count(), 0);
    await accessibleInBoth(page, "server, for a stranger");
    assert.equal(await page.evaluate(() => isSecureContext), false);
    await page.getByRole("link", { name: "Results" }).click();
    const record = await netaware("latency", "127.0.0.1", "-p", String(PORT), "-c", "20", "-i", "1ms", "--format", "json");
    await page.locator("input[type=file]").setInputFiles({ name: "record.json", mimeType: "application/json", buffer: Buffer.from(record) });
    await here(page).locator(".item button.plain").first().click();
    await page.getByRole("button", { name: "Share link" }).click();
    await page.getByText("Copy this link.").waitFor();
    assert.ok((await page.locator("input.link").inputValue()).startsWith(`${origin}/#r=`));
    quiet();
    await context.close();
  },

  async "with a certificate of its owner's that the device trusts the page can be installed, and opens without the server"(_, server) {
    if (!NETAWARE) return LEFT_OUT;
    const { files, certificate } = madeCertificate();
    const browser = await startChromium([`--ignore-certificate-errors-spki-list=${pinOf(certificate)}`]);
    await server.stop();
    const { printed } = await server.start(["--cert", files.cert, "--cert-key", files.key], SECURE);
    assert.ok(printed.includes(certificate.fingerprint256), printed);
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "#matrix", ["ERR_CONNECTION_REFUSED"], SECURE);
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    const devtools = await context.newCDPSession(page);
    const { manifest, errors } = await devtools.send("Page.getAppManifest");
    assert.deepEqual([errors, manifest.name, /standalone$/i.test(manifest.display)], [[], "netaware", true]);
    const { installabilityErrors } = await devtools.send("Page.getInstallabilityErrors");
    assert.deepEqual(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito"), []);
    await page.getByLabel("One pair").check();
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("table", { name: /TCP_NODELAY, IPv6/ }).waitFor({ timeout: QUICK_MS });
    await server.stop();
    await page.reload();
    await page.getByText("The server does not answer").waitFor();
    await page.getByRole("link", { name: "Results" }).click();
    await here(page).locator(".item button.plain").click();
    await page.getByRole("table", { name: /TCP_NODELAY, IPv6/ }).waitFor();
    quiet();
    await browser.close();
    await server.start();
  },
};

/** A page of one address asks others of the same server, which a browser may take for another network's. */
const APART = ["ERR_", "WebSocket connection", "Access to fetch", "local network"];

/** Of this host, as others reach it. */
function addresses() {
  const all = Object.values(networkInterfaces()).flat();
  return all.filter(({ internal, address }) => !internal && !address.startsWith("fe80")).map(({ address }) => address);
}

function nothingBut(what) {
  assert.ok(!process.env.CI, `CI has more than ${what}`);
  return `left out: this host has no address but ${what}`;
}

/** What stands above each code, and its lines. */
async function codesOf(serving) {
  for (let tries = 0; !serving.printed.trimEnd().endsWith("▀▀▀▀"); tries += 1) {
    assert.ok(tries < 100, `no code within 10 s: ${serving.printed}`);
    await rest(100);
  }
  const parts = serving.printed.split("or with a browser, on a phone too: ").slice(1);
  return parts.map((part) => {
    const [printed, ...drawing] = part.trimEnd().split("\n");
    return { printed, drawing };
  });
}

/** What a camera makes of it: a line of text has two rows of modules, and what is drawn is light. */
function decoded(drawing) {
  const [dots, width, height] = [4, drawing[0].length, 2 * drawing.length];
  const isLight = (x, y) => ["█", y % 2 === 0 ? "▀" : "▄"].includes(drawing[Math.floor(y / 2)][x]);
  const pixels = new Uint8ClampedArray(4 * dots * width * dots * height);
  for (let n = 0; n < pixels.length / 4; n += 1) {
    const [x, y] = [n % (dots * width), Math.floor(n / (dots * width))];
    pixels.fill(isLight(Math.floor(x / dots), Math.floor(y / dots)) ? 255 : 0, 4 * n, 4 * n + 3);
    pixels[4 * n + 3] = 255;
  }
  return jsQr(pixels, dots * width, dots * height)?.data;
}

function madeCertificate() {
  const files = { cert: `${home}/cert.pem`, key: `${home}/cert-key.pem` };
  const names = "subjectAltName=IP:127.0.0.1,IP:::1";
  const made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=netaware", "-addext", names];
  execFileSync("openssl", ["req", ...made, "-keyout", files.key, "-out", files.cert], { stdio: "ignore" });
  return { files, certificate: new X509Certificate(readFileSync(files.cert)) };
}

/** On another device, whose owner has to give the key first. */
async function keptIsReadWithTheKey(browser, options) {
  const { page, context, quiet } = await open(browser, options, "#results", ["ERR_CERT", "SSL certificate"], SECURE);
  const there = page.getByRole("region", { name: "On the server" });
  await there.getByText("to who gives its key").waitFor();
  assert.equal(await there.getByRole("listitem").count(), 0, "nothing is listed to who has no key");
  await there.getByRole("link", { name: "Server" }).click();
  await page.getByLabel("Key of the server").fill(KEY);
  await page.getByRole("button", { name: "Use this key" }).click();
  await page.getByText(/processors .* busy/).waitFor();
  await page.getByRole("link", { name: "Results", exact: true }).first().click();
  await there.getByRole("button").first().click();
  await page.locator(".record .verdicts").waitFor();
  quiet();
  await context.close();
}

/** As Chromium wants it of a key that it shall trust. */
function pinOf(certificate) {
  return createHash("sha256").update(certificate.publicKey.export({ type: "spki", format: "der" })).digest("base64");
}
