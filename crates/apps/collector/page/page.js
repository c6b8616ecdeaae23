"use strict";
// Everything that is shown is asked for over the API and put in as text, never as markup.
const by = (id) => document.getElementById(id);
const ms = (ns) => (ns === null || ns === undefined ? "–" : (ns / 1e6).toFixed(3) + " ms");
const milli = (ns) => (ns === null || ns === undefined ? null : ns / 1e6);
const count = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));
const percent = (share) => (share === null || share === undefined ? "–" : (share * 100).toFixed(3) + " %");
const clockTime = (ns) => new Date(ns / 1e6).toLocaleTimeString();
const warned = (n) => [count(n), n ? "bad" : ""];
// What is asked for as one sum: spans of a hundred years begin in 1970, so that no midnight makes two of it.
const SUM = "resolution=36500d";
// More lines than anybody reads; the API has the rest.
const MOST = 5000;
let chosen = fromAddress();

async function ask(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...(options.headers || {}) };
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch("/api/v1/" + path, { ...options, headers });
  const text = await answer.text();
  const value = text ? JSON.parse(text) : null;
  if (answer.status === 401 || answer.status === 403) by("access").hidden = false;
  if (!answer.ok) throw new Error(value && value.error ? value.error : "HTTP " + answer.status);
  return value;
}

// All pages of an answer; `more` says that there is even more than is shown.
async function askAll(path) {
  const items = [];
  let next = null;
  do {
    const page = await ask(path + (next === null ? "" : "&after=" + encodeURIComponent(next)));
    items.push(...page.items);
    next = page.next;
  } while (next !== null && items.length < MOST);
  return { items, more: next !== null };
}

const isNumber = (text) => /^[±\d.,–-]+( ms| %)?( \(.*\))?$/.test(text);

// One cell of a table: its text, or its text and what is to be seen of it.
function field(cell, name) {
  const made = document.createElement("td"), [text, kind] = Array.isArray(cell) ? cell : [cell, ""];
  made.textContent = text;
  made.dataset.name = name;
  if (kind) made.classList.add(kind);
  if (made.textContent.length > 14) made.classList.add("long");
  return made;
}

function line(row, heads) {
  const made = document.createElement("tr");
  made.append(...row.cells.map((cell, at) => field(cell, heads[at].textContent)));
  if (row.chosen) made.classList.add("is-chosen");
  if (row.open) {
    made.classList.add("link");
    made.tabIndex = 0;
    made.addEventListener("click", row.open);
    made.addEventListener("keydown", (event) => { if (event.key === "Enter") row.open(); });
  }
  return made;
}

function fill(id, rows, nothing) {
  const table = by(id), heads = [...table.tHead.rows[0].cells], made = rows.map((row) => line(row, heads));
  if (!made.length) {
    const only = line({ cells: [[nothing, "empty"]] }, heads);
    only.cells[0].colSpan = heads.length;
    made.push(only);
  }
  table.tBodies[0].replaceChildren(...made);
  heads.forEach((head, at) => {
    const column = made.map((row) => row.cells[at]).filter(Boolean), right = column.some((cell) => isNumber(cell.textContent));
    for (const cell of [head, ...column]) cell.classList.toggle("number", right);
  });
}

function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Series by name; a value of null is a gap. What is all gaps is said in words.
function lines(id, times, named, words = "nothing to show") {
  const svg = by(id), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const names = Object.keys(named), series = Object.values(named);
  const values = series.flat().filter((v) => v !== null && Number.isFinite(v));
  if (!values.length) { svg.replaceChildren(shape("text", { x: 50, y: height / 2 }, words)); return; }
  const top = Math.max(...values, 1e-9), first = times[0], span = Math.max(times[times.length - 1] - first, 1);
  const step = times.slice(1).map((t, n) => t - times[n]).sort((a, b) => a - b)[times.length >> 1] || span;
  const x = (t) => 60 + (t - first) / span * (width - 70), y = (v) => height - 22 - v / top * (height - 44);
  const parts = [shape("line", { x1: 60, y1: y(0), x2: width - 10, y2: y(0), class: "axis" }),
    shape("line", { x1: 60, y1: y(top), x2: width - 10, y2: y(top), class: "axis" }),
    shape("text", { x: 54, y: y(top) + 5, class: "end" }, Number(top.toPrecision(3))), shape("text", { x: 54, y: y(0), class: "end" }, "0"),
    shape("text", { x: 60, y: height - 4 }, clockTime(first)),
    shape("text", { x: width - 10, y: height - 4, class: "end" }, clockTime(first + span))];
  // One series needs no legend: its heading names it.
  if (names.length > 1) names.forEach((name, n) => parts.push(shape("text", { x: width - 10 - 110 * (names.length - 1 - n), y: 14, class: "end n" + n }, name)));
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
  const svg = by("histogram"), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  if (!bins.length) { svg.replaceChildren(shape("text", { x: 20, y: height / 2 }, "no delay yet")); return; }
  const low = bins[0][0], high = bins[bins.length - 1][0] + 1, places = new Array(60).fill(0);
  for (const [edge, n] of bins) places[Math.min(59, Math.floor((edge - low) / (high - low) * 60))] += n;
  const top = Math.max(...places), step = (width - 40) / 60;
  const bars = places.map((n, at) => shape("rect", { class: "bar", x: 20 + at * step, width: step - 1,
    y: height - 24 - n / top * (height - 40), height: n / top * (height - 40) }));
  svg.replaceChildren(...bars, shape("text", { x: 20, y: height - 6 }, ms(low)), shape("text", { x: width - 20, y: height - 6, class: "end" }, ms(high)));
}

