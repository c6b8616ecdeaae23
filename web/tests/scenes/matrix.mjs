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
    await picture(page, "matrix-done-phone-light");
    await page.setViewportSize(DESKTOP.viewport);
    const [record] = await kept(page);
    assert.equal(record.outcome, "complete");
    for (const version of record.versions) {
      assert.deepEqual(version.matrix.map((each) => each.protocol), ["tcp", "tcp_nodelay"]);
      for (const matrix of version.matrix) {
        assert.equal(matrix.cells.length, 17);
        for (const cell of matrix.cells) {
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
    for (const run of up.versions.flatMap((version) => version.matrix).flatMap((matrix) => matrix.cells[0].runs)) {
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
      for (const version of record.versions) {
        assert.deepEqual(version.matrix.map((each) => each.protocol), ["tcp", "tcp_nodelay", "udp"]);
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
    for (const version of sweep.versions) assert.deepEqual(version.matrix.map((each) => each.cells.length), [17, 17, 12]);
    quiet();
    await context.close();
  },
};
