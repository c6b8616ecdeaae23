// Hands files to the person: text, or charts as one picture. One tap is one file: browsers ask before they save several.

import type { Chart } from "../pure/chart";
import { svgOf } from "../pure/svg";

export function saveText(text: string, name: string, type: string): void {
  save(new Blob([text], { type }), name);
}

export function saveSvg(charts: readonly Chart[], name: string): void {
  saveText(svgOf(charts), name, "image/svg+xml");
}

/** Drawn at twice the size, so that it stays sharp in a document. */
export async function savePng(charts: readonly Chart[], name: string): Promise<void> {
  const url = URL.createObjectURL(new Blob([svgOf(charts)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) save(blob, name);
  } finally {
    URL.revokeObjectURL(url);
  }
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
