// One way through every page, by each kind of device, over each IP version, in each theme: any two of these meet in one journey.

import assert from "node:assert/strict";
import { DESKTOP, PHONE, PORT, QUICK_MS, accessible, here, kept, open, smallMatrix } from "../stage.mjs";

const HOSTS = { IPv4: "127.0.0.1", IPv6: "[::1]" };
const JOURNEYS = [
  ["phone", PHONE, "IPv4", "dark"],
  ["phone", PHONE, "IPv6", "light"],
  ["desktop", DESKTOP, "IPv4", "light"],
  ["desktop", DESKTOP, "IPv6", "dark"],
];

/** Two halves, so that neither takes long. */
export const scenes = Object.fromEntries(
  JOURNEYS.flatMap(([device, options, version, colorScheme]) => {
    const where = `on a ${device} that came over ${version}, ${colorScheme}`;
    const journey = (parts) => (browser) => through(browser, { ...options, colorScheme }, HOSTS[version], parts);
    return [
      [`the quick test and the server's page ${where}`, journey([quick, server])],
      [`blocks, a walk and the results ${where}`, journey([matrix, walk, results])],
    ];
  }),
);

async function through(browser, options, host, parts) {
  const { page, context, quiet } = await open(browser, options, "", [], `http://${host}:${PORT}`);
  for (const part of parts) await part(page, context);
  quiet();
  await context.close();
}

async function server(page) {
  await goTo(page, "Server");
  await page.getByText(/processors .* busy/).waitFor();
  await accessible(page, "server");
}

function goTo(page, name) {
  return page.getByRole("link", { name, exact: true }).first().click();
}

async function quick(page) {
  await page.getByRole("button", { name: "Start", exact: true }).waitFor();
  await accessible(page, "quick test, ready");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForSelector(".tile.down.active", { timeout: QUICK_MS });
  await page.locator(".curve canvas").waitFor();
  await page.getByRole("img", { name: /^Down over IPv[46]: [\d.]+ [kMG]bit\/s$/ }).waitFor();
  await accessible(page, "quick test, running");
  await page.getByRole("button", { name: "Again" }).waitFor({ timeout: QUICK_MS });
  for (const use of ["Video call", "Games", "4K video"]) await page.locator(".verdicts li", { hasText: use }).first().getByText(/^(Good|Fair|Poor|Open)$/).waitFor();
  await page.getByText("How these figures came about").click();
  await page.getByText("payload at the receiver").first().waitFor();
  await accessible(page, "quick test, done");
  const [record] = await kept(page);
  assert.deepEqual(record.versions.map(({ version, address }) => [version, address]), [["IPv4", "127.0.0.1"], ["IPv6", "::1"]]);
  assert.ok(record.versions.every(({ latency, tcp }) => latency.received > 100 && tcp.length === 2), "both versions are measured");
}

async function matrix(page) {
  await smallMatrix(page);
  await accessible(page, "matrix");
}

async function walk(page) {
  await goTo(page, "Walk");
  await page.getByLabel("Where are you?").fill("hall");
  await page.getByRole("button", { name: "Here", exact: true }).click();
  await page.getByLabel("Seconds from one").fill("60");
  await page.getByRole("button", { name: "Start the walk" }).click();
  await page.getByText("1 measurement", { exact: true }).waitFor({ timeout: QUICK_MS });
  await page.getByRole("button", { name: "End the walk" }).click();
  for (const version of ["IPv4", "IPv6"]) {
    await page.getByLabel(version, { exact: true }).check();
    await page.getByRole("row", { name: /^hall [\d.]+ [kMG]bit\/s [\d.]+ [kMG]bit\/s .* 1$/ }).waitFor();
  }
  await accessible(page, "walk");
}

async function results(page, context) {
  await goTo(page, "Results");
  await here(page).locator(".item").nth(1).waitFor();
  assert.equal(await here(page).locator(".item").count(), 2);
  await accessible(page, "results");
  for (const box of await here(page).getByRole("checkbox").all()) await box.check();
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("row", { name: /^Down [\d.]+ [kMG]bit\/s/ }).waitFor();
  await accessible(page, "compared");
  await page.getByRole("button", { name: "All results" }).click();
  await here(page).locator(".item button.plain", { hasText: "hall" }).click();
  await page.locator("figure.picture").first().waitFor();
  await accessible(page, "one result");
  await page.getByRole("button", { name: "Share link" }).click();
  const second = await context.newPage();
  await second.goto(await page.locator("input.link").inputValue());
  await second.getByRole("heading", { name: "Shared with you" }).waitFor();
  await accessible(second, "shared");
  await second.close();
}
