//! `netaware udp`: a UDP stream as a measurement of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_io::udp_stream::SHORTEST_GAP_PS;
use netaware_record::{Direction, IpVersion, Record};
use netaware_stats::patience;
use netaware_units::{SendRate, Span};
use netaware_wire::control::{MAX_UDP_DRAIN, UdpPlan, UdpSend};

use crate::careful;
use crate::lane::Lane;
use crate::path;
use crate::progress::{Progress, Watch};
use crate::request::{Pace, UdpRequest};
use crate::transfer::{self, UdpOrder, UdpRound};
use crate::turns::{self, Course};

const LONGEST_TICK: Span = Span::from_millis(100);

/// Measures each version asked for, in turns when there are two.
pub fn udp(request: &UdpRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let course = Course {
        command: "udp",
        target: &request.target,
        options: options_of(request),
        time: request.time,
        // What is told of each arrival belongs to one stream, so that is not cut into turns.
        counted: request.packets.is_some() || request.histogram.is_some() || request.log || request.burst > 1,
        // Streams of both directions are opened one after the other.
        connects: i64::try_from(request.directions.each().len()).unwrap_or(1),
        drain: |_| MAX_UDP_DRAIN,
        preparing: &|exchange| preparing(request, exchange),
        settling: patience::after_the_end,
    };
    // Nothing is sent before the path is known where nobody typed a rate.
    let known: RefCell<Vec<(IpVersion, Vec<SendRate>)>> = RefCell::default();
    let prepare = |lane: &mut Lane, watch: &mut Watch<'_>| {
        if let Pace::AtMost(ceiling) = request.pace {
            watch.phase("UDP: what the path carries", Some(lane.version));
            let rates = careful_rates(lane, request, ceiling, stop);
            known.borrow_mut().push((lane.version, rates));
        }
    };
    turns::take(&course, stop, progress, &prepare, &|lane, found, rounds, watch| {
        let known = known.borrow();
        let rates = known.iter().find(|(version, _)| *version == lane.version);
        let orders = orders(request, rounds, rates.map_or(&[][..], |(_, rates)| rates));
        if is_too_close(request) {
            let apart = Span::from_nanos((SHORTEST_GAP_PS / 1000).cast_signed());
            lane.warn(&format!(
                "datagrams that are paced leave no closer than {apart} apart, and that is what was planned; -b 0 sends \
                 as fast as the host can, many with one call"
            ));
        }
        let done = transfer::udp(lane, &request.target, &orders, stop, watch);
        if done.iter().any(has_broken_its_times) {
            lane.warn(
                "launch times have no effect here: the sender's interface has no fq queueing discipline \
                 (tc qdisc replace dev NAME root fq); the program spaced the datagrams instead",
            );
        }
        if done.iter().any(UdpRound::carried_nothing) {
            path::explain_silence(lane, &request.target, stop, watch);
        }
        found.udp.extend(done);
    })
}

/// What [`careful_rates`] takes where nothing is lost.
fn preparing(request: &UdpRequest, exchange: Span) -> Span {
    let directions = request.directions.each().len();
    match request.pace {
        Pace::AtMost(_) => careful::lasts(exchange) * i64::try_from(directions).unwrap_or(1),
        Pace::Unlimited | Pace::Rate(_) | Pace::Spacing(_) => Span::ZERO,
    }
}

/// A rate for each direction.
fn careful_rates(lane: &mut Lane, request: &UdpRequest, ceiling: SendRate, stop: &StopFlag) -> Vec<SendRate> {
    let rate_of = |way: &Direction| {
        let rate = careful::rate(lane, &request.target, *way, request.length, ceiling, stop);
        let cut = careful::cut_burst(request.burst, request.length, rate).filter(|_| lane.is_alive());
        if let Some(what) = cut {
            lane.warn(&what);
        }
        rate
    };
    request.directions.each().iter().map(rate_of).collect()
}

/// Asked the queueing discipline to release the datagrams, and it did not.
fn has_broken_its_times(round: &UdpRound) -> bool {
    let sender = round.ended.udp_sender.as_ref();
    round.order.plan.send == UdpSend::LaunchTime && sender.is_some_and(|end| !end.released_by_queue)
}

