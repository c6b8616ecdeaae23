//! `netaware tcp`: bulk TCP as a measurement of its own.

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_record::Record;
use netaware_units::Span;
use netaware_wire::control::TcpPlan;

use crate::attach;
use crate::path;
use crate::progress::Progress;
use crate::request::TcpRequest;
use crate::transfer::{self, TcpOrder, TcpRound};
use crate::turns::{self, Course};

/// Slices are at most this long, so that the slow-start rule sees enough of them.
const LONGEST_TICK: Span = Span::from_millis(100);

/// Measures each version asked for, in turns when there are two.
pub fn tcp(request: &TcpRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let course = Course {
        command: "tcp",
        target: &request.target,
        options: options_of(request),
        time: request.time,
        counted: request.bytes_in_all().is_some(),
        connects: attach::connects_in_turn(request.streams),
        drain: TcpPlan::longest_drain_after,
        preparing: &|_| Span::ZERO,
        settling: |_| Span::ZERO,
    };
    turns::take(&course, stop, progress, &|_, _| {}, &|lane, found, rounds, watch| {
        let orders = orders(request, rounds);
        let done = transfer::tcp(lane, &request.target, &orders, None, stop, watch);
        if done.iter().any(TcpRound::carried_nothing) {
            path::explain_silence(lane, &request.target, stop, watch);
        }
        found.tcp.extend(done);
    })
}

fn orders(request: &TcpRequest, rounds: u16) -> Vec<TcpOrder> {
    let order = |direction: &_| TcpOrder {
        direction: *direction,
        duration: request.time / i64::from(rounds),
        bytes: request.bytes_in_all(),
        blocks: request.blocks,
        block_spacing: request.block_spacing,
        streams: request.streams,
        length: request.length,
        rate: request.rate,
        cap: None,
        window: request.target.options.window,
        nodelay: request.nodelay,
        congestion: request.target.options.congestion.clone(),
        zerocopy: request.zerocopy,
        affinity: request.affinity.clone(),
        omit: request.omit,
        tick: request.interval.min(LONGEST_TICK),
        tell_every: Some(request.interval),
        per_stream: request.per_stream,
        bottleneck: request.bottleneck,
        at_once: false,
    };
    request.directions.each().iter().map(order).collect()
}

fn options_of(request: &TcpRequest) -> BTreeMap<String, String> {
    let options = &request.target.options;
    let given = [
        ("time", Some(request.time.to_string())),
        ("streams", Some(request.streams.to_string())),
        ("direction", Some(format!("{:?}", request.directions).to_lowercase())),
        ("bytes", request.bytes.map(|bytes| bytes.to_string())),
        ("blocks", request.blocks.map(|blocks| blocks.to_string())),
        ("block-spacing", request.block_spacing.map(|spacing| spacing.to_string())),
        ("length", request.length.map(|length| format!("{length} B"))),
        ("rate", request.rate.map(|rate| rate.to_string())),
        ("window", options.window.map(|window| format!("{window} B"))),
        ("mss", options.mss.map(|mss| format!("{mss} B"))),
        ("nodelay", request.nodelay.then(|| "true".into())),
        ("congestion", options.congestion.clone()),
        ("omit", request.omit.map(|omit| omit.to_string())),
        ("zerocopy", request.zerocopy.then(|| "true".into())),
        ("per-stream", request.per_stream.then(|| "true".into())),
        (
            "bottleneck",
            request.bottleneck.map(|link| format!("{}, {} B per packet", link.rate, link.overhead)),
        ),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
