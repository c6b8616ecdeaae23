//! Columns of a protocol that a host was asked with.

use netaware_record::{RateBound, ReachProtocol, ReachResult};

use super::{Column, optional};

pub(super) const REACH: &[Column<ReachResult>] = &[
    ("protocol", |r| match r.protocol {
        ReachProtocol::Echo => "echo".into(),
        ReachProtocol::Tcp => "tcp".into(),
        ReachProtocol::Udp => "udp".into(),
        ReachProtocol::Timestamp => "timestamp".into(),
    }),
    ("port", |r| optional(r.port)),
    ("asked", |r| r.asked.to_string()),
    ("answered", |r| r.answered.to_string()),
    ("answers", |r| r.answers.join(" ")),
    ("loss", |r| optional(r.loss.map(|loss| format!("{loss:.6}")))),
    ("lost_forward", |r| optional(r.by_direction.map(|by| by.forward))),
    ("lost_reverse", |r| optional(r.by_direction.map(|by| by.reverse))),
    ("judged", |r| optional(r.by_direction.map(|by| by.of))),
    ("rtt_min_ns", |r| optional(r.rtt.map(|rtt| rtt.min.0))),
    ("rtt_p50_ns", |r| optional(r.rtt.map(|rtt| rtt.p50.0))),
    ("rtt_p95_ns", |r| optional(r.rtt.map(|rtt| rtt.p95.0))),
    ("rtt_max_ns", |r| optional(r.rtt.map(|rtt| rtt.max.0))),
    ("capacity_bps", |r| optional(r.capacity.as_ref().map(|it| it.rate.estimate.round()))),
    ("capacity_lo_bps", |r| optional(r.capacity.as_ref().map(|it| it.rate.lo.round()))),
    ("capacity_hi_bps", |r| optional(r.capacity.as_ref().map(|it| it.rate.hi.round()))),
    ("bound", |r| match r.capacity.as_ref().map(|it| it.bound) {
        None | Some(RateBound::None) => String::new(),
        Some(RateBound::AtLeast) => "at_least".into(),
        Some(RateBound::AtMost) => "at_most".into(),
    }),
    ("bytes", |r| r.bytes.0.to_string()),
    ("took_ns", |r| r.took.0.to_string()),
    ("flags", |r| r.flags.join(" ")),
    ("queued", |r| optional(r.queues.as_ref().map(|it| it.queued.name()))),
    ("queue_forward_p50_ns", |r| optional(r.queues.as_ref().map(|it| it.forward.median.0))),
    ("queue_forward_p90_ns", |r| optional(r.queues.as_ref().map(|it| it.forward.p90.0))),
    ("queue_reverse_p50_ns", |r| optional(r.queues.as_ref().map(|it| it.reverse.median.0))),
    ("queue_reverse_p90_ns", |r| optional(r.queues.as_ref().map(|it| it.reverse.p90.0))),
    ("queue_resolution_ns", |r| optional(r.queues.as_ref().map(|it| it.resolution.0))),
    ("not_sent", |r| r.not_sent.to_string()),
];