function map(probes, paths) {
  const placed = probes.filter((p) => p.position), lat = placed.map((p) => p.position[0]), lon = placed.map((p) => p.position[1]);
  const scale = (v, all, from, to) => { const a = Math.min(...all), b = Math.max(...all); return a === b ? (from + to) / 2 : from + (v - a) / (b - a) * (to - from); };
  const at = {};
  probes.forEach((p, n) => {
    // Two stand side by side.
    const turn = 2 * Math.PI * n / probes.length - (probes.length === 2 ? Math.PI / 2 : 0);
    at[p.name] = placed.length === probes.length
      ? [scale(p.position[1], lon, 100, 700), scale(p.position[0], lat, 300, 60)]
      : [400 + 260 * Math.sin(turn), 180 - 130 * Math.cos(turn)];
  });
  const parts = [], labels = [], drawn = {};
  // Those that lose are drawn last, so that no other covers them.
  for (const item of paths.toSorted((one, other) => (one.loss || 0) - (other.loss || 0))) {
    // A point may be an interface of a probe.
    const [a, b] = [item.row.from, item.row.to].map((point) => at[point.split("/")[0]]);
    if (!a || !b || a === b) continue;
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], mid = [(a[0] + b[0]) / 2 - dy * 0.16, (a[1] + b[1]) / 2 + dx * 0.16];
    const edge = shape("path", { d: `M${a}Q${mid} ${b}`, class: item.loss > 0.001 ? "edge-bad" : "edge" });
    edge.append(shape("title", {}, `${item.row.from} → ${item.row.to}`));
    parts.push(edge);
    // Several tasks of one pair stand below each other.
    const pair = item.row.from + " " + item.row.to, nth = drawn[pair] = (drawn[pair] ?? -1) + 1;
    if (nth > 2) continue;
    const label = ms(item.mean) + (item.row.version ? ` (v${version(item.row)})` : "");
    labels.push(shape("text", { x: (a[0] + 2 * mid[0] + b[0]) / 4, y: (a[1] + 2 * mid[1] + b[1]) / 4 + 18 * nth, class: "middle" }, label));
  }
  for (const p of probes) {
    parts.push(shape("circle", { cx: at[p.name][0], cy: at[p.name][1], r: 9, class: p.connected ? "probe-up" : "probe-down" }),
      shape("text", { x: at[p.name][0], y: at[p.name][1] - 15, class: "middle name" }, p.name));
  }
  by("map").replaceChildren(...parts, ...labels);
}

const version = (row) => (row.version === "IPv4" ? 4 : row.version === "IPv6" ? 6 : null);
const words = (path) => `pair=${encodeURIComponent(path.from + "," + path.to)}&task=${encodeURIComponent(path.task)}&method=${encodeURIComponent(path.method)}` + (path.version ? `&version=${path.version}` : "");

// The chosen path is in the page's address, so that it can be kept and passed on.
function fromAddress() {
  const said = new URLSearchParams(location.hash.slice(1)), [from, to] = (said.get("pair") || "").split(",");
  if (!from || !to || !said.get("task") || !said.get("method")) return null;
  return { from, to, task: said.get("task"), method: said.get("method"), version: Number(said.get("version")) || null };
}

const isChosen = (item) => chosen && chosen.task === item.task && chosen.from === item.row.from && chosen.to === item.row.to &&
  chosen.method === item.row.method && chosen.version === version(item.row);

