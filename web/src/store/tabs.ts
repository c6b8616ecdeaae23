// Two tabs that measure at once halve each other's figures. A tab that wants to measure asks the others of the same address first.

const channel = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("netaware");
let measuring = false;
let heard: (() => void) | undefined;

if (channel) {
  channel.onmessage = ({ data }) => {
    if (data === "measuring?" && measuring) channel.postMessage("measuring");
    if (data === "measuring") heard?.();
  };
}

export function setMeasuring(value: boolean): void {
  measuring = value;
}

/** True if another tab says within a moment that it measures. */
export function anotherMeasures(): Promise<boolean> {
  if (!channel) return Promise.resolve(false);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), PATIENCE_MS);
    heard = () => {
      clearTimeout(timer);
      resolve(true);
    };
    channel.postMessage("measuring?");
  });
}

const PATIENCE_MS = 200;
