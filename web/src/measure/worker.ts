// The measuring side of the page: one script, started by name as runner (control and order of things), mover (bytes of one
// transfer) or echoer (round trips). The main thread starts them, and otherwise only draws; a helper's first message is its port to
// the runner.

import { echo } from "./echoer";
import type { FromEchoer, FromMover, Helper, Talk, ToEchoer, ToMover } from "./messages";
import { move } from "./mover";
import { listenForOrders } from "./runner";

const helpers: Record<Helper, (runner: MessagePort) => void> = {
  mover: (runner) => move(runner as Talk<FromMover, ToMover>),
  echoer: (runner) => echo(runner as Talk<FromEchoer, ToEchoer>),
};
if (self.name === "runner") listenForOrders();
else self.onmessage = ({ data }: MessageEvent<MessagePort>) => helpers[self.name as Helper]?.(data);
