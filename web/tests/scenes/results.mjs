// What was measured: listed, found again, compared, shared, and what other programs make of it.

import assert from "node:assert/strict";
import { DESKTOP, LEFT_OUT, NETAWARE, ORIGIN, PHONE, PORT, QUICK_MS, accessible, here, keepOnServer, kept, netaware, open, picture, quickTest, store } from "../stage.mjs";

/** Of the command line, as the page gets them from a file, and the pictures that fit them. */
const COMMANDS = {
  Latency: { words: ["latency", "127.0.0.1", "-c", "200", "-i", "1ms"], charts: ["Round trips"] },
  UDP: { words: ["udp", "127.0.0.1", "-n", "300", "-l", "1000", "--spacing", "1ms"], charts: ["UDP rate over time, IPv4", "Times between arrivals, IPv4"] },
  Capacity: { words: ["capacity", "127.0.0.1", "-t", "5s"], charts: ["Capacity and available bandwidth"] },
  Host: { words: ["host", "--quick", "--no-cache"], charts: ["How late this host's timers are: median and p99"] },
};
const SCAN = ["latency", "127.0.0.1", "-c", "50", "-i", "1ms", "--scan", "length=64,512,1024"];

export const scenes = {
  async "results are listed, compared, shared, and a label with script in it stays text"(browser) {
    const options = { ...PHONE, colorScheme: "dark" };
    const { page, context, quiet } = await open(browser, options);
    await quickTest(page);
    await picture(page, "quick-done-phone-dark");
    await labelled(page, "without VPN");
    const [first] = await kept(page);
    await page.getByRole("link", { name: "Results" }).click();
    // Another test would take half a minute; the page takes its record from a file as well.
    const other = { ...first, id: first.id.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")), label: "with VPN" };
    await page.locator("input[type=file]").setInputFiles({ name: "other.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(other)) });
    await here(page).locator(".item").nth(1).waitFor();
    await accessible(page, "results");
    await picture(page, "results-phone-dark");
    for (const box of await here(page).locator(".item input[type=checkbox]").all()) await box.check();
    await page.getByRole("button", { name: "Compare" }).click();
    await comparedSideBySide(page);
    await accessible(page, "compared");
    await picture(page, "compare-phone-dark");
    await page.getByRole("link", { name: "Test" }).click();
    await labelled(page, "<img src=x onerror=alert(1)>");
    await page.getByRole("link", { name: "Results" }).click();
    await here(page).locator(".item", { hasText: "<img" }).waitFor();
    assert.equal(await page.locator("main img").count(), 0, "a label is text");
    await here(page).locator(".item button.plain", { hasText: "<img" }).click();
    await accessible(page, "one result");
    await page.getByRole("button", { name: "Share link" }).click();
    const link = await page.locator("input.link").inputValue();
    const second = await context.newPage();
    await second.goto(link);
    await second.getByRole("heading", { name: "Shared with you" }).waitFor();
    await second.getByText("<img src=x").first().waitFor();
    assert.equal(await second.locator("main img").count(), 0, "a shared label is text");
    await accessible(second, "shared");
    await second.goto(`${ORIGIN}/#r=zAAAA`);
    await second.getByText("The link holds no result").waitFor();
    quiet();
    await context.close();
  },

  async "records that the command line printed are opened, found by kind and word, and have their pictures"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" }, "#results");
    const own = here(page);
    const opened = (words) => openRecord(page, [...words, "--format", "json", ...(words[0] === "host" ? [] : ["--port", String(PORT)])]);
    for (const { words } of Object.values(COMMANDS)) await opened(words);
    await own.locator(".item").nth(3).waitFor();
    await opened(SCAN);
    await own.locator(".item").nth(6).waitFor();
    await page.getByLabel("Kind").selectOption("Latency");
    assert.equal(await own.locator(".item").count(), 4, "one by itself and three of a scan");
    await page.getByLabel("Kind").selectOption("All kinds");
    await page.getByLabel("Filter").fill("capacity 127.0.0.1");
    assert.equal(await own.locator(".item").count(), 1, "each word narrows");
    await page.getByLabel("Filter").fill("no such thing");
    await page.getByText("Nothing here yet").waitFor();
    await page.getByLabel("Filter").fill("");
    for (const [kind, { charts }] of Object.entries(COMMANDS)) {
      await page.getByLabel("Kind").selectOption(kind);
      await own.locator("button.plain").last().click();
      for (const chart of charts) await drawn(page, chart);
      await accessible(page, `a record of ${kind}`);
      await page.getByRole("button", { name: "All results" }).click();
    }
    await page.getByLabel("Kind").selectOption("Latency");
    await own.locator("button.plain").first().click();
    await drawn(page, "Delay over the series");
    await page.getByRole("button", { name: "All results" }).click();
    await page.locator("input[type=file]").setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from('{"schema":1}') });
    await page.getByText("That file holds no record").waitFor();
    quiet();
    await context.close();
  },

  async "what a page keeps on the server is in `netaware results` and on the pages of others"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "#matrix");
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("20kB");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator("table.wide").first().waitFor({ timeout: QUICK_MS });
    const [record] = await kept(page);
    await keepOnServer(page, record);
    const listed = await netaware("results", "list", "--store", store, "--command", "matrix");
    assert.ok(listed.includes(record.id.slice(0, 18)), listed);
    const shown = await netaware("results", "show", record.id, "--store", store);
    for (const part of ["IPv4", "IPv6", "20 kB", "TCP_NODELAY"]) assert.ok(shown.includes(part), shown);
    const same = JSON.parse(await netaware("results", "show", record.id, "--store", store, "--format", "json"));
    assert.deepEqual(same.versions.map(cellOf), record.versions.map(cellOf), "the same figures");
    const other = await open(browser, { ...PHONE, colorScheme: "dark" }, "#results");
    const there = other.page.getByRole("region", { name: "On the server" });
    await there.getByRole("button", { name: /Block matrix/ }).first().click();
    await other.page.getByRole("table", { name: /TCP_NODELAY, IPv6/ }).waitFor();
    assert.deepEqual(await kept(other.page), [], "looking keeps nothing");
    quiet();
    other.quiet();
    await context.close();
    await other.context.close();
  },
};

