// Opens the page: the store, the question to the server, the service worker where the browser allows one.

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { App } from "./app";
import { askServer } from "./store/about";
import { openStore } from "./store/database";
import "./style.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
void openStore();
void askServer();
addEventListener("online", () => void askServer());

// Only over TLS or on the server's own host; elsewhere browsers refuse, and the server's page says so.
if ("serviceWorker" in navigator && window.isSecureContext) {
  addEventListener("load", () => void navigator.serviceWorker.register("./sw.js").catch(() => {}));
}
