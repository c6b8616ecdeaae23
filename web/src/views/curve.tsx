// The live curve below the dial. uPlot draws on a canvas, so new points cost nothing worth naming while a transfer runs.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { splitRate, splitSpan } from "../pure/units";
import { S } from "../strings";
import type { Live } from "../store/live";

export function Curve({ curve }: { curve: Live["curve"] }) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latency = curve.phase === "latency" || curve.phase === "loss";
  useEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    plot.current = new uPlot(optionsFor(element, latency), [[], []], element);
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current?.destroy();
    };
  }, [latency]);
  useEffect(() => plot.current?.setData([curve.x, curve.y]), [curve.x.length, latency]);
  return <div class="curve" ref={holder} role="img" aria-label={S.quick.chart(S.phases[curve.phase], curve.version)} />;
}

function optionsFor(element: HTMLElement, latency: boolean): uPlot.Options {
  const colour = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
  const [line, grid, ink] = [colour(latency ? "--latency" : "--accent"), colour("--line"), colour("--muted")];
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const show = (value: number) => (latency ? splitSpan(value) : splitRate(value)).join(" ");
  return {
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { time: false }, y: { range: (_plot, _least, most) => [0, (most || 1) * 1.1] } },
    axes: [
      { ...axis, size: 22, values: (_plot, values) => values.map((value) => `${value} s`) },
      { ...axis, size: 74, space: 34, values: (_plot, values) => values.map(show) },
    ],
    series: [{}, { stroke: line, width: 2, fill: `${line}22`, points: { show: false } }],
  };
}

const HEIGHT = 132;
