// Which addresses to try for each IP version, and whether an answer came from the server that gave us the page.
//
// A phone must not try 127.0.0.1 of a server: it would measure itself. A link-local address needs a zone, which no URL of a
// browser can hold.

export type Version = "IPv4" | "IPv6";
export const VERSIONS: readonly Version[] = ["IPv4", "IPv6"];

export interface Candidate {
  version: Version;
  address: string;
  /** "http://192.0.2.1:14233". */
  origin: string;
}

/** Undefined for a name. Brackets are taken off. */
export function versionOf(host: string): Version | undefined {
  const bare = unbracketed(host);
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(bare)) return "IPv4";
  return /^[0-9a-f:.]*:[0-9a-f:.]+$/i.test(bare) || /^[0-9a-f:]+::$/i.test(bare) ? "IPv6" : undefined;
}

export function unbracketed(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}

/** Of each version: the address that gave us the page first, then what the server says it has; at most four. */
export function candidates(page: PageAddress, addresses: readonly string[]): Candidate[] {
  const own = isLoopback(page.hostname) ? ["127.0.0.1", "::1"] : [];
  const offered = addresses.map(unbracketed).filter((address) => isLoopback(page.hostname) || !isLoopback(address));
  const literal = versionOf(page.hostname) ? [unbracketed(page.hostname)] : [];
  const usable = [...new Set([...literal, ...own, ...offered])].filter((address) => versionOf(address) && !isLinkLocal(address));
  return VERSIONS.flatMap((version) =>
    usable
      .filter((address) => versionOf(address) === version)
      .slice(0, MOST_TRIED)
      .map((address) => ({ version, address, origin: originOf(page, address, version) })),
  );
}

export interface PageAddress {
  protocol: string;
  hostname: string;
  port: string;
}

function originOf(page: PageAddress, address: string, version: Version): string {
  const host = version === "IPv6" ? `[${address}]` : address;
  return `${page.protocol}//${host}${page.port ? `:${page.port}` : ""}`;
}

function isLoopback(host: string): boolean {
  const bare = unbracketed(host);
  return bare === "localhost" || bare === "::1" || bare.startsWith("127.");
}

function isLinkLocal(address: string): boolean {
  return /^fe[89ab][0-9a-f]:/i.test(address);
}

const MOST_TRIED = 4;
