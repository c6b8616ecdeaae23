// What Lighthouse thinks of the page, as a phone on a slow network and as a desktop: prints the scores and fails below 95.
//
//   npm ci && NETAWARE=path/to/netaware npm run score
//
// In a folder of its own: nothing else needs the hundred megabytes that it brings. Performance is the median of three loads with
// Lighthouse's own throttling, which is computed, so that a busy host lowers it: run it on a quiet one.

import { spawn } from "node:child_process";
import * as chromeLauncher from "chrome-launcher";
import lighthouse from "lighthouse";
import desktop from "lighthouse/core/config/desktop-config.js";

const PORT = 14398;
const ROUNDS = 3;
const WANTED = 95;
const CATEGORIES = ["performance", "accessibility"];

const server = spawn(process.env.NETAWARE ?? "netaware", ["serve", "--port", String(PORT), "-q"], { stdio: ["ignore", "ignore", "inherit"] });
const chrome = await chromeLauncher.launch({
  chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"],
});
try {
  await answers();
  const rows = [];
  for (const [device, config] of [["phone", undefined], ["desktop", desktop]]) rows.push({ device, ...(await medians(config)) });
  console.table(rows);
  const low = rows.filter((row) => CATEGORIES.some((category) => !(row[category] >= WANTED)));
  if (low.length > 0) throw new Error(`below ${WANTED}: ${JSON.stringify(low)}`);
} finally {
  chrome.kill();
  server.kill();
}

async function medians(config) {
  const all = [];
  for (let round = 0; round < ROUNDS; round += 1) all.push(await scores(config));
  return Object.fromEntries(CATEGORIES.map((category) => [category, all.map((each) => each[category]).sort((a, b) => a - b)[ROUNDS >> 1]]));
}

async function scores(config) {
  const { lhr } = await lighthouse(`http://127.0.0.1:${PORT}/`, { port: chrome.port, onlyCategories: CATEGORIES, logLevel: "error" }, config);
  for (const { id, score } of Object.values(lhr.audits)) if (score !== null && score < 0.9) console.log(`  ${id}: ${score}`);
  return Object.fromEntries(CATEGORIES.map((category) => [category, Math.round(100 * lhr.categories[category].score)]));
}

async function answers() {
  for (let tries = 0; tries < 100; tries += 1) {
    if (await fetch(`http://127.0.0.1:${PORT}/`).then((response) => response.ok, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the server did not come up");
}
