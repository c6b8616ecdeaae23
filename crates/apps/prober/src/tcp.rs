//! `netaware tcp`: bulk TCP as a measurement of its own.

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_record::Record;
use netaware_units::Span;

use crate::lane;
use crate::progress::{Progress, Watch};
use crate::report::{self, Findings};
use crate::request::TcpRequest;
use crate::transfer::{self, TcpOrder};

/// Slices are at most this long, so that the slow-start rule sees enough of them.
const LONGEST_TICK: Span = Span::from_millis(100);

/// Turns of each version when both are measured: two, in ABBA order.
const ROUNDS: u16 = 2;

/// Measures each version asked for, in turns when there are two.
pub fn tcp(request: &TcpRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("tcp", &request.target, options_of(request));
    let versions = i64::try_from(request.target.versions.len()).unwrap_or(1);
    let mut watch = Watch::new(request.time * versions, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let mut findings: Vec<Findings> = lanes.iter().map(|_| Findings::default()).collect();
    lane::reserve_all(&mut lanes, request.time * versions + Span::from_secs(5), stop, &mut watch);

    let alive = lanes.iter().filter(|lane| lane.is_alive()).count();
    let rounds = rounds(alive, request.bytes.is_some());
    for round in 0..rounds {
        for turn in lane::turns(lanes.len(), round) {
            let (lane, found) = (&mut lanes[turn], &mut findings[turn]);
            if stop.is_raised() || !lane.is_alive() {
                continue;
            }
            watch.phase("TCP", Some(lane.version));
            let orders = orders(request, rounds);
            found.tcp.extend(transfer::tcp(lane, &request.target, &orders, None, stop, &mut watch));
        }
    }
    report::finish(opened, lanes, &findings, stop)
}

/// One version has nothing to take turns with, and a number of bytes is not split.
pub(crate) fn rounds(alive: usize, counted: bool) -> u16 {
    if alive > 1 && !counted { ROUNDS } else { 1 }
}

fn orders(request: &TcpRequest, rounds: u16) -> Vec<TcpOrder> {
    let order = |direction: &_| TcpOrder {
        direction: *direction,
        duration: request.time / i64::from(rounds),
        bytes: request.bytes,
        streams: request.streams,
        length: request.length,
        rate: request.rate,
        nodelay: request.nodelay,
        congestion: request.target.options.congestion.clone(),
        zerocopy: request.zerocopy,
        affinity: request.affinity.clone(),
        omit: request.omit,
        tick: request.interval.min(LONGEST_TICK),
        tell_every: Some(request.interval),
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
        ("length", request.length.map(|length| format!("{length} B"))),
        ("rate", request.rate.map(|rate| rate.to_string())),
        ("window", options.window.map(|window| format!("{window} B"))),
        ("mss", options.mss.map(|mss| format!("{mss} B"))),
        ("nodelay", request.nodelay.then(|| "true".into())),
        ("dscp", (options.dscp > 0).then(|| options.dscp.to_string())),
        ("congestion", options.congestion.clone()),
        ("omit", request.omit.map(|omit| omit.to_string())),
        ("zerocopy", request.zerocopy.then(|| "true".into())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
