// Small choices that the page remembers. Without storage (private windows) it simply forgets them.
//
// There is no host among them: a page measures towards the server that it came from, and browsers keep this for each address apart.

export interface Settings {
  walkSeconds: string;
  places: string[];
  matrix: { way: "up" | "down"; tcp: boolean; nodelay: boolean; udp: boolean; sweep: boolean; total: string; block: string; runs: string };
}

const DEFAULTS: Settings = {
  walkSeconds: "30",
  places: [],
  matrix: { way: "down", tcp: true, nodelay: true, udp: false, sweep: true, total: "100kB", block: "1kB", runs: "3" },
};

export function settings(): Settings {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof kept !== "object" || kept === null) return DEFAULTS;
    return like(DEFAULTS, kept) as Settings;
  } catch {
    return DEFAULTS;
  }
}

export function remember(change: Partial<Settings>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...settings(), ...change }));
  } catch {
    // Nothing is lost but the convenience.
  }
}

/** `kept` where it has the type of the default, the default where not. */
function like(standard: unknown, kept: unknown): unknown {
  if (Array.isArray(standard)) return Array.isArray(kept) ? kept.filter((each) => typeof each === "string").slice(0, 50) : standard;
  if (typeof standard === "object" && standard !== null) {
    const given = (typeof kept === "object" && kept !== null ? kept : {}) as Record<string, unknown>;
    return Object.fromEntries(Object.entries(standard).map(([name, value]) => [name, like(value, given[name])]));
  }
  return typeof kept === typeof standard ? kept : standard;
}

const KEY = "netaware";
