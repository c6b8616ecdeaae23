// Block matrices: tables, graphs, what is absurd, and what the page remembers.

import assert from "node:assert/strict";
import { DESKTOP, LEFT_OUT, NETAWARE, PHONE, accessible, keepOnServer, kept, open, picture } from "../stage.mjs";

export const scenes = {
  async "a block matrix of the 17 pairs fills tables and graphs, and absurd wishes are explained"(browser) {
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" }, "#matrix");
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("1kB");
    await page.getByRole("textbox", { name: "Block size" }).fill("20kB");
    await page.getByText("does not fit a total of").waitFor();
    assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
    await accessible(page, "matrix, absurd");
    await picture(page, "matrix-absurd-desktop-light");
    await page.getByLabel("The 17 pairs").check();
    await page.getByLabel("Runs").fill("2");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator("table.wide").first().waitFor({ timeout: 180_000 });
    await accessible(page, "matrix, done");
    await picture(page, "matrix-done-desktop-light");
    await page.setViewportSize(PHONE.viewport);
    // Pictures are laid out for the width that they were drawn at first.
    for (const name of ["Server", "Blocks"]) await page.getByRole("link", { name }).click();
    await picture(page, "matrix-done-phone-light", page.locator("figure.picture").last());
    await page.setViewportSize(DESKTOP.viewport);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    assert.deepEqual(record.versions.map(({ version }) => version), ["IPv4", "IPv6"]);
    for (const version of record.versions) {
      assert.deepEqual(version.matrix.map((each) => each.protocol), ["tcp", "tcp_nodelay"]);
      await tableIsOf(page, version, version.matrix[1]);
      const graph = page.locator("figure.picture", { hasText: `The sender's throughput over block size, ${version.version}` });
      const totals = new Set(version.matrix[0].cells.map((cell) => cell.bytes)).size;
      assert.equal(await graph.locator("polyline[class*=tone]").count(), 2 * totals, "a line for each total of each protocol");
      for (const matrix of version.matrix) {
        assert.equal(matrix.cells.length, 17);
        for (const cell of matrix.cells) {
          assert.equal(cell.runs.length, 2);
          for (const run of cell.runs) {
            assert.deepEqual([run.outcome, run.client.bytes, run.server.bytes, run.lost], ["complete", cell.bytes, cell.bytes, 0]);
          }
        }
      }
    }
    await page.getByLabel("Up: this device sends").check();
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("100kB");
    await page.getByRole("textbox", { name: "Block size" }).fill("1kB");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Start" }).waitFor({ timeout: 60_000 });
    const [up] = await kept(page);
    const runs = up.versions.flatMap((version) => version.matrix).flatMap((matrix) => matrix.cells[0].runs);
    assert.equal(runs.length, 2 * 2 * 2, "two runs of both protocols over both versions");
    for (const run of runs) {
      assert.deepEqual([run.client.calls, run.client.bytes, run.server.bytes], [100, 100_000, 100_000]);
    }
    await keepOnServer(page, up);
    quiet();
    await context.close();
  },

  async "blocks travel as datagrams, which have a bound that is explained at the field"(browser) {
    if (!NETAWARE) return LEFT_OUT;
    const { page, context, quiet } = await open(browser, { ...DESKTOP, colorScheme: "light" }, "#matrix");
    await page.getByLabel("UDP-like").check();
    await page.getByLabel("One pair").check();
    await page.getByRole("textbox", { name: "Total bytes" }).fill("100kB");
    await page.getByRole("textbox", { name: "Block size" }).fill("2kB");
    await page.getByText("A datagram of a data channel carries at most").waitFor();
    await page.getByRole("textbox", { name: "Block size" }).fill("20");
    await page.getByText("needs 24 B for its number and time").waitFor();
    assert.ok(await page.getByRole("button", { name: "Start" }).isDisabled());
    await accessible(page, "matrix, absurd datagrams");
    for (const way of ["Up: this device sends", "Down: the server sends"]) {
      await page.getByLabel(way).check();
      await page.getByRole("textbox", { name: "Block size" }).fill("1kB");
      await page.getByRole("button", { name: "Start" }).click();
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await page.getByRole("button", { name: "Start" }).waitFor({ timeout: 60_000 });
      const [record] = await kept(page);
      assert.equal(record.outcome, "complete");
      assert.deepEqual(record.versions.map(({ version }) => version), ["IPv4", "IPv6"]);
      for (const version of record.versions) {
        assert.deepEqual(version.matrix.map((each) => each.protocol), ["tcp", "tcp_nodelay", "udp"]);
        assert.equal(version.matrix[2].cells[0].runs.length, 3);
        for (const run of version.matrix[2].cells[0].runs) {
          const [sent, received] = way.startsWith("Up") ? [run.client, run.server] : [run.server, run.client];
          assert.deepEqual([run.outcome, sent.bytes, sent.bytes - received.bytes], ["complete", 100_000, run.lost], JSON.stringify(run));
        }
      }
      await page.getByText("UDP-like (WebRTC data channel), IPv4").waitFor();
      await accessible(page, "matrix of datagrams");
      await keepOnServer(page, record);
    }
    await page.getByLabel("The 17 pairs").check();
    await page.getByRole("textbox", { name: "Runs" }).fill("1");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Start" }).waitFor({ timeout: 120_000 });
    const [sweep] = await kept(page);
    assert.equal(sweep.versions.length, 2);
    for (const version of sweep.versions) assert.deepEqual(version.matrix.map((each) => each.cells.length), [17, 17, 12]);
    quiet();
    await context.close();
  },

  async "what was set is there again when the page is opened again"(browser) {
    const { page, context, quiet } = await open(browser, { ...PHONE, colorScheme: "dark" }, "#matrix");
    await page.getByLabel("Up: this device sends").check();
    await page.getByLabel("TCP", { exact: true }).uncheck();
    await page.getByLabel("One pair").check();
    const texts = { "Total bytes": "64KiB", "Block size": "500", Runs: "7" };
    for (const [name, text] of Object.entries(texts)) await page.getByRole("textbox", { name }).fill(text);
    await page.getByRole("link", { name: "Walk" }).click();
    await page.getByLabel("Where are you?").fill("hall A");
    await page.getByRole("button", { name: "Here", exact: true }).click();
    await page.reload();
    await page.getByRole("button", { name: "hall A" }).waitFor();
    await page.getByRole("link", { name: "Blocks" }).click();
    assert.ok(await page.getByLabel("Up: this device sends").isChecked());
    assert.ok(await page.getByLabel("One pair").isChecked());
    assert.ok(!(await page.getByLabel("TCP", { exact: true }).isChecked()));
    for (const [name, text] of Object.entries(texts)) assert.equal(await page.getByRole("textbox", { name }).inputValue(), text);
    quiet();
    await context.close();
  },
};

/** The table shows what both ends measured of blocks that the server sent: a receiver to whom all came at once has a dash. */
async function tableIsOf(page, { version }, { protocol, cells }) {
  const table = page.getByRole("table", { name: new RegExp(`^${protocol.toUpperCase()}, ${version}`) });
  const rows = await table.locator("tbody tr").all();
  assert.equal(rows.length, cells.length);
  const [time, rate] = [String.raw`[\d.]+ (ns|us|ms|s)`, String.raw`[\d.]+ [kMG]?bit/s`];
  for (const [n, cell] of cells.entries()) {
    const [, deviceTime, deviceRate, writes, serverTime, serverRate, , received, lost] = await rows[n].locator("td").allTextContents();
    for (const [shown, like] of [[serverTime, time], [serverRate, rate]]) assert.match(shown, new RegExp(`^${like}`));
    for (const [shown, like] of [[deviceTime, time], [deviceRate, rate]]) assert.match(shown, new RegExp(`^(${like}|–$)`));
    const counted = Math.ceil(cell.bytes / cell.block).toLocaleString("en-GB");
    assert.deepEqual([writes, received, lost], [counted, cell.bytes.toLocaleString("en-GB"), "0"]);
  }
}
