// A real browser uses the page against a real server, as a person would: phone and desktop, light and dark, both IP versions.
//
// With NETAWARE=path/to/netaware the program itself serves; without it the stand-in mock.mjs does, and scenes that need the program say
// so. SHOTS=folder keeps pictures.
// Whatever appears in the console is a failure, and so is every violation that axe finds.
//
//   node tests/browser.mjs                the scenes of the gate, four at a time; with SCENES=all every scene
//   node tests/browser.mjs "walk|TLS"     those whose claim has one of these words, one after the other

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { startChromium } from "./chromium.mjs";
import { scenes as faults } from "./scenes/faults.mjs";
import { scenes as journeys } from "./scenes/journeys.mjs";
import { scenes as matrix } from "./scenes/matrix.mjs";
import { scenes as quick } from "./scenes/quick.mjs";
import { scenes as results } from "./scenes/results.mjs";
import { scenes as server } from "./scenes/server.mjs";
import { scenes as walk } from "./scenes/walk.mjs";
import { noServerPanicked, serve } from "./stage.mjs";

/** Those that take longest first, so that the lanes end together. */
const scenes = { ...journeys, ...walk, ...results, ...faults, ...matrix, ...quick, ...server };
/** Scenes of minutes whose claims others hold as well: with SCENES=all only, which nightly sets. */
const OTHER_DEVICES = ["desktop that came over IPv4, light", "phone that came over IPv4, dark", "phone that came over IPv6, light"];
const NIGHTLY = [
  ...Object.keys(scenes).filter((claim) => OTHER_DEVICES.some((device) => claim.endsWith(device))),
  "a place of a walk that is visited twice has a spread",
];
/** Processes at a time. More than half of a scene is waiting, so there are twice as many as the two cores of the machine that CI has. */
const LANES = 4;
/** Of a scene of the gate, and of one that only nightly runs. On two quiet cores none of the gate takes a minute. */
const LONGEST_MS = process.env.SCENES === "all" ? 300_000 : 120_000;

/** What a scene comes to, or a failure when it takes longer than any of them should. */
function inTime(scene) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${LONGEST_MS / 1000} s`)), LONGEST_MS);
  });
  return Promise.race([scene, late]).finally(() => clearTimeout(timer));
}

/** Runs the scenes that `claims` yields, with a server and a browser of their own; how many failed. */
async function run(claims) {
  let child = await serve();
  const server = {
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await gone;
    },
    async start(more, origin) {
      child = await serve(more, origin);
      return child;
    },
    signal(name) {
      child.kill(name);
    },
  };
  let browser = await startChromium();
  let failed = 0;
  for await (const claim of claims) {
    const began = performance.now();
    const took = () => `${((performance.now() - began) / 1000).toFixed(0)} s`;
    try {
      const remark = await inTime(scenes[claim](browser, server));
      noServerPanicked();
      console.log(`ok      ${claim} (${took()})${remark ? `, ${remark}` : ""}`);
      process.send?.({ claim, took: (performance.now() - began) / 1000 });
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${claim} (${took()})\n${error?.stack ?? error}`);
      // Whatever it left behind is no matter of the next one's.
      await browser.close();
      await server.stop();
      await server.start();
      browser = await startChromium();
    }
  }
  await browser.close();
  await server.stop();
  return failed;
}

/** Processes that take the next scene when they have done one; how many of them saw one fail. */
async function inLanes() {
  const left = Object.keys(scenes).filter((claim) => process.env.SCENES === "all" || !NIGHTLY.includes(claim));
  let longest = { claim: "none", took: 0 };
  const ends = Array.from({ length: LANES }, (_, n) => {
    const lane = fork(fileURLToPath(import.meta.url), { env: { ...process.env, LANE: String(n) } });
    lane.on("message", (message) => {
      if (message === "next") lane.send({ claim: left.shift() });
      else if (message.took > longest.took) longest = message;
    });
    return new Promise((resolve) => lane.once("exit", (code) => resolve(code === 0 ? 0 : 1)));
  });
  const failed = (await Promise.all(ends)).reduce((sum, one) => sum + one, 0);
  console.log(`longest scene: ${longest.claim}, ${longest.took.toFixed(0)} s`);
  return failed;
}

async function* handedOut() {
  process.once("disconnect", () => process.exit(1));
  for (;;) {
    const answer = new Promise((resolve) => process.once("message", resolve));
    process.send("next");
    const { claim } = await answer;
    if (claim === undefined) return;
    yield claim;
  }
}

function chosen(words) {
  return Object.keys(scenes).filter((claim) => words.split("|").some((part) => claim.includes(part)));
}

const words = process.argv[2];
const failed = process.send ? await run(handedOut()) : words ? await run(chosen(words)) : await inLanes();
process.exit(failed === 0 ? 0 : 1);
