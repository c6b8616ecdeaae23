// Uses the collector's page as its owner does: gives the token, changes a task, adds one, makes mistakes, ends one. Prints what the
// page said to each step and what its table of tasks showed then, and nothing else.
//
//   node tests/collector.mjs http://127.0.0.1:14234/ sesame

import { startChromium } from "./chromium.mjs";

const [url, token] = process.argv.slice(2);
const browser = await startChromium();
const page = await browser.newPage();
page.on("console", (message) => process.stderr.write(`${message.text()}\n`));
await page.goto(url);
await page.getByLabel("Token").fill(token);
await page.getByRole("button", { name: "Show" }).click();
await page.locator("body[data-shown=yes]").waitFor();

const name = page.getByLabel("Name"), text = page.getByLabel("As JSON");
const said = {};

/** Presses a button, waits for the page's word, and keeps it with the tasks of the table. */
async function step(called, button) {
  const output = page.locator("#task-said");
  await output.evaluate((it) => { it.textContent = ""; });
  await page.getByRole("button", { name: button }).click();
  await page.locator("#task-said:not(:empty)").waitFor();
  const answer = await output.textContent();
  await page.evaluate(() => show());
  const tasks = await page.locator("#tasks tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  said[called] = { answer, tasks };
}

await page.locator("#tasks tbody tr", { hasText: "digest" }).click();
said.opened = { name: await name.inputValue(), task: JSON.parse(await text.inputValue()) };
await text.fill(JSON.stringify({ ...said.opened.task, filter: "udp port 5004" }));
await step("changed", "Put to work");
await name.fill("count");
await text.fill('{"kind": "volume", "on": ["a"], "by": ["source"]}');
await step("added", "Put to work");
await text.fill('{"kind": "volume", "on": ["nobody"], "by": ["source"]}');
await step("refused", "Put to work");
await text.fill('{"kind": ');
await step("broken", "Put to work");
await step("ended", "End it");
console.log(JSON.stringify(said));
await browser.close();
