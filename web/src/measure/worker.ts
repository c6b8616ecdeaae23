// The measuring side of the page: one script, started by name as runner (control and order of things), mover (bytes of one
// transfer) or echoer (round trips). The runner starts the other two, so the main thread only draws.

import { echo } from "./echoer";
import type { Role } from "./messages";
import { move } from "./mover";
import { listenForOrders } from "./runner";

const parts: Record<Role, () => void> = { runner: listenForOrders, mover: move, echoer: echo };
parts[self.name as Role]?.();