fn one_by_one(send: UdpSend) -> UdpSend {
    if send == UdpSend::LaunchTime { send } else { UdpSend::Single }
}

/// `careful` has the rate of each direction where the request leaves it to the path.
fn orders(request: &UdpRequest, rounds: u16, careful: &[SendRate]) -> Vec<UdpOrder> {
    let burst = request.burst.max(1);
    // The pace, and how many datagrams leave at once.
    let leaving = |index: usize| match request.pace {
        // Of a direction that nobody has looked at, nothing is known.
        Pace::AtMost(ceiling) => {
            let unknown = || careful::unknown(request.length).min(ceiling);
            let rate = careful.get(index).copied().unwrap_or_else(unknown);
            (Pace::Rate(rate), careful::burst(burst, request.length, rate))
        }
        typed => (typed, burst),
    };
    let gap_ps =
        |(pace, burst): (Pace, u32)| gap_ps(request.length, burst, pace).map(|gap| gap.max(SHORTEST_GAP_PS));
    let order = |(index, direction): (usize, &_)| UdpOrder {
        plan: UdpPlan {
            direction: *direction,
            duration: request.time / i64::from(rounds),
            packets: request.packets,
            length: request.length,
            gap_ps: gap_ps(leaving(index)),
            // A paced stream is a promise about each datagram; batches would break it.
            send: if request.pace == Pace::Unlimited { request.send } else { one_by_one(request.send) },
            receive: request.receive,
            tick: request.interval.min(LONGEST_TICK),
            settle: None,
            round_trip: Span::ZERO,
            window: request.window,
            dscp: request.target.options.dscp,
            burst: leaving(index).1,
            histogram: request.histogram,
            log: request.log,
        },
        planned: None,
        cap: None,
        is_derived: matches!(request.pace, Pace::AtMost(_)),
        vlan: request.vlan,
        affinity: request.affinity.clone(),
        tell_every: Some(request.interval),
    };
    let planned = |order: UdpOrder| UdpOrder { planned: order.plan.rate().and_then(SendRate::new), ..order };
    request.directions.each().iter().enumerate().map(order).map(planned).collect()
}

/// From datagram to datagram, or from burst to burst: a rate is that of all datagrams of a burst.
fn gap_ps(length: u32, burst: u32, pace: Pace) -> Option<u64> {
    pace.gap_ps(length.saturating_mul(match pace {
        Pace::Rate(_) | Pace::AtMost(_) => burst.max(1),
        Pace::Unlimited | Pace::Spacing(_) => 1,
    }))
}

/// That datagrams were asked for closer than any are planned.
fn is_too_close(request: &UdpRequest) -> bool {
    gap_ps(request.length, request.burst, request.pace).is_some_and(|gap| gap < SHORTEST_GAP_PS)
}

fn options_of(request: &UdpRequest) -> BTreeMap<String, String> {
    let pace = match request.pace {
        Pace::Unlimited => "unlimited".to_owned(),
        Pace::Rate(rate) => rate.to_string(),
        Pace::AtMost(rate) => format!("at most {rate}"),
        Pace::Spacing(gap) => format!("one per {gap}"),
    };
    let given = [
        ("time", Some(request.time.to_string())),
        ("packets", request.packets.map(|packets| packets.to_string())),
        ("length", Some(format!("{} B", request.length))),
        ("direction", Some(format!("{:?}", request.directions).to_lowercase())),
        ("pace", Some(pace)),
        ("burst", (request.burst > 1).then(|| request.burst.to_string())),
        (
            "hist",
            request.histogram.map(|shape| format!("{} x {} from {}", shape.bins, shape.width, shape.low)),
        ),
        ("vlan", request.vlan.then(|| "true".into())),
        ("send", Some(format!("{:?}", request.send).to_lowercase())),
        ("receive", Some(format!("{:?}", request.receive).to_lowercase())),
        ("window", request.window.map(|window| format!("{window} B"))),
        ("dscp", (request.target.options.dscp > 0).then(|| request.target.options.dscp.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
