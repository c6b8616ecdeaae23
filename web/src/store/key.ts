// The server's key, as its owner typed it. It is kept by nothing: it goes with this tab.

import { Observable } from "./observable";

export const key = new Observable("");

/** A key file's last line end is no part of the key. */
export function giveKey(typed: string): void {
  key.set(typed.replace(/[\r\n]+$/, ""));
}