async function labelled(page, text) {
  await page.getByLabel("Label").fill(text);
  await page.getByRole("button", { name: "Keep label" }).click();
}

/** Both records over both IP versions, in the table and in the picture. */
async function comparedSideBySide(page) {
  const heads = await page.locator("thead th").allTextContents();
  const versions = ["with VPN", "without VPN"].map((label) => heads.filter((head) => head.startsWith(label)).map((head) => /IPv[46]/.exec(head)?.[0]));
  assert.deepEqual(versions, [["IPv4", "IPv6"], ["IPv4", "IPv6"]], heads.join());
  const down = await page.locator("tbody tr", { has: page.getByRole("rowheader", { name: "Down", exact: true }) }).locator("td").allTextContents();
  assert.ok(down.length === 4 && down.every((cell) => /^[\d.]+ [kMG]bit\/s/.test(cell)), down.join());
  const pictures = await page.getByLabel("Picture of").locator("option").allTextContents();
  for (const rate of ["Up IPv6", "Up IPv4", "Down IPv6", "Down IPv4"]) {
    const title = pictures.find((each) => each.includes("over time") && each.includes(rate));
    await page.getByLabel("Picture of").selectOption(title);
    await page.locator("figure.picture", { hasText: title }).waitFor();
    assert.equal(await page.locator("figure.picture polyline[class*=tone]").count(), 2, `${title}: a line of each record`);
  }
}

/** Runs the program and gives what it printed to the page, as a file. */
async function openRecord(page, words) {
  const buffer = Buffer.from(await netaware(...words));
  await page.locator("input[type=file]").setInputFiles({ name: "record.json", mimeType: "application/json", buffer });
}

/** There is a picture of that name with more in it than axes. */
async function drawn(page, title) {
  const figure = page.locator("figure.picture", { hasText: title }).first();
  await figure.locator("[class*=tone]").first().waitFor({ state: "attached" });
}

function cellOf({ version, matrix }) {
  return [version, matrix.map(({ protocol, cells }) => [protocol, cells.map(({ runs }) => runs.map((run) => [run.client.bytes, run.client.elapsed, run.server.bytes, run.lost]))])];
}
