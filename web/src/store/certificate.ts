// What the code that was scanned says about the server's certificate.
//
// No page is told which certificate its connection had: only the browser's own dialog shows that. So the page keeps what the code's
// fragment says (browsers never send it) beside what the server claims, for a person to compare; if the two differ, one of them lies.

export function certificateOf(fragment: string): string | undefined {
  return /^#tls=([0-9a-f]{64})$/i.exec(fragment)?.[1]?.toLowerCase();
}

/** As browsers show it. */
export function inPairs(fingerprint: string): string {
  return (fingerprint.toUpperCase().match(/../g) ?? []).join(":");
}

/** Of the code by which this page was opened; undefined where it was opened otherwise. */
export const scanned = typeof location === "undefined" ? undefined : certificateOf(location.hash);

/** Whether the server shows another one than the code has. */
export function differs(code: string | undefined, claimed: string | undefined): boolean {
  return code !== undefined && claimed !== undefined && code !== claimed;
}
