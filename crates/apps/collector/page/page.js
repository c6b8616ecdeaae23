"use strict";
// Everything that is shown is asked for over the API and put in as text, never as markup.
const by = (id) => document.getElementById(id);
const ms = (ns) => (ns === null || ns === undefined ? "–" : (ns / 1e6).toFixed(3) + " ms");
const count = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));
let chosen = null;

async function ask(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...(options.headers || {}) };
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch("/api/v1/" + path, { ...options, headers });
  const text = await answer.text();
  const value = text ? JSON.parse(text) : null;
  if (answer.status === 401) by("access").hidden = false;
  if (!answer.ok) throw new Error(value && value.error ? value.error : "HTTP " + answer.status);
  return value;
}

function fill(id, rows) {
  const body = by(id).tBodies[0];
  body.replaceChildren(...rows.map((row) => {
    const line = document.createElement("tr");
    for (const cell of row.cells) {
      const field = document.createElement("td");
      const [text, kind] = Array.isArray(cell) ? cell : [cell, ""];
      field.textContent = text;
      if (kind) field.className = kind;
      line.append(field);
    }
    if (row.open) {
      line.className = "link";
      line.tabIndex = 0;
      line.addEventListener("click", row.open);
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") row.open(); });
    }
    return line;
  }));
}

function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Sums over all rows of a path; percentiles come from the server, of one long row.
function loss(row) {
  const known = row.packets - row.unobserved - row.given_up;
  return known > 0 ? row.lost / known : null;
}

// Series by name; a value of null is a gap. What is all gaps is said in words.
function lines(id, times, named, words = "nothing to show") {
  const svg = by(id), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const names = Object.keys(named), series = Object.values(named);
  const values = series.flat().filter((v) => v !== null && Number.isFinite(v));
  if (!values.length) { svg.replaceChildren(shape("text", { x: 50, y: height / 2 }, words)); return; }
  const top = Math.max(...values, 1e-9), first = times[0], span = Math.max(times[times.length - 1] - first, 1);
  const step = times.slice(1).map((t, n) => t - times[n]).sort((a, b) => a - b)[times.length >> 1] || span;
  const x = (t) => 50 + (t - first) / span * (width - 60), y = (v) => height - 18 - v / top * (height - 30);
  const parts = [shape("line", { x1: 50, y1: y(0), x2: width - 10, y2: y(0), class: "axis" }),
    shape("text", { x: 4, y: y(top) + 4 }, top.toPrecision(3)), shape("text", { x: 4, y: y(0) }, "0"),
    shape("text", { x: 50, y: height - 4 }, new Date(first / 1e6).toLocaleTimeString()),
    shape("text", { x: width - 70, y: height - 4 }, new Date((first + span) / 1e6).toLocaleTimeString())];
  // One series needs no legend: its heading names it.
  if (names.length > 1) names.forEach((name, n) => parts.push(shape("text", { x: width - 60 * (names.length - n), y: 11, class: "n" + n }, name)));
  series.forEach((values, n) => {
    let path = "", pen = "M";
    values.forEach((value, at) => {
      if (value === null || !Number.isFinite(value)) { pen = "M"; return; }
      // Periods that are missing are a gap, too.
      if (at && times[at] - times[at - 1] > 1.5 * step) pen = "M";
      path += `${pen}${x(times[at]).toFixed(1)},${y(value).toFixed(1)}`;
      pen = "L";
    });
    if (path) parts.push(shape("path", { d: path + (path.includes("L") ? "" : "h2"), class: "s" + n }));
  });
  const last = series.map((values, n) => `${names[n]} ${values.findLast((v) => v !== null && Number.isFinite(v))?.toPrecision(3) ?? "–"}`);
  parts.push(shape("title", {}, "last: " + last.join(", ")));
  svg.replaceChildren(...parts);
}

