//! What became of the packets of one direction, in figures.

use std::collections::BTreeMap;

use netaware_netmodel::DropCause;
use netaware_probe::summary;
use netaware_record::DelaySummary;
use netaware_units::Span;
use serde::Serialize;

use crate::drive::Way;

/// One direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaySummary {
    /// Packets that left the host.
    pub sent: u64,
    /// Packets that did not, because they are larger than the host knows the path to take.
    pub not_sent: u64,
    /// Packets that arrived as they were sent, copies left out.
    pub arrived: u64,
    /// Packets that left and did not arrive so.
    pub lost: u64,
    /// Lost ones by cause; causes without any are left out.
    pub causes: BTreeMap<&'static str, u64>,
    /// Further copies.
    pub copies: u64,
    /// Arrived after a packet with a higher number.
    pub reordered: u64,
    /// True one-way delay of those that arrived.
    pub delay: Option<DelaySummary>,
}

impl WaySummary {
    pub(super) fn of(way: &Way) -> Self {
        let delays: Vec<Span> = way.delays.iter().map(|(_, delay)| *delay).collect();
        Self {
            sent: way.sent,
            not_sent: way.not_sent,
            arrived: way.delays.len() as u64,
            lost: way.lost(),
            causes: causes(way),
            copies: way.copies,
            reordered: reordered(way),
            delay: summary::of_delays(&delays),
        }
    }

    /// Of those sent, 0..=1.
    pub(super) fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }
}

fn causes(way: &Way) -> BTreeMap<&'static str, u64> {
    let dropped = DropCause::ALL.into_iter().zip(way.dropped).map(|(cause, count)| (word(cause), count));
    let others = [("bit error", way.corrupted), ("too big, answered", way.too_big)];
    let others = others.into_iter().chain([("hop limit, answered", way.time_exceeded)]);
    dropped.chain(others).filter(|(_, count)| *count > 0).collect()
}

/// As people say it.
const fn word(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Queue => "queue full",
        DropCause::CoDel => "CoDel",
        DropCause::Loss => "wire",
        DropCause::Policer => "policer",
        DropCause::Mtu => "too big, silent",
        DropCause::HopLimit => "hop limit, silent",
        DropCause::BlackHole => "black hole",
        DropCause::AnswerLost => "answer lost",
        DropCause::Outage => "outage",
        DropCause::Filter => "filter",
        DropCause::Reset => "reset",
    }
}

/// RFC 4737 §3.
fn reordered(way: &Way) -> u64 {
    let mut highest = 0;
    let mut count = 0;
    for (tag, _) in &way.delays {
        count += u64::from(*tag < highest);
        highest = highest.max(*tag);
    }
    count
}
