// Proofs of knowing the server's key: HMAC-SHA-256 as in docs/protocol.md §6. The key stays in this page's memory.

export type Side = "prober" | "responder";

/** 64 hexadecimal digits. `nonces` are hexadecimal, the responder's first. */
export async function proof(side: Side, key: string, nonces: readonly [string, string]): Promise<string> {
  const text = new TextEncoder();
  // Kept from pages without TLS; a server with a key has no page without.
  const imported = await crypto.subtle.importKey("raw", text.encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const message = [...text.encode(`netaware ${side} 1`), ...nonces.flatMap(bytes)];
  return hexadecimal(new Uint8Array(await crypto.subtle.sign("HMAC", imported, new Uint8Array(message))));
}

function bytes(hex: string): number[] {
  return (hex.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
}

function hexadecimal(digest: Uint8Array): string {
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
