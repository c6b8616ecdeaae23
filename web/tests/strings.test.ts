import { expect, test } from "vitest";
import { S, T } from "../src/strings";

const sources = import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

/** Without comments. */
function codeOf(name: string): string {
  return sources[name]!.replace(/(^|[^\w])\/\*[\s\S]*?\*\//g, "$1").replace(/(^|[^:"'`\w])\/\/.*$/gm, "$1");
}

const others = Object.keys(sources).filter((name) => !name.endsWith("/strings.ts"));

/** Words for programs, names of classes and shapes: nobody reads them. */
const NO_TEXTS: readonly RegExp[] = [
  /^(slow start over|never ended)$/, // rules of the schema
  /^web page$/, // an option of the schema
  /^larger than any record$/, // caught where it is thrown
  /^[omca]=/, // SDP
  /^11px system-ui$/,
  /^</, // SVG
  /^ font-family=/,
];

/** Sentences in quotes, and words between tags. */
function textsOf(code: string): string[] {
  const filled = code.replace(/\$\{[^{}]*\}/g, "…").replace(/\bclass=(?:"[^"]*"|\{[^{}]*\})/g, 'class=""');
  const quoted = [...filled.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map((match) => match[1] ?? match[2]!);
  const sentences = quoted.filter((text) => /[A-Za-z]{2,}[,:;]? (… )?[A-Za-z]{2,}/.test(text));
  const markup = [...filled.matchAll(/[\w"/}]>\s*([^<>{}=;()|&]*[A-Za-z][^<>{}=;()|&]*)\s*(?:<\/|\{)/g)].map((match) => match[1]!.trim());
  return [...sentences, ...markup].filter((text) => !NO_TEXTS.some((each) => each.test(text)));
}

test("texts that people read stand in strings.ts alone", () => {
  expect(textsOf('<p class="card quiet">Good day</p> <small>p95 {x}</small> throw new Error(`no ${what} came`)')).toEqual(["no … came", "Good day", "p95"]);
  expect(others.flatMap((name) => textsOf(codeOf(name)).map((text) => `${name}: ${text}`))).toEqual([]);
});

test("every text is used", () => {
  const all = others.map(codeOf).join("\n");
  const unused = [S, T].flatMap((texts) =>
    Object.entries(texts).flatMap(([group, own]) => (typeof own === "string" ? [] : Object.keys(own)).filter((name) => !used(all, group, name))),
  );
  expect(unused).toEqual([]);
});

/** By its name, or by one that stands in a variable. */
function used(all: string, group: string, name: string): boolean {
  const escaped = name.replace(/[^\w]/g, "\\$&");
  return new RegExp(`\\.${escaped}\\b|\\{ ${escaped} \\} = [ST]\\.`).test(all) || new RegExp(`[ST]\\.${group}\\[`).test(all);
}
