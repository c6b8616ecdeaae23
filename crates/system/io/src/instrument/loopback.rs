//! The maximum network system throughput: what the stack moves when there is no network in between.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use netaware_record::{
    Direction, Effort, LoopbackHow, LoopbackMaximum, TcpEnd, UdpReceiverEnd, UdpSenderEnd,
};
use netaware_units::{BitRate, ByteCount, Span};
use netaware_wire::control::{TcpPlan, UdpPlan, UdpReceive, UdpSend};

use super::{allowed_cores, times};
use crate::options::{Reuse, SocketOptions, bind_udp, connect_tcp, listen_tcp};
use crate::priority::Permits;
use crate::stop::StopFlag;
use crate::{tcp, udp_stream};

/// Small and large datagrams a call each and segmented, then TCP; each on one core, then on all.
/// What cannot be run is left out. Quick takes 1.5 s, full 5 s.
///
/// "All cores" is a flow for each two cores, so that each end has one: more would only take turns.
/// TCP gets as many.
pub fn loopback(effort: Effort, stop: &StopFlag) -> Vec<LoopbackMaximum> {
    let duration = Span::from_millis(times(effort, 120, 500) as i64);
    let cores = allowed_cores();
    let mut settings = vec![Cores::One(cores.first().copied().unwrap_or(0))];
    if cores.len() > 1 {
        settings.push(Cores::All(cores.len()));
    }
    let mut found = Vec::new();
    for (how, payload) in KINDS {
        for cores in &settings {
            if stop.is_raised() {
                return found;
            }
            found.extend(match how {
                LoopbackHow::Tcp => tcp_maximum(*cores, duration, stop),
                _ => udp_maximum(how, payload, *cores, duration, stop),
            });
        }
    }
    found
}

/// Where threads may run.
#[derive(Debug, Clone, Copy)]
enum Cores {
    /// All on this one.
    One(usize),
    /// Anywhere on so many.
    All(usize),
}

impl Cores {
    fn count(self) -> u32 {
        match self {
            Self::One(_) => 1,
            Self::All(count) => count as u32,
        }
    }

    fn flows(self) -> u32 {
        (self.count() / 2).max(1)
    }

    fn pinned(self) -> Option<usize> {
        match self {
            Self::One(core) => Some(core),
            Self::All(_) => None,
        }
    }
}

fn udp_maximum(
    how: LoopbackHow,
    payload: u32,
    cores: Cores,
    duration: Span,
    stop: &StopFlag,
) -> Option<LoopbackMaximum> {
    let plan = udp_plan(how, payload, duration);
    let flows = cores.flows();
    let ends: Vec<(UdpSenderEnd, UdpReceiverEnd)> = thread::scope(|scope| {
        let begun: Vec<_> = (0..flows)
            .map(|flow| {
                scope.spawn({
                    let plan = &plan;
                    move || udp_flow(flow, plan, cores.pinned(), stop)
                })
            })
            .collect();
        begun.into_iter().filter_map(|flow| flow.join().ok().flatten()).collect()
    });
    let received: u64 = ends.iter().map(|(_, end)| end.received).sum();
    let sent: u64 = ends.iter().map(|(end, _)| end.sent).sum();
    let took = ends.iter().map(|(_, end)| end.elapsed).max()?;
    let rate = BitRate::mean(ByteCount(received * u64::from(payload)), took)?;
    (received > 0).then(|| LoopbackMaximum {
        how,
        cores: cores.count(),
        flows,
        payload,
        packets_per_second: Some(received as f64 / took.secs_f64()),
        rate,
        lost: (sent > 0).then(|| 1.0 - (received as f64 / sent as f64).min(1.0)),
        took,
    })
}

fn udp_flow(
    flow: u32,
    plan: &UdpPlan,
    core: Option<usize>,
    stop: &StopFlag,
) -> Option<(UdpSenderEnd, UdpReceiverEnd)> {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let bind = || bind_udp(here, &SocketOptions::default(), Reuse::No).ok();
    let (out, into) = (bind()?, bind()?);
    out.connect(into.local_addr().ok()?).ok()?;
    into.connect(out.local_addr().ok()?).ok()?;
    let ready = udp_stream::ready(into, plan);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| udp_stream::receive(ready, flow, plan, core, stop, &mut |_| {}));
        let sent = udp_stream::send(out, flow, plan, core, &Permits::unlimited(), stop);
        Some((sent, receiver.join().ok()?))
    })
}

