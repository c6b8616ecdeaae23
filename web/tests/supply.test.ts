import { expect, test } from "vitest";
import { Supply, type Outlet, type SupplyOrder } from "../src/pure/supply";

/** A socket of a browser on a path that carries so many bytes a millisecond until it breaks. */
class Socket implements Outlet {
  bufferedAmount = 0;

  send(block: Uint8Array): void {
    this.bufferedAmount += block.length;
  }

  carry(bytes: number): void {
    this.bufferedAmount = Math.max(0, this.bufferedAmount - bytes);
  }
}

let now = 0;

function supply(order: Partial<SupplyOrder> = {}): Supply {
  now = 1000;
  return new Supply({ length: 1000, duration: 1e9, total: null, rate: null, ...order }, new Uint8Array(1000), now, () => now);
}

test("all of a transfer that ended is sent", () => {
  const [own, socket] = [supply({ total: 10_500 }), new Socket()];
  own.fill(socket, [socket]);
  expect([own.over(), socket.bufferedAmount]).toEqual([true, 10_500]);
  socket.carry(10_500);
  expect(own.totals([socket])).toEqual({ bytes: 10_500, messages: 11 });
});

test("what waits in the browser when a transfer breaks is not sent", () => {
  const [own, sockets] = [supply({ total: 1e6 }), [new Socket(), new Socket()]];
  for (const socket of sockets) own.fill(socket, sockets);
  const handed = sockets[0]!.bufferedAmount + sockets[1]!.bufferedAmount;
  sockets[0]!.carry(100_000);
  expect(own.totals(sockets).bytes).toBe(100_000);
  expect(handed).toBeGreaterThan(500_000);
});

test("a browser that forgets what waited with the connection changes nothing", () => {
  const [own, socket] = [supply(), new Socket()];
  own.fill(socket, [socket]);
  socket.carry(50_000);
  own.broke([socket]);
  socket.bufferedAmount = 0;
  expect(own.totals([socket]).bytes).toBe(50_000);
});

test("no more waits in the browser than a tenth of a second's worth", () => {
  const [own, socket] = [supply({ duration: 10e9 }), new Socket()];
  for (let ms = 0; ms < 2000; ms += 1) {
    own.fill(socket, [socket]);
    now += 1;
    socket.carry(10_000);
  }
  own.fill(socket, [socket]);
  expect(socket.bufferedAmount / 1e6).toBeCloseTo(1, 1);
});

test("time ends it, and a rate of the plan holds it", () => {
  const [own, socket] = [supply({ duration: 1e9, rate: 8e6 }), new Socket()];
  for (let ms = 0; ms < 1500; ms += 1) {
    own.fill(socket, [socket]);
    socket.carry(1e9);
    now += 1;
  }
  expect(own.over()).toBe(true);
  expect(own.totals([socket]).bytes / 1.05e6).toBeCloseTo(1, 2);
});
