//! `netaware udp`: a UDP stream as a measurement of its own.

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_record::Record;
use netaware_units::{BitRate, Span};
use netaware_wire::control::{UdpPlan, UdpSend};

use crate::progress::Progress;
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
        counted: request.packets.is_some(),
    };
    turns::take(course, stop, progress, &|lane, found, rounds, watch| {
        let orders = orders(request, rounds);
        let done = transfer::udp(lane, &request.target, &orders, stop, watch);
        if done.iter().any(has_broken_its_times) {
            lane.warn(
                "launch times have no effect here: the sender's interface has no fq queueing discipline \
                 (tc qdisc replace dev NAME root fq); the program spaced the datagrams instead",
            );
        }
        found.udp.extend(done);
    })
}

/// Asked the queueing discipline to release the datagrams, and it did not.
fn has_broken_its_times(round: &UdpRound) -> bool {
    let sender = round.ended.udp_sender.as_ref();
    round.order.plan.send == UdpSend::LaunchTime && sender.is_some_and(|end| !end.released_by_queue)
}

fn one_by_one(send: UdpSend) -> UdpSend {
    if send == UdpSend::LaunchTime { send } else { UdpSend::Single }
}

fn orders(request: &UdpRequest, rounds: u16) -> Vec<UdpOrder> {
    let gap_ps = request.pace.gap_ps(request.length);
    let order = |direction: &_| UdpOrder {
        plan: UdpPlan {
            direction: *direction,
            duration: request.time / i64::from(rounds),
            packets: request.packets,
            length: request.length,
            gap_ps,
            // A paced stream is a promise about each datagram; batches would break it.
            send: if gap_ps.is_some() { one_by_one(request.send) } else { request.send },
            receive: request.receive,
            tick: request.interval.min(LONGEST_TICK),
            settle: None,
            window: request.window,
            dscp: request.target.options.dscp,
        },
        planned: gap_ps.map(|gap_ps| planned_rate(request.length, gap_ps)),
        affinity: request.affinity.clone(),
        tell_every: Some(request.interval),
    };
    request.directions.each().iter().map(order).collect()
}

fn planned_rate(length: u32, gap_ps: u64) -> BitRate {
    let bits_times_1e12 = u128::from(length) * 8 * 1_000_000_000_000;
    BitRate((bits_times_1e12 / u128::from(gap_ps.max(1))).try_into().unwrap_or(u64::MAX))
}

fn options_of(request: &UdpRequest) -> BTreeMap<String, String> {
    let pace = match request.pace {
        Pace::Unlimited => "unlimited".to_owned(),
        Pace::Rate(rate) => rate.to_string(),
        Pace::Spacing(gap) => format!("one per {gap}"),
    };
    let given = [
        ("time", Some(request.time.to_string())),
        ("packets", request.packets.map(|packets| packets.to_string())),
        ("length", Some(format!("{} B", request.length))),
        ("direction", Some(format!("{:?}", request.directions).to_lowercase())),
        ("pace", Some(pace)),
        ("send", Some(format!("{:?}", request.send).to_lowercase())),
        ("receive", Some(format!("{:?}", request.receive).to_lowercase())),
        ("window", request.window.map(|window| format!("{window} B"))),
        ("dscp", (request.target.options.dscp > 0).then(|| request.target.options.dscp.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