function histogram(bins) {
  const svg = by("histogram"), width = 800, height = 160;
  if (!bins.length) { svg.replaceChildren(shape("text", { x: 20, y: 80 }, "no delay yet")); return; }
  const low = bins[0][0], high = bins[bins.length - 1][0] + 1, places = new Array(60).fill(0);
  for (const [edge, n] of bins) places[Math.min(59, Math.floor((edge - low) / (high - low) * 60))] += n;
  const top = Math.max(...places);
  const bars = places.map((n, at) => shape("rect", { class: "bar", x: 20 + at * 12.6, width: 11.6,
    y: height - 20 - n / top * (height - 36), height: n / top * (height - 36) }));
  svg.replaceChildren(...bars, shape("text", { x: 20, y: height - 5 }, ms(low)), shape("text", { x: width - 80, y: height - 5 }, ms(high)));
}

function map(probes, paths) {
  const placed = probes.filter((p) => p.position), lat = placed.map((p) => p.position[0]), lon = placed.map((p) => p.position[1]);
  const scale = (v, all, from, to) => { const a = Math.min(...all), b = Math.max(...all); return a === b ? (from + to) / 2 : from + (v - a) / (b - a) * (to - from); };
  const at = {};
  probes.forEach((p, n) => {
    const turn = 2 * Math.PI * n / probes.length;
    at[p.name] = placed.length === probes.length
      ? [scale(p.position[1], lon, 80, 720), scale(p.position[0], lat, 310, 50)]
      : [400 + 260 * Math.sin(turn), 180 - 130 * Math.cos(turn)];
  });
  const parts = [], labels = [];
  for (const item of paths) {
    const a = at[item.row.from], b = at[item.row.to];
    if (!a || !b) continue;
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], mid = [(a[0] + b[0]) / 2 - dy * 0.12, (a[1] + b[1]) / 2 + dx * 0.12];
    const edge = shape("path", { d: `M${a}Q${mid} ${b}`, class: (loss(item.row) || 0) > 0.001 ? "edge-bad" : "edge" });
    edge.append(shape("title", {}, `${item.row.from} → ${item.row.to}`));
    labels.push(shape("text", { x: (a[0] + 2 * mid[0] + b[0]) / 4, y: (a[1] + 2 * mid[1] + b[1]) / 4, class: "middle" }, ms(item.mean)));
    parts.push(edge);
  }
  for (const p of probes) {
    parts.push(shape("circle", { cx: at[p.name][0], cy: at[p.name][1], r: 9, class: p.connected ? "probe-up" : "probe-down" }),
      shape("text", { x: at[p.name][0] + 13, y: at[p.name][1] + 4 }, p.name));
  }
  by("map").replaceChildren(...parts, ...labels);
}

const words = (path) => `pair=${encodeURIComponent(path.from + "," + path.to)}&task=${encodeURIComponent(path.task)}&method=${encodeURIComponent(path.method)}` + (path.version ? `&version=${path.version}` : "");
const version = (row) => (row.version === "IPv4" ? 4 : row.version === "IPv6" ? 6 : null);

async function showChosen() {
  if (!chosen) return;
  const page = await ask("delays?from=-10min&limit=2000&" + words(chosen));
  by("chosen").hidden = false;
  by("chosen-name").textContent = `${chosen.from} → ${chosen.to} (${chosen.task})`;
  if (!page.items.length) return;
  const times = page.items.map((i) => i.period.from), of = (get) => page.items.map(get);
  const milli = (v) => (v === null ? null : v / 1e6);
  lines("delay", times, { min: of((i) => (i.row.delay.count ? milli(i.row.delay.min) : null)), mean: of((i) => milli(i.mean)), p95: of((i) => milli(i.p95)) }, "no packet was seen at both points");
  lines("clock", times, { bound: of((i) => milli(i.row.clock_bound ?? null)) }, "not known: no clock or traffic says how far these delays may be off");
  lines("loss", times, { loss: of((i) => { const l = loss(i.row); return l === null ? null : l * 100; }) }, "not known: nobody could have seen these packets");
  lines("rate", times, { packets: of((i) => i.row.packets / ((i.period.until - i.period.from) / 1e9)) });
  const whole = await ask("delays?from=-10min&resolution=1d&limit=1&" + words(chosen));
  histogram(whole.items.length ? whole.items[0].row.delay.histogram.bins : []);
}

