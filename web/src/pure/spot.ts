// A spot on a floor plan, as shares of its width and height, and how keys move it.

export type Spot = [number, number];

/** Where a person begins who has not pointed anywhere yet. */
export const MIDDLE: Spot = [0.5, 0.5];

/** By an arrow key, in small steps with Shift; undefined for any other key. */
export function movedBy(key: string, { shiftKey }: { shiftKey: boolean }, [x, y]: Spot): Spot | undefined {
  const way = ARROWS.get(key);
  if (!way) return undefined;
  const step = shiftKey ? FINE : COARSE;
  return [within(x + way[0] * step), within(y + way[1] * step)];
}

function within(share: number): number {
  return Math.round(Math.min(1, Math.max(0, share)) * 1000) / 1000;
}

const ARROWS = new Map<string, Spot>([["ArrowLeft", [-1, 0]], ["ArrowRight", [1, 0]], ["ArrowUp", [0, -1]], ["ArrowDown", [0, 1]]]);
/** A room of a hall has this size on most plans. */
const COARSE = 0.05;
const FINE = 0.01;