function figures(item) {
  const r = item.row, d = r.ipdv, known = r.clock_bound === undefined || r.clock_bound === null ? "unknown" : ms(r.clock_bound);
  const infinite = (ns) => (ns === null && item.loss !== null ? "infinite" : ms(ns));
  const said = [
    ["packets", count(r.packets)], ["seen at both", count(r.matched)], ["lost", count(r.lost)], ["loss", percent(item.loss)], ["unobserved", count(r.unobserved)],
    ["late", count(r.late)], ["duplicates", count(r.duplicates)], ["reordered", count(r.reordered)], ["collisions", count(r.collisions)], ["given up", count(r.given_up)],
    ["PDV p50", ms(item.pdv.p50)], ["PDV p95", ms(item.pdv.p95)], ["PDV p99", ms(item.pdv.p99)],
    ["IPDV mean", d.count ? ms(d.sum_ns / d.count) : "–"], ["IPDV max", d.count ? ms(d.max) : "–"],
    ["p50 with losses", infinite(item.with_losses.p50)], ["p95 with losses", infinite(item.with_losses.p95)], ["p99 with losses", infinite(item.with_losses.p99)],
    ["clocks", r.clock_method.replaceAll("_", " ")], ["offset taken off", ms(r.offset)], ["± clocks", known], ["below the bound", count(r.below_bound)],
  ];
  by("chosen-figures").replaceChildren(...said.map(([name, value]) => {
    const pair = document.createElement("div"), [term, text] = ["dt", "dd"].map((kind) => document.createElement(kind));
    term.textContent = name;
    text.textContent = value;
    pair.append(term, text);
    return pair;
  }));
  by("chosen-warnings").replaceChildren(...(r.warnings || []).map((warning) => {
    const line = document.createElement("li");
    line.textContent = warning;
    return line;
  }));
}

async function showChosen() {
  if (!chosen) return;
  const [page, whole] = await Promise.all([askAll("delays?from=-10min&limit=2000&" + words(chosen)), ask(`delays?from=-10min&${SUM}&limit=1&` + words(chosen))]);
  by("chosen").hidden = false;
  by("chosen-name").textContent = `${chosen.from} → ${chosen.to} (${chosen.task}${chosen.version ? ", IPv" + chosen.version : ""})`;
  if (!page.items.length || !whole.items.length) return;
  const times = page.items.map((i) => i.period.from), of = (get) => page.items.map(get);
  lines("delay", times, { min: of((i) => (i.row.delay.count ? milli(i.row.delay.min) : null)), mean: of((i) => milli(i.mean)), p95: of((i) => milli(i.p95)) }, "no packet was seen at both points");
  lines("variation", times, { "PDV p95": of((i) => milli(i.pdv.p95)), "IPDV mean": of((i) => (i.row.ipdv.count ? milli(i.row.ipdv.sum_ns / i.row.ipdv.count) : null)) }, "no packet was seen at both points");
  lines("clock", times, { bound: of((i) => milli(i.row.clock_bound)) }, "not known: no clock or traffic says how far these delays may be off");
  lines("loss", times, { loss: of((i) => (i.loss === null ? null : i.loss * 100)) }, "not known: nobody could have seen these packets");
  lines("rate", times, { packets: of((i) => i.row.packets / ((i.period.until - i.period.from) / 1e9)) });
  figures(whole.items[0]);
  histogram(whole.items[0].row.delay.histogram.bins);
  await showWays();
}

// Which points packets of the join passed; tasks that are no joins have none.
async function showWays() {
  const { items } = await askAll("rows/paths?from=-10min&limit=2000&task=" + encodeURIComponent(chosen.task));
  const packets = new Map();
  let others = 0;
  for (const { row } of items) {
    others += row.others;
    for (const path of row.paths) packets.set(path.points.join(" → "), (packets.get(path.points.join(" → ")) || 0) + path.packets);
  }
  const ways = [...packets].sort((one, other) => other[1] - one[1]);
  if (others) ways.push(["other ways", others]);
  const all = ways.reduce((sum, way) => sum + way[1], 0);
  by("ways-part").hidden = !ways.length;
  fill("ways", ways.map(([points, n]) => ({ cells: [points, count(n), percent(n / all)] })), "none");
}

// The first in its own words; the row has the others when it is chosen.
function warningsOf(row) {
  const [first, ...more] = row.warnings || [];
  return [first ? first + (more.length ? ` (and ${more.length} more)` : "") : "none", first ? "bad" : ""];
}

