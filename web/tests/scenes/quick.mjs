// The quick test: its figures and pictures, with datagrams and without, and whom it waits for.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { DESKTOP, LEFT_OUT, NETAWARE, ORIGIN, PHONE, QUICK_MS, accessible, accessibleAnywhere, datagramsAreCounted, keepOnServer, kept, measures, ofBothVersions, open, picture, quickTest, rest, watched } from "../stage.mjs";

export const scenes = {
  async "one tap measures both IP versions and tells what they are good for"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" });
    await accessible(page, "quick test, ready");
    await picture(page, "quick-ready-phone-light");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await measures(page, "down");
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
      if (NETAWARE) datagramsAreCounted(version);
    }
    await keepOnServer(page, record);
    quiet();
    await context.close();
  },

  async "pictures are saved as PNG and SVG, tables as CSV and JSON"(browser) {
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" });
    await quickTest(page);
    for (const [name, ending, begins] of [
      ["SVG", ".svg", "<svg"],
      ["PNG", ".png", "\u0089PNG"],
      ["CSV", ".csv", "id,started_at_utc,label,command,version,figure,value,"],
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

  async "without WebRTC the page says so and measures over TCP"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const context = await browser.newContext({ ...PHONE, serviceWorkers: "allow" });
    const quiet = watched(context);
    await context.addInitScript(() => delete globalThis.RTCPeerConnection);
    const page = await context.newPage();
    await page.goto(`${ORIGIN}/#matrix`);
    await page.getByText("this browser has no WebRTC").waitFor();
    assert.ok(await page.getByLabel("UDP-like").isDisabled());
    await page.getByRole("link", { name: "Test" }).click();
    await quickTest(page);
    await page.getByText("This browser has no WebRTC").first().waitFor();
    await accessible(page, "without WebRTC");
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.ok(record.warnings.some((warning) => warning.includes("no WebRTC")), record.warnings.join());
    ofBothVersions(record, (version) => version.tcp.length === 2 && version.latency.lost === 0 && !version.udp, "TCP alone");
    quiet();
    await context.close();
  },

  async "a browser that cannot hand a channel over runs the flow on the page's own thread"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const context = await browser.newContext({ ...PHONE, serviceWorkers: "allow" });
    const quiet = watched(context);
    await context.addInitScript(() => {
      const { postMessage } = Worker.prototype;
      Worker.prototype.postMessage = function (message, handed) {
        if (handed?.some((each) => each instanceof RTCDataChannel)) throw new DOMException("not here", "DataCloneError");
        return postMessage.call(this, message, handed);
      };
    });
    const page = await context.newPage();
    await page.goto(`${ORIGIN}/`);
    await quickTest(page);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.equal(record.versions.length, 2);
    for (const version of record.versions) datagramsAreCounted(version);
    quiet();
    await context.close();
  },

  async "where UDP is blocked the page says so after some seconds and goes on"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const context = await browser.newContext({ ...PHONE, serviceWorkers: "allow" });
    const quiet = watched(context);
    // Nobody listens at the address to which the browser is sent.
    await context.addInitScript(() => {
      const { setRemoteDescription } = RTCPeerConnection.prototype;
      RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
        return setRemoteDescription.call(this, { type, sdp: sdp.replace(/ \d+ typ host/, " 9 typ host") });
      };
    });
    const page = await context.newPage();
    await page.goto(`${ORIGIN}/`);
    await quickTest(page);
    await page.getByText(/No data channel came about within \d+ s/).first().waitFor();
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.ok(record.warnings.some((warning) => warning.includes("no data channel came about")), record.warnings.join());
    ofBothVersions(record, (version) => version.tcp.length === 2 && !version.udp, "TCP alone");
    quiet();
    await context.close();
  },

  async "two tabs do not measure at once"(browser) {
    const { page, context, quiet } = await open(browser, DESKTOP);
    const second = await context.newPage();
    await second.goto(`${ORIGIN}/`);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.latency.active");
    await second.getByRole("button", { name: "Start", exact: true }).click();
    await second.getByText("Another tab of this page is measuring").waitFor();
    await accessible(second, "busy elsewhere");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Ended early: what had been measured").waitFor();
    const [record] = await kept(page);
    assert.equal(record.outcome, "interrupted");
    // Both at once: one of them has the turn.
    for (const each of [page, second]) await each.reload();
    const both = [page, second].map((each) => each.getByRole("button", { name: "Start", exact: true }));
    for (const each of both) await each.waitFor();
    await Promise.all(both.map((each) => each.evaluate((button) => button.click())));
    const told = [page, second].map((each) => each.getByText("Another tab of this page is measuring"));
    for (const [n, each] of [page, second].entries()) await told[n].or(each.locator(".tile.latency.active")).waitFor();
    assert.deepEqual((await Promise.all(told.map((text) => text.count()))).sort(), [0, 1], "one of two measures");
    quiet();
    await context.close();
  },

  async "every control is reached by the keyboard, and a test begun and ended"(browser) {
    const { page, context, quiet } = await open(browser, DESKTOP);
    await page.getByRole("button", { name: "Start", exact: true }).waitFor();
    const reached = [];
    for (let n = 0; n < 9; n += 1) {
      await page.keyboard.press("Tab");
      reached.push(await page.evaluate(() => document.activeElement?.textContent ?? ""));
    }
    for (const name of ["Skip to the page", "Test", "Blocks", "Walk", "Results", "Server", "Start"]) assert.ok(reached.includes(name), `${name} in ${reached}`);
    await page.getByRole("button", { name: "Start", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".tile.latency.active b", { hasText: /\d/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Ended early: what had been measured").waitFor();
    quiet();
    await context.close();
  },

  async "who comes while somebody measures is told the place, and gets the turn"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const first = await open(browser, { ...PHONE, colorScheme: "light" });
    const second = await open(browser, { ...PHONE, colorScheme: "light" });
    await first.page.getByRole("button", { name: "Start", exact: true }).click();
    await first.page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await second.page.getByRole("button", { name: "Start", exact: true }).click();
    await second.page.getByText(/Somebody else is measuring. Your place: 1, about .* to go/).waitFor({ timeout: QUICK_MS });
    // The first one is done in some seconds: this is all that there is time for.
    await accessible(second.page, "queued");
    await first.page.getByRole("button", { name: "Stop" }).click();
    await second.page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await second.page.getByRole("img", { name: /^Down over IPv[46]: [\d.]+ [kMG]bit\/s$/ }).waitFor();
    for (const { context, quiet } of [first, second]) {
      quiet();
      await context.close();
    }
  },

  async "the page's own thread stays free while it measures, and a tab that was hidden says so"(browser) {
    const { page, context, quiet } = await open(browser, DESKTOP);
    const devtools = await context.newCDPSession(page);
    await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
    const busy = async () => (await devtools.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
    const [before, began] = [await busy(), performance.now()];
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
    await hide(page, true);
    await rest(1500);
    await hide(page, false);
    await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
    const share = ((await busy()) - before) / ((performance.now() - began) / 1000);
    console.log(`        its own thread was busy for ${(100 * share).toFixed(1)} % of the test`);
    assert.ok(share < 0.15, `the page's thread was busy for ${share} of the test`);
    const [record] = await kept(page);
    assert.ok(record.warnings.some((warning) => warning.includes("hidden")), record.warnings.join());
    quiet();
    await context.close();
  },
};

/** A browser without a screen hides no tab, so the page is told as one with a screen would tell it. */
async function hide(page, away) {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, away);
}