async function show() {
  try {
    const [health, probes, delays, runs, tasks] = await Promise.all([ask("health"), ask("probes"), ask("delays?from=-10min&resolution=1d"), ask("runs"), ask("tasks")]);
    by("access").hidden = true;
    const up = probes.filter((p) => p.connected).length;
    by("state").textContent = `${up} of ${probes.length} probes connected, configuration ${health.number}` + (health.trouble ? `; the store has trouble: ${health.trouble}` : "");
    fill("paths", delays.items.map((item) => {
      const r = item.row, bound = r.clock_bound === undefined ? null : r.clock_bound, share = loss(r);
      const below = r.below_bound > 0 ? " (" + count(r.below_bound) + " below)" : "";
      return { cells: [item.task, r.from, r.to, version(r) || "both", r.method, count(r.packets), r.delay.count ? ms(r.delay.min) : "–", ms(item.mean), ms(item.p50), ms(item.p95), ms(item.p99), r.delay.count ? ms(r.delay.max) : "–",
        (bound === null ? "unknown" : ms(bound)) + below, [share === null ? "–" : (share * 100).toFixed(3) + " %", share > 0 ? "bad" : ""], count(r.unobserved)],
        open: () => { chosen = { task: item.task, from: r.from, to: r.to, version: version(r), method: r.method }; showChosen(); } };
    }));
    map(probes, delays.items);
    fill("probes", probes.map((p) => ({ cells: [p.name, [p.connected ? "connected" : "away", p.connected ? "good" : "bad"], p.peer || "–",
      p.last_period ? new Date(p.last_period.until / 1e6).toLocaleTimeString() : "–", count(p.counts.seen), [count(p.counts.lost), p.counts.lost ? "bad" : ""],
      p.clock ? p.clock.source + (p.clock.synchronised ? "" : ", not synchronised") : "–", p.clock && p.clock.bound !== undefined ? ms(p.clock.bound) : "unknown",
      count(p.waiting_batches), [count(p.given_up), p.given_up ? "bad" : ""], [count(p.missed), p.missed ? "bad" : ""], count(p.counts.duplicates),
      Object.entries(p.refused).map(([task, why]) => task + ": " + why).join("; ")] })));
    fill("runs", runs.map((r) => ({ cells: [r.probe, r.task, r.state, r.due_in, r.started, r.done, [r.missed, r.missed ? "bad" : ""], r.overdue] })));
    fill("tasks", Object.entries(tasks).map(([name, task]) => {
      const { kind, on, ...rest } = task;
      return { cells: [name, kind, on.join(", "), Object.entries(rest).map(([k, v]) => `${k}=${v}`).join(" ")],
        open: () => { by("task-name").value = name; by("task-text").value = JSON.stringify(task, null, 1); by("editor").parentElement.open = true; } };
    }));
    await showChosen();
  } catch (error) {
    by("state").textContent = error.message;
  }
}

async function change(method) {
  const name = by("task-name").value, options = { method, headers: { "Content-Type": "application/json" } };
  if (method === "PUT") options.body = by("task-text").value;
  try {
    const done = await ask("tasks/" + encodeURIComponent(name), options);
    by("task-said").textContent = "configuration " + done.number;
    show();
  } catch (error) { by("task-said").textContent = error.message; }
}

by("access").addEventListener("submit", (event) => { event.preventDefault(); sessionStorage.setItem("token", by("token").value); by("token").value = ""; show(); });
by("editor").addEventListener("submit", (event) => { event.preventDefault(); change("PUT"); });
by("task-delete").addEventListener("click", () => change("DELETE"));
show();
setInterval(show, 5000);
