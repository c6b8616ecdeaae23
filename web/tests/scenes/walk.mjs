// Walks through a building, with and without a plan of it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { keptEntries } from "../chromium.mjs";
import { PHONE, QUICK_MS, accessible, kept, open, picture } from "../stage.mjs";

export const scenes = {
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
};
