//! Columns of one way of a flow of STAMP packets: two lines per IP version.

use netaware_record::{DelaySummary, Direction, OwdResult, OwdWay};
use netaware_units::Span;

use super::{Column, optional};

/// One way with what it shares with the other.
pub(super) struct Row {
    all: OwdResult,
    direction: Direction,
    way: OwdWay,
}

/// There and back.
pub(super) fn ways(all: &OwdResult) -> [Row; 2] {
    [(Direction::Forward, &all.forward), (Direction::Reverse, &all.reverse)].map(|(direction, way)| Row {
        all: all.clone(),
        direction,
        way: way.clone(),
    })
}

pub(super) const OWD: &[Column<Row>] = &[
    ("direction", |r| r.direction.name().into()),
    ("port", |r| r.all.port.to_string()),
    ("payload_bytes", |r| r.all.payload.0.to_string()),
    ("spacing_ns", |r| r.all.spacing.0.to_string()),
    ("sent", |r| r.all.sent.to_string()),
    ("received", |r| r.all.received.to_string()),
    // Where the ways cannot be told apart it is a bound, and none of it is no count of zero.
    ("lost", |r| optional(Some(r.way.lost).filter(|lost| *lost > 0 || r.way.loss.is_some()))),
    ("lost_somewhere", |r| r.all.lost_somewhere.to_string()),
    ("unknown", |r| r.all.unknown.to_string()),
    ("not_sent", |r| r.all.not_sent.to_string()),
    ("late", |r| r.all.late.to_string()),
    ("loss", |r| optional(r.way.loss.map(|loss| format!("{loss:.6}")))),
    ("reordered", |r| r.way.reordered.to_string()),
    ("duplicates", |r| r.way.duplicates.to_string()),
    ("owd_min_ns", |r| delay(r, |d| d.min)),
    ("owd_p50_ns", |r| delay(r, |d| d.p50)),
    ("owd_p95_ns", |r| delay(r, |d| d.p95)),
    ("owd_p99_ns", |r| delay(r, |d| d.p99)),
    ("owd_max_ns", |r| delay(r, |d| d.max)),
    ("owd_mean_ns", |r| delay(r, |d| d.mean)),
    ("below_bound", |r| r.way.below_bound.to_string()),
    ("negative", |r| r.way.negative.to_string()),
    ("ipdv_p95_ns", |r| optional(r.way.ipdv.map(|d| d.p95.0))),
    ("pdv_p95_ns", |r| optional(r.way.pdv.map(|d| d.p95.0))),
    ("hops", |r| optional(r.way.hops)),
    ("dscp", |r| optional(r.way.dscp)),
    ("rtt_min_ns", |r| optional(r.all.rtt.map(|d| d.min.0))),
    ("rtt_p50_ns", |r| optional(r.all.rtt.map(|d| d.p50.0))),
    ("clock_offset_ns", |r| optional(r.all.clock.as_ref().map(|clock| clock.offset.0))),
    ("clock_bound_ns", |r| optional(r.all.clock.as_ref().map(|clock| clock.bound.0))),
    ("clock_skew_ppm", |r| optional(r.all.clock.as_ref().map(|clock| format!("{:.3}", clock.skew_ppm)))),
    ("clock_method", |r| r.all.clock.as_ref().map(|clock| clock.method.clone()).unwrap_or_default()),
    ("clock_doubts", |r| r.all.clock.as_ref().map(|clock| clock.doubts.join(" ")).unwrap_or_default()),
];

fn delay(row: &Row, of: impl Fn(&DelaySummary) -> Span) -> String {
    optional(row.way.delay.as_ref().map(|delay| of(delay).0))
}
