// One bundle with plain file names: the server embeds it, so nothing is gained by names that change with the content, and a
// committed bundle stays readable in a diff. What must notice a change is the service worker: its cache is named after a
// digest of everything else that was built, so equal sources give equal bytes.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

function nameTheCache(): Plugin {
  return {
    name: "name-the-cache",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      const digest = createHash("sha256");
      for (const name of readdirSync("public").sort()) digest.update(name).update(readFileSync(`public/${name}`));
      for (const name of Object.keys(bundle).sort()) {
        const file = bundle[name];
        if (!file || name === "sw.js") continue;
        digest.update(name).update(file.type === "chunk" ? file.code : file.source);
      }
      const worker = bundle["sw.js"];
      if (worker?.type !== "chunk") throw new Error("the service worker was not built");
      worker.code = worker.code.replace("__BUNDLE__", digest.digest("hex").slice(0, 12));
    },
  };
}

const plainNames = {
  entryFileNames: "[name].js",
  chunkFileNames: "[name].js",
  assetFileNames: "[name][extname]",
};

export default defineConfig({
  base: "./",
  plugins: [nameTheCache()],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      input: { app: "index.html", sw: "src/sw.ts" },
      output: plainNames,
    },
  },
  worker: { format: "es", rollupOptions: { output: plainNames } },
});
