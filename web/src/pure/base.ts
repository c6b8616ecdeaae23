// Where the page lies: at the top of its host, or below the path at which a reverse proxy shows it.

/** "https://example.com/speed" for a page of "https://example.com/speed/#results": without a slash at its end. */
export function baseOf(href: string): string {
  return new URL(".", href).href.replace(/\/$/, "");
}
