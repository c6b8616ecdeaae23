import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Turn, type Wire } from "../src/store/tabs";

/** Tabs of one browser: each hears what the others say, a moment later. */
class Browser {
  private readonly wires: Wire[] = [];

  wire(): Wire {
    const own: Wire = {
      onmessage: null,
      postMessage: (data) => {
        for (const other of this.wires) if (other !== own) setTimeout(() => other.onmessage?.({ data } as MessageEvent), 5);
      },
    };
    this.wires.push(own);
    return own;
  }
}

/** As `navigator.locks` gives them. */
class Locks {
  private readonly held = new Set<string>();

  request = (async (name: string, _options: LockOptions, callback: (lock: Lock | null) => unknown) => {
    if (this.held.has(name)) return callback(null);
    this.held.add(name);
    try {
      return await callback({ name, mode: "exclusive" });
    } finally {
      this.held.delete(name);
    }
  }) as LockManager["request"];
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function settled<T>(all: Promise<T>[]): Promise<T[]> {
  await vi.advanceTimersByTimeAsync(1000);
  return Promise.all(all);
}

const tabs = (numbers: number[], locks?: Locks) => {
  const browser = new Browser();
  return numbers.map((number) => new Turn(browser.wire(), locks, () => number));
};

test("of tabs that start within a moment exactly one measures, whichever was first", async () => {
  for (const numbers of [[0.1, 0.9], [0.9, 0.1], [0.5, 0.2, 0.8]]) {
    for (const apart of [0, 3, 150]) {
      const asked: Promise<(() => void) | undefined>[] = [];
      for (const tab of tabs(numbers)) {
        asked.push(tab.take());
        await vi.advanceTimersByTimeAsync(apart);
      }
      const won = (await settled(asked)).filter((release) => release !== undefined);
      expect(won, `${numbers} ${apart}`).toHaveLength(1);
    }
  }
});

test("with the browser's locks exactly one measures, even where no message comes", async () => {
  const locks = new Locks();
  const silent = (): Turn => new Turn({ postMessage: () => {}, onmessage: null }, locks);
  const found = await settled([silent().take(), silent().take()]);
  expect(found.filter((release) => release !== undefined)).toHaveLength(1);
});

test("a turn that ended is free for the other tab, and for the same again", async () => {
  for (const locks of [undefined, new Locks()]) {
    const [first, second] = tabs([0.9, 0.1], locks);
    const [release] = await settled([first!.take()]);
    expect(await settled([second!.take(), first!.take()])).toEqual([undefined, undefined]);
    release!();
    await settled([]);
    const [other] = await settled([second!.take()]);
    expect(other).toBeDefined();
    other!();
    await settled([]);
    expect((await settled([first!.take()]))[0]).toBeDefined();
  }
});

test("without channels and locks a tab measures", async () => {
  expect((await settled([new Turn(undefined, undefined).take()]))[0]).toBeDefined();
  const refusing = { request: () => Promise.reject(new Error("SecurityError")) } as unknown as LockManager;
  expect((await settled([new Turn(undefined, refusing).take()]))[0]).toBeDefined();
});

test("what is none of a tab's words changes nothing", async () => {
  const wire: Wire = { postMessage: () => {}, onmessage: null };
  const turn = new Turn(wire, undefined);
  const asked = turn.take();
  for (const data of [null, "measuring", { say: "mine" }, { say: "x", by: 1 }]) wire.onmessage!({ data } as MessageEvent);
  expect((await settled([asked]))[0]).toBeDefined();
});
