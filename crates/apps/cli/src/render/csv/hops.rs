//! Columns of a hop.

use netaware_record::{Hop, RateBound};

use super::{Column, optional};

pub(super) const HOP: &[Column<Hop>] = &[
    ("hop", |h| h.ttl.to_string()),
    ("addresses", |h| h.addresses.join(" ")),
    ("asked", |h| h.asked.to_string()),
    ("answered", |h| h.answered.to_string()),
    ("loss", |h| optional(h.loss.map(|loss| format!("{loss:.6}")))),
    ("rtt_min_ns", |h| optional(h.rtt_min.map(|span| span.0))),
    ("rtt_p50_ns", |h| optional(h.rtt_median.map(|span| span.0))),
    ("queueing_p50_ns", |h| optional(h.queueing.map(|queueing| queueing.median.0))),
    ("queueing_p90_ns", |h| optional(h.queueing.map(|queueing| queueing.p90.0))),
    ("queueing_own_mean_ns", |h| optional(h.queueing.map(|queueing| queueing.own_mean.0))),
    ("capacity_bps", |h| optional(h.capacity.as_ref().map(|it| it.rate.estimate.round()))),
    ("capacity_lo_bps", |h| optional(h.capacity.as_ref().map(|it| it.rate.lo.round()))),
    ("capacity_hi_bps", |h| optional(h.capacity.as_ref().map(|it| it.rate.hi.round()))),
    ("bound", |h| match h.capacity.as_ref().map(|it| it.bound) {
        None | Some(RateBound::None) => String::new(),
        Some(RateBound::AtLeast) => "at_least".into(),
        Some(RateBound::AtMost) => "at_most".into(),
    }),
    ("least_squares_bps", |h| optional(h.capacity.as_ref().and_then(|it| it.least_squares).map(f64::round))),
    ("way", |h| h.capacity.as_ref().map(|it| it.way.clone()).unwrap_or_default()),
    ("from_hop", |h| optional(h.capacity.as_ref().map(|it| it.from))),
    ("segments_bps", |h| {
        let rates = h.capacity.iter().flat_map(|it| &it.segments);
        rates.map(|rate| rate.round().to_string()).collect::<Vec<_>>().join(" ")
    }),
    ("sizes", |h| optional(h.capacity.as_ref().map(|it| it.sizes))),
    ("samples", |h| optional(h.capacity.as_ref().map(|it| it.samples))),
    ("train_bps", |h| optional(h.train.map(|train| train.rate.round()))),
    ("train_stretched", |h| optional(h.train.map(|train| train.stretched))),
    ("flags", |h| h.flags.join(" ")),
];
