// The Chromium in which tests and benchmarks use the page, and what the page has kept there.

import { chromium } from "playwright-core";

/** The browser at CHROMIUM, else that of the system. `more` are flags of the caller's. */
export function startChromium(more = []) {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...more] });
}

/** Entries as web/src/store/database.ts keeps them, in the order of their ids, which is not that of time. */
export function keptEntries(page) {
  return page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open("netaware");
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const asked = opening.result.transaction("results").objectStore("results").getAll();
          asked.onsuccess = () => resolve(asked.result);
        };
      }),
  );
}

/** A flag for servers with a certificate of their own: a context that ignores what is wrong with one does not do so for workers. */
export const ANY_CERTIFICATE = "--ignore-certificate-errors";

/** Root starts it, on hosts without a screen, and nothing that it fetches for itself may share the path with a measurement. */
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
