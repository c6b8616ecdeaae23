// Reads a record that came from outside. What the page draws is checked field by field; what other commands measured is kept as
// bounded JSON and shown as tables.

import type { NetRecord } from "./record";
import { anything, dictionary, fields, list, number, oneOf, pair, text, truth, type Reader } from "./shape";

const outcome = oneOf("complete", "interrupted", "failed");
const version = oneOf("IPv4", "IPv6");
const summary = fields(
  { count: number, min: number, p50: number, p95: number, p99: number, p999: number, max: number, mean: number },
  { sd: number },
);
const interval = fields({ estimate: number, lo: number, hi: number, confidence: number }, {});
const pedigree = fields(
  {
    method: text(60),
    layer: oneOf("payload", "ip", "l2"),
    direction: oneOf("forward", "reverse", "round_trip"),
    version,
    clock: oneOf("application", "kernel", "nic"),
    uncertainty: text(),
  },
  {},
);
// What nobody watched is absent.
const health = fields({}, { late_sends: number, worst_lateness: number, not_sent: number, host_drops: number, stamp_fallbacks: number });
const histogram = fields({ bins: list(pair(number), 2000) }, { digits: number, width: number, underflow: number, overflow: number });
const latency = fields(
  { pedigree, payload: number, sent: number, received: number, lost: number, health },
  {
    jitter: number,
    spacing: number,
    not_sent: number,
    unknown: number,
    late: number,
    reordered: number,
    duplicates: number,
    bad: number,
    patience: number,
    rtt: summary,
    rtt_application: summary,
    responder: summary,
    ipdv: summary,
    pdv: summary,
    histogram,
    bins: histogram,
  },
);
const tick = fields({ end: number, length: number, bytes: number }, { streams: number });
const loaded = fields({ latency }, { rise: number, round_trips_per_minute: number });
const limit = fields({ by: text(40), side: text(40), evidence: text() }, {});
const end = fields({ outcome, elapsed: number, bytes: number }, {});
const tcp = fields(
  { pedigree, outcome, streams: number, measured: number, health },
  {
    // What nobody measured is absent.
    bytes: number,
    warm_up: fields({ omitted: number, rule: text(60) }, {}),
    planned: number,
    ended_early: text(),
    cwnd: number,
    congestion: text(20),
    goodput: number,
    goodput_interval: interval,
    rounds: list(number, 1000),
    retransmits: number,
    rtt: number,
    min_rtt: number,
    receiver_ticks: list(tick, 4000),
    latency_under_load: loaded,
    limit,
    sender: end,
    receiver: end,
  },
);
const matrixEnd = fields({ bytes: number }, { calls: number, elapsed: number, throughput: number });
const matrixRun = fields({ round: number, outcome, lost: number }, { client: matrixEnd, server: matrixEnd, unknown: number, undelivered: number, retransmits: number });
const cell = fields(
  { bytes: number, block: number, runs: list(matrixRun, 1000) },
  { client_time: interval, client_throughput: interval, server_time: interval, server_throughput: interval },
);
const matrix = fields({ pedigree, protocol: oneOf("tcp", "tcp_nodelay", "udp"), cells: list(cell, 200) }, {});
const bounded = anything();
const versionResult = fields(
  { version },
  {
    address: text(60),
    unreachable: fields({ stage: text(40), reason: text() }, { advice: text() }),
    failed_phases: list(fields({ stage: text(60), reason: text() }, {}), 20),
    reach: fields({ greeting: number }, { connects: list(number, 100), resolve: number }),
    latency,
    latency_tcp: latency,
    tcp: list(tcp, 64),
    matrix: list(matrix, 8),
    path: bounded,
    udp: bounded,
    path_rates: bounded,
    path_use: bounded,
    hops: bounded,
    reach_probes: bounded,
    owd: bounded,
  },
);
const host = fields(
  { name: text(100) },
  { kernel: text(100), cpu: text(100), cores: number, virtualisation: text(40), software: text(60), congestion: text(20) },
);
const request = fields({ host: text(100), port: number }, { own_responder: truth, options: dictionary(60) });
const record = fields(
  {
    schema: number,
    id: identity,
    command: text(20),
    started_at: number,
    elapsed: number,
    outcome,
    request,
    prober: host,
    versions: list(versionResult, 2),
  },
  {
    software: text(40),
    started_at_utc: text(40),
    label: text(100),
    responder: host,
    warnings: list(text(), 50),
    comparison: bounded,
    ability: bounded,
    series: bounded,
  },
);

function identity(value: unknown): string | undefined {
  return typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value) ? value.toLowerCase() : undefined;
}

/** Undefined for anything that is no record of a schema that this page knows. */
export const readRecord: Reader<NetRecord> = (value) => {
  const read = record(value);
  if (!read || read.schema !== 1 || Math.abs(read.started_at) > LAST_INSTANT) return undefined;
  return { warnings: [], software: "", ...read } as unknown as NetRecord;
};

/** Of a Date, in ns. */
const LAST_INSTANT = 8.64e21;
