// The big dial: three quarters of a circle, logarithmic, because a phone meets 1 and 1000 Mbit/s on the same day.

import type { Phase } from "../measure/messages";
import { splitRate, splitShare, splitTrip } from "../pure/units";

interface DialProps {
  phase: Phase | undefined;
  value: number | undefined;
  caption: string;
  /** Of the clock, ns; 0 while it is not known. */
  clockStep: number;
}

export function Dial({ phase, value, caption, clockStep }: DialProps) {
  const range = phase === "latency" ? LATENCY : phase === "loss" ? LOSS : RATE;
  const share = value === undefined || value <= 0 ? 0 : shareOf(value, range);
  const [figure, unit] = value === undefined ? ["–", ""] : phase === "latency" ? splitTrip(value, clockStep) : phase === "loss" ? splitShare(value) : splitRate(value);
  return (
    <svg class="dial" viewBox="0 0 260 206" role="img" aria-label={`${caption}: ${figure} ${unit}`}>
      <path class="dial-track" d={arc(0, 1)} />
      {share > 0.004 && <path class={`dial-fill ${phase ?? ""}`} d={arc(0, share)} />}
      {range.marks.map(([at, text]) => {
        const [x, y] = onCircle(shareOf(at, range), RADIUS - 24);
        return (
          <text key={text} class="dial-mark" x={x} y={y + 4} text-anchor="middle">
            {text}
          </text>
        );
      })}
      <text class="dial-figure" x="130" y="128" text-anchor="middle">
        {figure}
      </text>
      <text class="dial-unit" x="130" y="152" text-anchor="middle">
        {unit}
      </text>
      <text class="dial-caption" x="130" y="196" text-anchor="middle">
        {caption}
      </text>
    </svg>
  );
}

interface Range {
  low: number;
  high: number;
  marks: [number, string][];
}

const RATE: Range = { low: 1e5, high: 1e10, marks: [[1e6, "1M"], [1e7, "10M"], [1e8, "100M"], [1e9, "1G"]] };
const LOSS: Range = { low: 1e-4, high: 1, marks: [[1e-3, "0.1 %"], [1e-2, "1"], [1e-1, "10"]] };
const LATENCY: Range = { low: 1e5, high: 1e9, marks: [[1e6, "1 ms"], [1e7, "10"], [1e8, "100"]] };

function shareOf(value: number, range: Range): number {
  const share = Math.log(value / range.low) / Math.log(range.high / range.low);
  return Math.min(1, Math.max(0, share));
}

const RADIUS = 96;

function onCircle(share: number, radius: number): [number, number] {
  const angle = ((135 + 270 * share) * Math.PI) / 180;
  return [130 + radius * Math.cos(angle), 112 + radius * Math.sin(angle)];
}

function arc(from: number, to: number): string {
  const [[x1, y1], [x2, y2]] = [onCircle(from, RADIUS), onCircle(to, RADIUS)];
  return `M${x1.toFixed(2)} ${y1.toFixed(2)}A${RADIUS} ${RADIUS} 0 ${(to - from) * 270 > 180 ? 1 : 0} 1 ${x2.toFixed(2)} ${y2.toFixed(2)}`;
}
