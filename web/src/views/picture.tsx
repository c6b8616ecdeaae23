// Draws the shapes of a chart with the style sheet's colours, so that it follows light and dark.

import { useEffect, useState } from "preact/hooks";
import { extraHeight, layOut, type Chart, type Shape, type Tone } from "../pure/chart";
import { S } from "../strings";

export function Picture({ chart, ratio = 0.68 }: { chart: Chart; ratio?: number }) {
  const roomy = useMedia("(min-width: 60rem)");
  const width = roomy ? 760 : 340;
  const height = Math.round(width * (roomy ? ratio * 0.6 : ratio)) + extraHeight(chart);
  const { shapes } = layOut(chart, width, height);
  return (
    <figure class="picture">
      <figcaption>{chart.title}</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${chart.title}. ${S.charts.asTable}`}>
        {shapes.map((shape, n) => (
          <Drawn key={n} shape={shape} />
        ))}
      </svg>
    </figure>
  );
}

/** Whether the window is like this, also after it was turned or its size changed. */
function useMedia(query: string): boolean {
  const [matches, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const follow = () => set(media.matches);
    media.addEventListener("change", follow);
    follow();
    return () => media.removeEventListener("change", follow);
  }, [query]);
  return matches;
}

function Drawn({ shape }: { shape: Shape }) {
  if (shape.is === "line") return <polyline class={`line ${toneClass(shape.tone)}`} points={shape.points.map((point) => point.join(",")).join(" ")} />;
  if (shape.is === "dot") return <circle class={`dot ${toneClass(shape.tone)}`} cx={shape.at[0]} cy={shape.at[1]} r={shape.r} />;
  if (shape.is === "bar") {
    return <rect class={`dot ${toneClass(shape.tone)}`} x={shape.at[0]} y={shape.at[1]} width={shape.size[0]} height={shape.size[1]} />;
  }
  return (
    <text class={shape.strong ? "strong" : ""} x={shape.at[0]} y={shape.at[1]} text-anchor={shape.anchor}>
      {shape.text}
    </text>
  );
}

function toneClass(tone: Tone): string {
  return typeof tone === "number" ? `tone${tone % 6}${tone >= 6 ? " again" : ""}` : tone;
}