function showPaths(delays) {
  fill("paths", delays.items.map((item) => {
    const r = item.row, bound = r.clock_bound ?? null;
    const below = r.below_bound > 0 ? " (" + count(r.below_bound) + " below)" : "";
    return { chosen: isChosen(item), cells: [item.task, r.from, r.to, version(r) || "both", r.method, count(r.packets), r.delay.count ? ms(r.delay.min) : "–", ms(item.mean), ms(item.p50), ms(item.p95), ms(item.p99), r.delay.count ? ms(r.delay.max) : "–",
      ms(item.pdv.p95), (bound === null ? "unknown" : ms(bound)) + below, [percent(item.loss), item.loss > 0 ? "bad" : ""], count(r.unobserved), warningsOf(r)],
      open: () => { location.hash = words({ task: item.task, from: r.from, to: r.to, version: version(r), method: r.method }); } };
  }), "no delay has been measured in this time");
}

function showProbes(probes) {
  fill("probes", probes.map((p) => ({ cells: [p.name, [p.connected ? "connected" : "away", p.connected ? "good" : "bad"], p.peer || "–",
    p.last_period ? clockTime(p.last_period.until) : "–", count(p.counts.seen), warned(p.counts.lost),
    p.clock ? p.clock.source + (p.clock.synchronised ? "" : ", not synchronised") : "–", ms(p.clock?.bound).replace("–", "unknown"), warned(p.counts.clock_steps),
    count(p.waiting_batches), warned(p.given_up), warned(p.missed), count(p.counts.duplicates),
    [Object.entries(p.refused).map(([task, why]) => task + ": " + why).join("; "), "bad"]] })), "no probe is configured");
  fill("captures", probes.flatMap((p) => p.captures.map((c) => ({ cells: [p.name, c.interface, count(c.seen), warned(c.lost_ring), [count(c.lost_kernel) + (c.backlog ? ` (${count(c.backlog)} in the backlog)` : ""), c.lost_kernel ? "bad" : ""], c.lost_nic === undefined ? "not told" : warned(c.lost_nic),
    count(c.merged), count(c.not_ip), count(c.malformed), c.link_was_down ? ["was down", "bad"] : c.mtu_changed ? "MTU changed" : ["up", "good"]] }))), "no capture has reported");
}

// Turns are the collector's for what fills a path; other measurements keep their own time.
function showRuns(runs, latest) {
  const key = (it) => it.probe + " " + it.task, found = new Map(latest.map((it) => [key(it), it]));
  const own = latest.filter((it) => !runs.some((run) => key(run) === key(it)));
  const result = (it) => (it ? [[it.text, it.outcome === "failed" || it.failed.length ? "bad" : "long"], clockTime(it.at)] : ["–", "–"]);
  fill("runs", [
    ...runs.map((r) => ({ cells: [r.probe, r.task, ...result(found.get(key(r))), r.state, r.due_in, r.started, r.done, warned(r.missed), warned(r.overdue)] })),
    ...own.map((it) => ({ cells: [it.probe, it.task, ...result(it), "by its own clock", "–", "–", "–", "–", "–"] })),
  ], "no task measures throughput or latency between probes");
}

// Options have names of their own.
const worded = (value) => (typeof value === "object" && !Array.isArray(value) ? JSON.stringify(value) : String(value));

async function show() {
  try {
    const [health, probes, delays, runs, latest, tasks] = await Promise.all([ask("health"), ask("probes"), askAll("delays?from=-10min&" + SUM), ask("runs"), ask("latest"), ask("tasks")]);
    by("access").hidden = true;
    const up = probes.filter((p) => p.connected).length;
    by("state").textContent = `${up} of ${probes.length} probes connected, configuration ${health.number}` + (health.trouble ? `; the store has trouble: ${health.trouble}` : "") + (delays.more ? `; more than ${MOST} paths, the first of them are shown` : "");
    showPaths(delays);
    map(probes, delays.items);
    showProbes(probes);
    showRuns(runs, latest);
    fill("tasks", Object.entries(tasks).map(([name, task]) => {
      const { kind, on, ...rest } = task;
      return { cells: [name, kind, on.join(", "), Object.entries(rest).map(([k, v]) => k + "=" + worded(v)).join(" ")],
        open: () => { by("task-name").value = name; by("task-text").value = JSON.stringify(task, null, 1); by("editor").parentElement.open = true; } };
    }), "there is no task");
    await showChosen();
    document.body.dataset.shown = "yes";
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
window.addEventListener("hashchange", () => { chosen = fromAddress(); show(); });
show();
setInterval(show, 5000);
