// Walks through a building, with and without a plan of it.

import assert from "node:assert/strict";
import { keptEntries } from "../chromium.mjs";
import { PHONE, QUICK_MS, accessible, kept, open, picture } from "../stage.mjs";

export const scenes = {
  async "a walk compares its places"(browser) {
    await compares(browser, "once");
  },

  async "a place of a walk that is visited twice has a spread"(browser) {
    await compares(browser, "twice");
  },

  async "a picture of the floor is tapped on, kept, and refused where it is none"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "#walk");
    await page.getByText("Floor plan", { exact: true }).click();
    const chooser = page.locator("input[type=file]");
    await chooser.setInputFiles({ name: "plan.png", mimeType: "image/png", buffer: Buffer.from("no picture") });
    await page.getByText("That is no picture").waitFor();
    await chooser.setInputFiles({ name: "plan.png", mimeType: "image/png", buffer: await drawnPlan(page) });
    const plan = page.getByAltText(/Floor plan/);
    await plan.waitFor();
    const box = await plan.boundingBox();
    await page.mouse.click(box.x + box.width * 0.25, box.y + box.height * 0.75);
    // Whoever has no pointer moves the spot by keys.
    await page.getByRole("button", { name: /Floor plan/ }).focus();
    for (const key of ["ArrowRight", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    await page.getByLabel("Where are you?").fill("stairs");
    await page.getByRole("button", { name: "Here", exact: true }).click();
    await page.getByLabel("Seconds from one").fill("60");
    await page.getByRole("button", { name: "Start the walk" }).click();
    await page.getByText("1 measurement", { exact: true }).waitFor({ timeout: QUICK_MS });
    await page.getByRole("button", { name: "End the walk" }).click();
    await page.getByLabel("Measured at stairs").or(page.getByTitle("Measured at stairs")).or(page.getByText("Measured at stairs")).first().waitFor({ state: "attached" });
    await accessible(page, "walk with a plan");
    await picture(page, "walk-plan-phone-light");
    const spots = (await keptEntries(page)).map((entry) => entry.spot);
    assert.ok(spots.length === 1 && Math.abs(spots[0][0] - 0.35) < 0.02 && Math.abs(spots[0][1] - 0.75) < 0.02, JSON.stringify(spots));
    await page.reload();
    await page.getByAltText(/Floor plan/).waitFor();
    quiet();
    await context.close();
  },
};

/** Two halls, the first one visited once or twice. */
async function compares(browser, visits) {
  const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "light" }, "#walk");
  await accessible(page, "walk, empty");
  await page.getByLabel("Where are you?").fill("hall A");
  await page.getByRole("button", { name: "Here", exact: true }).click();
  // Longer than a test takes: the place is named before the next one begins.
  await page.getByLabel("Seconds from one").fill("35");
  await page.getByRole("button", { name: "Start the walk" }).click();
  await page.getByText("1 measurement", { exact: true }).waitFor({ timeout: QUICK_MS });
  await page.getByLabel("Where are you?").fill("hall B");
  await page.getByRole("button", { name: "Here", exact: true }).click();
  await page.getByText("2 measurements").waitFor({ timeout: QUICK_MS });
  if (visits === "twice") {
    await page.getByRole("button", { name: "hall A" }).click();
    await page.getByText("3 measurements").waitFor({ timeout: QUICK_MS });
  }
  await page.getByRole("button", { name: "End the walk" }).click();
  await accessible(page, "walk, done");
  await picture(page, "walk-phone-light", page.locator("figure.picture").nth(1));
  for (const version of ["IPv4", "IPv6"]) {
    await page.getByLabel(version, { exact: true }).check();
    await placesHaveFigures(page, visits);
  }
  await page.reload();
  await page.getByRole("button", { name: visits === "twice" ? /3 measurements/ : /2 measurements/ }).click();
  assert.deepEqual(await page.locator("main table tbody th").allTextContents(), ["hall A", "hall B"]);
  quiet();
  await context.close();
}

/** One or two visits of hall A, one of hall B: figures of each, a spread where there are two, and a picture of each figure. */
async function placesHaveFigures(page, visits) {
  const ofA = visits === "twice" ? 2 : 1;
  const rows = await Promise.all((await page.locator("main table tbody tr").all()).map((row) => row.locator("th, td").allTextContents()));
  assert.deepEqual(rows.map(([place]) => place), ["hall A", "hall B"]);
  assert.deepEqual(rows.map((cells) => cells.at(-1)), [String(ofA), "1"], "times");
  const figure = String.raw`^[\d.]+ ([kMG]bit/s|us|ms|s)`;
  assert.deepEqual(rows.map((cells) => cells.length), [6, 6], "place, four figures, times");
  const ofFirst = ofA > 1 ? `${figure}.+ to .+$` : `${figure}$`;
  for (const cell of rows[0].slice(1, -1)) assert.match(cell, new RegExp(ofFirst));
  for (const cell of rows[1].slice(1, -1)) assert.match(cell, new RegExp(`${figure}$`));
  for (const what of ["Down", "Up", "Round trip", "Round trip under load"]) {
    const picture = page.locator("figure.picture", { has: page.getByText(`${what} by place`, { exact: true }) });
    assert.ok((await picture.locator(".dot").count()) >= ofA + 1, `${what}: a dot for each visit`);
  }
}

/** Three halls and a corridor, as PNG. */
async function drawnPlan(page) {
  const base64 = await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(640, 400);
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, 640, 400);
    pen.lineWidth = 5;
    pen.font = "28px sans-serif";
    pen.fillStyle = "#345";
    for (const [name, ...box] of [["hall A", 20, 20, 200, 220], ["hall B", 220, 20, 200, 220], ["hall C", 420, 20, 200, 220], ["corridor", 20, 240, 600, 140]]) {
      pen.strokeRect(...box);
      pen.fillText(name, box[0] + 16, box[1] + 40);
    }
    const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
    return btoa(String.fromCharCode(...bytes));
  });
  return Buffer.from(base64, "base64");
}
