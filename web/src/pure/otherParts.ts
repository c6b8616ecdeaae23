// Reads the parts of a record that only the command line measures: UDP streams, capacity, one-way delay, hops, reach, the host.
//
// These come to the page as bounded JSON (readRecord.ts); here the few fields that are drawn, compared or exported are read by type.
// What does not fit is left out.

import { dictionary, fields, list, number, oneOf, pair, text, truth } from "./shape";

export type Direction = "forward" | "reverse" | "round_trip";

const way = fields({ direction: oneOf("forward", "reverse", "round_trip") }, {});
const interval = fields({ estimate: number, lo: number, hi: number }, {});
const bins = fields({ bins: list(pair(number), 2000) }, {});
const quantiles = fields({ p50: number, p95: number }, { p99: number });

export const readUdp = list(
  fields(
    { pedigree: way },
    {
      goodput: number,
      sent: number,
      loss: fields({ lost: number }, { unknown: number, ratio: interval }),
      ticks: list(fields({ end: number, length: number, bytes: number }, {}), 4000),
      receiver: fields({}, { bins, histogram: bins, jitter: number }),
    },
  ),
  8,
);

const mode = fields({ lo: number, hi: number, share: number }, { chosen: truth });
const point = fields({ at: number }, { rate: interval });

export const readPathRates = list(
  fields(
    { pedigree: way, metric: text(40) },
    { rate: interval, bound: oneOf("none", "at_least", "at_most"), modes: list(mode, 64), over_time: list(point, 4000) },
  ),
  16,
);

const owdWay = fields({ lost: number }, { delay: quantiles, pdv: quantiles, loss: number, histogram: bins });
export const readOwd = fields({ forward: owdWay, reverse: owdWay }, { rtt: quantiles, sent: number, lost: number });

export const readHops = fields(
  { hops: list(fields({ ttl: number }, { rtt_min: number, loss: number, capacity: fields({ rate: interval }, {}) }), 255) },
  {},
);

export const readReachProbes = list(
  fields({ protocol: text(20) }, { rtt: quantiles, loss: number, capacity: fields({ rate: interval }, {}) }),
  16,
);

const wait = fields({ how: text(40), asked: number, p50: number, p99: number }, {});
const honest = fields({ way: text(20), packet: number, rate: number }, {});
export const readAbility = fields({}, { timings: fields({}, { waits: list(wait, 24) }), honest: list(honest, 64) });

export const readSeries = fields({ id: text(40), index: number }, { kind: oneOf("scan", "repeat", "matrix"), point: dictionary(8) });
