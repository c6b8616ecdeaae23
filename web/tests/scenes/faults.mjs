// Links that go, devices that sleep or are full, servers with one IP version.

import assert from "node:assert/strict";
import { DESKTOP, LEFT_OUT, NETAWARE, ORIGIN, PHONE, PORT, QUICK_MS, accessible, accessibleAnywhere, accessibleInBoth, here, kept, measures, ofBothVersions, open, picture, quickTest, rest, smallMatrix } from "../stage.mjs";

export const scenes = {
  async "stored results open without a server, and a test that loses it keeps what it had and goes on"(browser, server) {
    const lost = ["ERR_", "WebSocket connection", "Failed to load"];
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", lost);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await measures(page, "down");
    await server.stop();
    await page.getByText("The connection is gone").waitFor({ timeout: 15_000 });
    await accessibleAnywhere(page, "quick test, lost");
    await picture(page, "quick-lost-phone-light");
    await server.start();
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: 2 * QUICK_MS });
    const [record] = await kept(page);
    assert.ok(record.warnings.some((warning) => warning.includes("connection was lost")), record.warnings.join());
    assert.equal(record.outcome, "complete");
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    await server.stop();
    await page.reload();
    await page.getByText("The server does not answer").waitFor();
    await page.getByRole("link", { name: "Results" }).click();
    await here(page).locator(".item").first().waitFor();
    await accessible(page, "without a server");
    await here(page).locator(".item button.plain").click();
    await page.locator("figure.picture", { hasText: "over time" }).locator("polyline[class*=tone]").nth(3).waitFor({ state: "attached" });
    await server.start();
    quiet();
    await context.close();
  },

  async "a path that goes silent without a word is noticed, and the test goes on when it is back"(browser, server) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", ["WebSocket", "ERR_", "Failed to load"]);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await measures(page, "down");
    // As when Wi-Fi is lost: nothing comes, and nobody says why.
    server.signal("SIGSTOP");
    await page.getByText("The connection is gone").waitFor({ timeout: 20_000 });
    server.signal("SIGCONT");
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: 2 * QUICK_MS });
    const [record] = await kept(page);
    assert.ok(record.warnings.some((warning) => warning.includes("connection was lost")), record.warnings.join());
    ofBothVersions(record, (version) => version.tcp.length === 2, "what had been interrupted was run again");
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

  async "where the server has IPv6 alone IPv4 is told as missing"(browser, server) {
    if (!NETAWARE) return LEFT_OUT;
    const origin = `http://[::1]:${PORT}`;
    await server.stop();
    await server.start(["--bind", "::1"], origin);
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "", ["WebSocket", "ERR_"], origin);
    await quickTest(page);
    await page.getByText(/IPv4: not measured/).first().waitFor();
    await accessibleInBoth(page, "IPv6 alone");
    const [record] = await kept(page);
    assert.deepEqual(record.versions.filter((version) => version.tcp?.length).map((version) => version.version), ["IPv6"]);
    quiet();
    await context.close();
    await server.stop();
    await server.start();
  },

  async "where the server has one IP version the other is told as missing"(browser, server) {
    if (!NETAWARE) return LEFT_OUT;
    await server.stop();
    await server.start(["--bind", "127.0.0.1"]);
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "dark" }, "", ["WebSocket", "ERR_"]);
    await quickTest(page);
    await page.getByText(/IPv6: not measured/).first().waitFor();
    await accessible(page, "one version");
    const [record] = await kept(page);
    assert.deepEqual(record.versions.filter((version) => version.tcp?.length).map((version) => version.version), ["IPv4"]);
    quiet();
    await context.close();
    await server.stop();
    await server.start();
  },

  async "a page that is closed in the middle of a test has what there was when it is opened again"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" });
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await measures(page, "up");
    await page.close();
    const again = await context.newPage();
    await again.goto(`${ORIGIN}/#results`);
    await here(again).locator(".item", { hasText: "ended early" }).getByRole("button").click();
    await accessible(again, "a test that was cut off");
    const [record] = await kept(again);
    assert.equal(record.outcome, "interrupted");
    const [down] = record.versions[0].tcp;
    assert.deepEqual([down.pedigree.direction, down.outcome, down.goodput > 1e6], ["reverse", "complete", true]);
    quiet();
    await context.close();
  },

  async "a full device shows the result and says that it is not kept"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" });
    const devtools = await context.newCDPSession(page);
    const quota = (quotaSize) => devtools.send("Storage.overrideQuotaForOrigin", { origin: ORIGIN, ...quotaSize });
    await quota({ quotaSize: 1 });
    await quickTest(page);
    await page.getByText("The storage of this device is full").waitFor();
    await accessible(page, "full");
    assert.deepEqual(await kept(page), []);
    await page.getByRole("link", { name: "Results" }).click();
    await here(page).locator(".item").first().waitFor();
    assert.equal(await here(page).locator(".item").count(), 1, "it is shown all the same");
    await quota({});
    await smallMatrix(page);
    assert.equal((await kept(page)).length, 1, "with room again it keeps again");
    assert.equal(await page.getByText("The storage of this device is full").count(), 0);
    quiet();
    await context.close();
  },
};
