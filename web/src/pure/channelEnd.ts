// What the two ends of a data channel must know of each other (docs/protocol.md §9), taken out of a browser's offer and put into the
// answer that it wants to hear. All else in an answer is fixed, so no session description travels.

export interface ChannelEnd {
  ufrag: string;
  pwd: string;
  fingerprint: string;
}

/** Undefined where the offer lacks something, or has no SHA-256 of its certificate. */
export function endOf(offer: string): ChannelEnd | undefined {
  const found = (pattern: RegExp) => pattern.exec(offer)?.[1];
  const ufrag = found(/^a=ice-ufrag:(\S{4,256})\s*$/m);
  const pwd = found(/^a=ice-pwd:(\S{22,256})\s*$/m);
  const fingerprint = found(/^a=fingerprint:sha-256 ([0-9a-f:]{95})\s*$/im);
  return ufrag && pwd && fingerprint ? { ufrag, pwd, fingerprint } : undefined;
}

/** Undefined for what is no end: it came from the network and goes into a session description. */
export function readEnd(value: unknown): ChannelEnd | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { ufrag, pwd, fingerprint } = value as Record<string, unknown>;
  const fits = (word: unknown, pattern: RegExp): word is string => typeof word === "string" && pattern.test(word);
  if (!fits(ufrag, /^[\w+/]{4,256}$/) || !fits(pwd, /^[\w+/]{22,256}$/)) return undefined;
  return fits(fingerprint, /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/i) ? { ufrag, pwd, fingerprint } : undefined;
}

/** The answer of a responder that waits at `address`: ICE lite, DTLS passive, one application section. */
export function answerOf(end: ChannelEnd, address: string, port: number): string {
  const lines = [
    "v=0",
    "o=- 1 1 IN IP4 0.0.0.0",
    "s=-",
    "t=0 0",
    "a=ice-lite",
    "a=group:BUNDLE 0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 0.0.0.0",
    "a=mid:0",
    `a=ice-ufrag:${end.ufrag}`,
    `a=ice-pwd:${end.pwd}`,
    `a=fingerprint:sha-256 ${end.fingerprint.toUpperCase()}`,
    "a=setup:passive",
    "a=sctp-port:5000",
    "a=max-message-size:1024",
    `a=candidate:1 1 udp 2130706431 ${address} ${port} typ host`,
    "a=end-of-candidates",
  ];
  return `${lines.join("\r\n")}\r\n`;
}
