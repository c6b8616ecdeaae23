//! Hops that tests make up, answer by answer.

use std::net::IpAddr;

use netaware_units::{Mono, Span};

use super::log::Exchange;
use super::method::Hops;
use super::plan::{CapacityWay, HopsPlan};
use super::round::{Fate, Kind, Reply, Told, What};

/// A path of so many hops of which nothing else is known; packets of 64 to 1500 bytes over IPv4.
pub(super) fn hops(end: u8) -> Hops {
    let mut hops = Hops::new(HopsPlan {
        max_hops: end,
        smallest: 64,
        largest: 1500,
        tail: 40,
        header: 20,
        sizes: Vec::new(),
        time: Span::from_secs(10),
        per_hop: None,
        way: CapacityWay::Automatic,
        echo: true,
        trains: false,
        stamp_error: Span(50),
        send_gap: Span(1_000),
        seed: 1,
    });
    hops.end = end;
    hops
}

/// Questions of one length, each answered by `reply` bytes after so many ms.
pub(super) fn answered(kind: Kind, length: u32, reply: u32, millis: &[i64]) -> Vec<Exchange> {
    let after = |ms: &i64| Exchange { kind, length, rtt: Span::from_millis(*ms), reply_length: Some(reply) };
    millis.iter().map(after).collect()
}

/// A probe that left at the begin, and what 192.0.2.`from` said to it so many ms later.
pub(super) fn told(what: What, from: u8, millis: i64) -> Told {
    let reply = Reply {
        at: Mono(0) + Span::from_millis(millis),
        from: IpAddr::from([192, 0, 2, from]),
        what,
        length: Some(56),
        ident: None,
        stamps: None,
    };
    Told { sent_at: Mono(0), fate: Fate::Answered(reply) }
}

/// A probe to which nobody said anything.
pub(super) const SILENT: Told = Told { sent_at: Mono(0), fate: Fate::Silent };
