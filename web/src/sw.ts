// Keeps the page itself on the phone, so that it opens and shows stored results without any network.
//
// Only the files of the bundle are kept, never an answer of the server: a stored answer would be shown as if it were news, and
// a stored transfer would measure this phone's disk. The cache is named after the bundle's content, so a new netaware on the
// server brings a new page with the next visit but one.

export {};

declare const self: ServiceWorkerGlobalScopeLike;

interface ServiceWorkerGlobalScopeLike {
  location: Location;
  addEventListener(type: string, listener: (event: LifeEvent) => void): void;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
}

interface LifeEvent {
  request: Request;
  waitUntil(done: Promise<unknown>): void;
  respondWith(answer: Promise<Response>): void;
}

const CACHE = "netaware-__BUNDLE__";
const FILES = [
  "./",
  "app.js",
  "worker.js",
  "style.css",
  "manifest.webmanifest",
  "icon.svg",
  "icon-192.png",
  "icon-512.png",
];

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  event.waitUntil(dropOlder().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const kept = keptName(event.request);
  if (kept) event.respondWith(fromCache(kept, event.request));
});

async function dropOlder(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("netaware-") && name !== CACHE).map((name) => caches.delete(name)));
}

function keptName(request: Request): string | undefined {
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return undefined;
  // A reverse proxy may show the page below a path.
  const base = new URL("./", self.location.href).pathname;
  if (!url.pathname.startsWith(base)) return undefined;
  const name = url.pathname.slice(base.length);
  if (name === "" || name === "index.html") return "./";
  return FILES.includes(name) ? name : undefined;
}

async function fromCache(name: string, request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  return (await cache.match(name)) ?? fetch(request);
}