fn udp_plan(how: LoopbackHow, payload: u32, duration: Span) -> UdpPlan {
    let (send, receive) = match how {
        LoopbackHow::UdpSegmented => (UdpSend::Gso, UdpReceive::Gro),
        _ => (UdpSend::Single, UdpReceive::Single),
    };
    UdpPlan {
        direction: Direction::Forward,
        duration,
        packets: None,
        length: payload,
        gap_ps: None,
        send,
        receive,
        tick: duration,
        settle: Some(SETTLE),
        round_trip: Span::ZERO,
        window: None,
        dscp: 0,
        burst: 1,
        histogram: None,
        log: false,
    }
}

fn tcp_maximum(cores: Cores, duration: Span, stop: &StopFlag) -> Option<LoopbackMaximum> {
    let listener = listen_tcp((Ipv4Addr::LOCALHOST, 0).into(), 64).ok()?;
    let to = listener.local_addr().ok()?;
    let flows = cores.flows();
    let mut out = Vec::new();
    let mut into = Vec::new();
    for _ in 0..flows {
        out.push(connect_tcp(to, &SocketOptions::default(), PATIENCE).ok()?);
        into.push(listener.accept().ok()?.0);
    }
    let plan = TcpPlan {
        streams: u16::try_from(flows).unwrap_or(u16::MAX),
        tick: duration,
        ..TcpPlan::new(Direction::Forward, duration)
    };
    let affinity: Vec<usize> = cores.pinned().into_iter().collect();
    let end: TcpEnd = thread::scope(|scope| {
        let receiver = scope.spawn(|| tcp::receive(into, &plan, &affinity, stop, &mut |_| {}));
        tcp::send(out, &plan, &affinity, stop, &mut |_| {});
        receiver.join().ok()
    })?;
    let rate = BitRate::mean(end.bytes, end.elapsed)?;
    (end.bytes > ByteCount(0)).then(|| LoopbackMaximum {
        how: LoopbackHow::Tcp,
        cores: cores.count(),
        flows,
        payload: plan.length,
        packets_per_second: None,
        rate,
        lost: None,
        took: end.elapsed,
    })
}

/// What is run, with UDP payloads in bytes: the packet rate shows with small ones, the bit rate
/// with large ones.
const KINDS: [(LoopbackHow, u32); 5] = [
    (LoopbackHow::UdpSingle, 100),
    (LoopbackHow::UdpSingle, 1472),
    (LoopbackHow::UdpSegmented, 100),
    (LoopbackHow::UdpSegmented, 1472),
    (LoopbackHow::Tcp, 0),
];
/// Loopback has delivered long before.
const SETTLE: Span = Span::from_millis(5);
const PATIENCE: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_comes_through_loopback_and_no_more_than_was_sent() {
        let found = loopback(Effort::Quick, &StopFlag::new());
        for (how, payload) in KINDS {
            let is_it = |it: &&LoopbackMaximum| {
                it.how == how && it.cores == 1 && (it.payload == payload || how == LoopbackHow::Tcp)
            };
            let one = found.iter().find(is_it).unwrap();
            assert!(one.rate > BitRate(0) && one.flows == 1, "{one:?}");
            let is_udp = how != LoopbackHow::Tcp;
            assert_eq!((one.lost.is_some(), one.packets_per_second.is_some()), (is_udp, is_udp), "{one:?}");
            assert!(one.lost.is_none_or(|lost| (0.0..1.0).contains(&lost)), "{one:?}");
            if let Some(packets) = one.packets_per_second {
                let rate = packets * f64::from(payload) * 8.0;
                assert!((one.rate.0 as f64 / rate - 1.0).abs() < 0.01, "{one:?}");
            }
        }
    }

    #[test]
    fn a_raised_flag_leaves_the_rest_out() {
        let stop = StopFlag::new();
        stop.raise();
        assert_eq!(loopback(Effort::Full, &stop), []);
    }
}
