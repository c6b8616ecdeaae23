// The page in Firefox: does a quick test and a small block matrix come to their end there, with datagrams and a quiet console?
//
// Not part of CI, which has Chromium alone: `NETAWARE=path/to/netaware npm run firefox`, with firefox or firefox-esr installed.
// Firefox is driven by WebDriver BiDi; the browser that Playwright patches for itself is none that people have.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import puppeteer from "puppeteer-core";
import { ORIGIN, QUICK_MS, rest, serve } from "./stage.mjs";

/** Helpers that hang do so now and then. */
const TESTS = Number(process.env.TESTS ?? 3);
const PLACES = [process.env.FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"];
/** This host's addresses may be of different kinds: then Firefox would ask a person before it goes from one to the other. */
const PREFERENCES = { "network.lna.enabled": false, "network.lna.blocking": false };

const server = await serve();
const executablePath = PLACES.find((place) => place && existsSync(place));
assert.ok(executablePath, "there is no Firefox; name it with FIREFOX=path");
// Firefox has no data channels over loopback.
const origin = server.printed.match(/http:\S+(?=\/)/)?.[0] ?? ORIGIN;
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true, protocol: "webDriverBiDi", extraPrefsFirefox: PREFERENCES });
const page = await browser.newPage();
const said = [];
page.on("console", (message) => said.push(message.text()));
page.on("pageerror", (error) => said.push(error.message));

const has = (name) => page.evaluate((text) => [...document.querySelectorAll("button")].some((each) => each.textContent.trim() === text), name);
const press = (name) => page.evaluate((text) => [...document.querySelectorAll("button")].find((each) => each.textContent.trim() === text).click(), name);

async function until(look, what) {
  for (const end = performance.now() + QUICK_MS; performance.now() < end; await rest(200)) if (await look()) return;
  throw new Error(`${what} did not come about:\n${await page.evaluate(() => document.querySelector("main").innerText)}`);
}

try {
  await page.setViewport({ width: 360, height: 740 });
  await page.goto(`${origin}/`);
  for (let test = 1; test <= TESTS; test += 1) {
    const [start, again] = test === 1 ? ["Start", "Again"] : ["Again", "Again"];
    await until(() => has(start), start);
    await press(start);
    await until(() => has("Stop"), "a test");
    await until(() => has(again), "its end");
    const tiles = await page.evaluate(() => [...document.querySelectorAll(".tile")].map((tile) => tile.innerText.replaceAll("\n", " ")));
    console.log(`quick test ${test}: ${tiles.join("; ")}`);
    assert.ok(!tiles.some((tile) => tile.includes("–")), "every figure of both versions is there");
    assert.ok(!tiles.some((tile) => /\b0 ns\b/.test(tile)), "no round trip takes no time");
  }
  await page.goto(`${origin}/#matrix`);
  await until(() => has("Start"), "the matrix");
  await page.evaluate(() => [...document.querySelectorAll("label")].find((each) => each.textContent.trim() === "One pair").click());
  await press("Start");
  await until(() => has("Stop"), "its run");
  await until(() => has("Start"), "its end");
  const rows = await page.evaluate(() => document.querySelectorAll("table tbody tr").length);
  assert.ok(rows > 0, "rows of the matrix");
  console.log(`matrix: ${rows} rows`);
  assert.deepEqual(said, [], "nothing in the console");
} finally {
  await browser.close();
  server.kill();
}
