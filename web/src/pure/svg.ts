// Charts as one file, below each other: the shapes of chart.ts with colours of their own. Every text is escaped, so a label stays a label.

import { extraHeight, layOut, type Chart, type Shape, type Tone } from "./chart";

export function svgOf(charts: readonly Chart[], width = 720, height = 400): string {
  const tall = Math.max(0, ...charts.map(extraHeight)) + height;
  const each = tall + TITLE;
  const whole = each * charts.length;
  const title = charts.map((chart) => chart.title).join(", ");
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${whole}" width="${width}" height="${whole}"` +
    ` font-family="system-ui, sans-serif" font-size="12"><title>${escaped(title)}</title>` +
    `<rect width="100%" height="100%" fill="#ffffff"/>` +
    charts.map((chart, n) => `<g transform="translate(0 ${n * each})">${pictureOf(chart, width, tall)}</g>`).join("") +
    "</svg>"
  );
}

function pictureOf(chart: Chart, width: number, height: number): string {
  const heading = `<text x="8" y="20" font-size="15" font-weight="600" fill="${INK}">${escaped(chart.title)}</text>`;
  return `${heading}<g transform="translate(0 ${TITLE})">${layOut(chart, width, height).shapes.map(shapeOf).join("")}</g>`;
}

export function escaped(text: string): string {
  return [...text]
    .filter((letter) => letter >= " ")
    .join("")
    .replace(/[<>&"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

function shapeOf(shape: Shape): string {
  if (shape.is === "line") {
    const points = shape.points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    return `<polyline points="${points}" fill="none" stroke="${colour(shape.tone)}" stroke-width="${typeof shape.tone === "number" ? 2 : 1}"${dashes(shape.tone)}/>`;
  }
  if (shape.is === "dot") return `<circle cx="${shape.at[0].toFixed(1)}" cy="${shape.at[1].toFixed(1)}" r="${shape.r}" fill="${colour(shape.tone)}"/>`;
  if (shape.is === "bar") {
    const [[x, y], [w, h]] = [shape.at, shape.size];
    return `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" fill="${colour(shape.tone)}"/>`;
  }
  const weight = shape.strong ? ' font-weight="600"' : "";
  return `<text x="${shape.at[0].toFixed(1)}" y="${shape.at[1].toFixed(1)}" text-anchor="${shape.anchor}" fill="${INK}"${weight}>${escaped(shape.text)}</text>`;
}

function dashes(tone: Tone): string {
  return typeof tone === "number" && tone >= TONES.length ? ' stroke-dasharray="6 4"' : "";
}

function colour(tone: Tone): string {
  if (tone === "grid") return "#dde4e9";
  if (tone === "axis") return "#7b8b97";
  return TONES[tone % TONES.length]!;
}

const TITLE = 30;
const INK = "#14202b";
/** Told apart by the colour-blind as well (after Okabe and Ito). */
const TONES = ["#0b7a6b", "#6a4fc9", "#c2570c", "#0a6fb3", "#a8336f", "#6b6f12"];
