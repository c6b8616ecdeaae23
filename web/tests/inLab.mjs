// Drives the page once from wherever it is started, for tests that know what the path did: a block matrix of datagrams, or the quick
// test, stopped before anything fills the path. Prints the record that the page kept, and nothing else.
//
//   node tests/inLab.mjs http://10.77.0.2:14233/ matrix up 777kB 777
//   node tests/inLab.mjs http://10.77.0.2:14233/ streams

import { keptEntries, startChromium } from "./chromium.mjs";

const [url, what, way, total, block] = process.argv.slice(2);
const PATIENCE_MS = 120_000;

const browser = await startChromium();
const page = await browser.newPage();
page.on("console", (message) => process.stderr.write(`${message.text()}\n`));
await page.goto(`${url}${what === "matrix" ? "#matrix" : ""}`);
if (what === "matrix") await matrix();
else await streams();
console.log(JSON.stringify((await keptEntries(page)).at(-1).record));
await browser.close();

async function matrix() {
  await page.getByLabel(way === "up" ? "Up: this device sends" : "Down: the server sends").check();
  await page.getByLabel("TCP", { exact: true }).uncheck();
  await page.getByLabel("TCP_NODELAY").uncheck();
  await page.getByLabel("UDP-like").check();
  await page.getByLabel("One pair").check();
  await page.getByRole("textbox", { name: "Total bytes" }).fill(total);
  await page.getByRole("textbox", { name: "Block size" }).fill(block);
  await page.getByRole("textbox", { name: "Runs" }).fill("1");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.getByRole("button", { name: "Start" }).waitFor({ timeout: PATIENCE_MS });
}

async function streams() {
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.locator(".tile.down.active").waitFor({ timeout: PATIENCE_MS });
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Ended early: what had been measured").waitFor({ timeout: PATIENCE_MS });
}
