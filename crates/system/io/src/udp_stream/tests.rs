use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use netaware_record::{Direction, Outcome};
use netaware_units::{BitRate, ByteCount};
use netaware_wire::control::{UdpReceive, UdpSend};
use netaware_wire::datagram::{HEADER_LEN, Header, Kind};

use super::*;
use crate::options::{Reuse, SocketOptions, bind_udp};

pub(super) fn plan(length: u32, gap: Option<Span>) -> UdpPlan {
    UdpPlan {
        direction: Direction::Forward,
        duration: Span::from_secs(20),
        packets: None,
        length,
        gap_ps: gap.map(|gap| gap.0.cast_unsigned() * 1000),
        send: UdpSend::Single,
        receive: UdpReceive::Single,
        tick: Span::from_millis(50),
        settle: None,
        round_trip: Span::ZERO,
        window: None,
        dscp: 0,
        burst: 1,
        histogram: None,
        log: false,
    }
}

pub(super) fn pair() -> (UdpSocket, UdpSocket) {
    let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let open = || bind_udp(any, &SocketOptions::default(), Reuse::No).unwrap();
    let (one, other) = (open(), open());
    one.connect(other.local_addr().unwrap()).unwrap();
    other.connect(one.local_addr().unwrap()).unwrap();
    (one, other)
}

fn transfer(plan: &UdpPlan, stop: &StopFlag) -> (UdpSenderEnd, UdpReceiverEnd, Vec<ReceiverTick>) {
    transfer_watched(plan, stop, &|_| {})
}

/// Transfers, and calls `watch` with each tick of the receiver.
fn transfer_watched(
    plan: &UdpPlan,
    stop: &StopFlag,
    watch: &(dyn Fn(&ReceiverTick) + Sync),
) -> (UdpSenderEnd, UdpReceiverEnd, Vec<ReceiverTick>) {
    let (out, into) = pair();
    let ticks = Mutex::new(Vec::new());
    let (sent, received) = std::thread::scope(|scope| {
        let into = ready(into, plan);
        let receiver = scope.spawn(|| {
            receive(into, 7, plan, None, stop, &mut |tick| {
                watch(&tick);
                ticks.lock().unwrap().push(tick);
            })
        });
        let sent = send(out, 7, plan, None, &Permits::unlimited(), stop);
        (sent, receiver.join().unwrap())
    });
    (sent, received, ticks.into_inner().unwrap())
}

pub(super) fn emit(socket: &UdpSocket, kind: Kind, flow: u32, seq: u64) {
    let mut bytes = [0; 64];
    Header { kind, flow, seq, sent_at: clock::now().0 }.emit(&mut bytes);
    socket.send(&bytes).unwrap();
}

#[test]
fn every_way_of_sending_and_receiving_accounts_for_every_datagram() {
    for send in [UdpSend::Single, UdpSend::Mmsg, UdpSend::Gso] {
        for receive in [UdpReceive::Single, UdpReceive::Mmsg, UdpReceive::Gro] {
            for length in [HEADER_LEN as u32, 64, 1472, 9000] {
                // Fewer bytes than the smallest default receive buffer: nothing may be lost even
                // without privilege.
                let packets = if length > 1500 { 10 } else { 77 };
                let plan = UdpPlan { send, receive, packets: Some(packets), ..plan(length, None) };
                let (sent, received, ticks) = transfer(&plan, &StopFlag::new());
                let case = format!("{send:?} {receive:?} {length}");
                assert_eq!(
                    (sent.outcome, received.outcome),
                    (Outcome::Complete, Outcome::Complete),
                    "{case}"
                );
                assert_eq!((sent.sent, received.received), (packets, packets), "{case}: {received:?}");
                assert_eq!(sent.bytes, ByteCount(packets * u64::from(length)), "{case}");
                assert_eq!(sent.bytes, received.bytes, "{case}");
                assert_eq!(
                    (received.duplicates, received.reordered, received.foreign),
                    (Some(0), Some(0), Some(0)),
                    "{case}"
                );
                assert_eq!(ticks.iter().map(|tick| tick.packets).sum::<u64>(), packets, "{case}");
                assert!(received.loss_runs.is_empty() && received.delay_variation.is_some(), "{case}");
                let gaps_expected = cfg!(target_os = "linux") && receive != UdpReceive::Gro;
                assert_eq!(received.gaps.is_some(), gaps_expected, "{case}");
            }
        }
    }
}

#[test]
fn a_paced_stream_keeps_its_mean_and_counts_what_it_left_out() {
    let gap = Span::from_micros(500);
    let plan = UdpPlan { packets: Some(1000), send: UdpSend::Gso, ..plan(200, Some(gap)) };
    let (sent, received, _) = transfer(&plan, &StopFlag::new());
    assert_eq!(sent.outcome, Outcome::Complete);
    assert_eq!(sent.sent + sent.not_sent, 1000, "{sent:?}");
    assert_eq!(sent.calls, sent.sent, "paced datagrams leave one by one");
    assert_eq!(received.received + received.drops.socket.unwrap(), sent.sent);
    assert_eq!(received.planned, Some(BitRate(3_200_000)));
    let gaps = sent.gaps.unwrap();
    assert_eq!((gaps.planned, gaps.count), (Some(gap), sent.sent - 1));
    // From the first deadline to the last: never faster than planned.
    let left_out = i64::try_from(sent.not_sent).unwrap();
    assert!(sent.elapsed + gap * (2 + left_out) >= gap * 999, "{}", sent.elapsed);
    assert!(
        (Span::ZERO..sent.elapsed).contains(&received.jitter.unwrap())
            && received.receive_buffer > Some(ByteCount(0))
    );
}

#[test]
fn a_stop_ends_both_with_what_they_have() {
    for gap in [None, Some(Span::from_millis(3)), Some(Span::from_secs(5))] {
        let stop = StopFlag::new();
        let raised_at = Mutex::new(None);
        // Once something has come.
        let (sent, received, _) = transfer_watched(&plan(100, gap), &stop, &|tick| {
            if tick.packets > 0 && !stop.is_raised() {
                *raised_at.lock().unwrap() = Some(clock::now());
                stop.raise();
            }
        });
        let took = clock::now() - raised_at.into_inner().unwrap().expect("datagrams come");
        assert_eq!((sent.outcome, received.outcome), (Outcome::Interrupted, Outcome::Interrupted), "{gap:?}");
        assert!(sent.sent > 0 && received.received > 0, "{gap:?}");
        assert!(took < Span::from_secs(4), "{gap:?}: ended by the flag, not by the plan: {took}");
    }
}

#[test]
fn a_port_that_nobody_listens_on_does_not_end_a_stream() {
    for gap in [None, Some(Span::from_micros(200))] {
        let (out, into) = pair();
        drop(into);
        let plan = UdpPlan { packets: Some(200), ..plan(64, gap) };
        let sent = send(out, 1, &plan, None, &Permits::unlimited(), &StopFlag::new());
        assert_eq!((sent.outcome, sent.sent + sent.not_sent), (Outcome::Complete, 200), "{gap:?}: {sent:?}");
        // Each answer is about an earlier datagram, and the next one leaves at once.
        assert!(sent.sent > 100, "{gap:?}: {sent:?}");
        let refused =
            sent.refusals.first().map(|refusal| (refusal.count > 0, refusal.cause.contains("refused")));
        assert_eq!(refused, Some((true, true)), "{gap:?}: {sent:?}");
    }
}

#[test]
fn a_stream_of_which_nothing_left_is_not_complete() {
    for gap in [None, Some(Span::from_millis(1))] {
        // Not connected: the system refuses each datagram.
        let out =
            bind_udp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), &SocketOptions::default(), Reuse::No);
        let plan = UdpPlan { duration: Span::from_millis(60), ..plan(64, gap) };
        let sent = send(out.unwrap(), 1, &plan, None, &Permits::unlimited(), &StopFlag::new());
        assert_eq!((sent.outcome, sent.sent), (Outcome::Failed, 0), "{gap:?}");
        // Nor was the system asked in a busy loop.
        assert!((1..=120).contains(&sent.not_sent), "{gap:?}: {sent:?}");
        assert_eq!(sent.refusals.iter().map(|refusal| refusal.not_sent).sum::<u64>(), sent.calls, "{sent:?}");
    }
}

#[test]
fn datagrams_longer_than_half_of_what_an_offload_takes_are_sent() {
    let v4 = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let v6 = SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), 0);
    for (at, length, packets) in
        [(v4, 33_000, 5), (v4, 65_507, 1), (v6, 33_000, 5), (v6, 65_507, 3), (v4, 20_000, 1), (v6, 20_000, 7)]
    {
        // Loopback of this host may be without IPv6.
        let Ok(into) = bind_udp(at, &SocketOptions::default(), Reuse::No) else { continue };
        let out = bind_udp(at, &SocketOptions::default(), Reuse::No).unwrap();
        out.connect(into.local_addr().unwrap()).unwrap();
        into.connect(out.local_addr().unwrap()).unwrap();
        let plan = UdpPlan {
            send: UdpSend::Gso,
            receive: UdpReceive::Gro,
            packets: Some(packets),
            ..plan(length, None)
        };
        let (sent, received) = std::thread::scope(|scope| {
            let into = ready(into, &plan);
            let receiver = scope.spawn(|| receive(into, 7, &plan, None, &StopFlag::new(), &mut |_| {}));
            (send(out, 7, &plan, None, &Permits::unlimited(), &StopFlag::new()), receiver.join().unwrap())
        });
        assert_eq!(
            (sent.outcome, sent.sent, sent.not_sent),
            (Outcome::Complete, packets, 0),
            "{length}: {sent:?}"
        );
        assert_eq!(sent.refusals, [], "{length}");
        let all = received.received + received.drops.socket.unwrap();
        assert_eq!((received.outcome, all), (Outcome::Complete, packets), "{length}: {received:?}");
    }
}

#[test]
fn holes_copies_and_strangers_are_told_apart_on_the_wire() {
    for receive_how in [UdpReceive::Single, UdpReceive::Mmsg, UdpReceive::Gro] {
        let (out, into) = pair();
        let plan = UdpPlan { receive: receive_how, ..plan(64, None) };
        let received = std::thread::scope(|scope| {
            let into = ready(into, &plan);
            let receiver = scope.spawn(|| receive(into, 5, &plan, None, &StopFlag::new(), &mut |_| {}));
            for seq in [0, 1, 1, 4, 2] {
                emit(&out, Kind::Data, 5, seq);
            }
            emit(&out, Kind::Data, 6, 9);
            out.send(b"hello").unwrap();
            emit(&out, Kind::End, 6, 1);
            emit(&out, Kind::End, 5, 7);
            receiver.join().unwrap()
        });
        assert_eq!(received.outcome, Outcome::Complete);
        assert_eq!(
            (received.received, received.duplicates, received.reordered),
            (4, Some(1), Some(1)),
            "{received:?}"
        );
        assert_eq!((received.foreign, received.highest), (Some(3), 5), "{received:?}");
        assert_eq!(received.loss_runs, [(1, 1), (2, 1)]);
    }
}

#[test]
fn a_receiver_that_hears_nothing_ends_and_has_failed() {
    let (_out, into) = pair();
    let plan = UdpPlan { duration: Span::from_millis(10), ..plan(64, None) };
    let received = receive(ready(into, &plan), 1, &plan, None, &StopFlag::new(), &mut |_| {});
    assert_eq!((received.outcome, received.received), (Outcome::Failed, 0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_receive_buffer_is_counted_as_drops_of_this_host() {
    let (out, into) = pair();
    let plan = UdpPlan { window: Some(4096), packets: Some(2000), send: UdpSend::Gso, ..plan(1000, None) };
    socket2::SockRef::from(&into).set_recv_buffer_size(4096).unwrap();
    let received = std::thread::scope(|scope| {
        let into = ready(into, &plan);
        let receiver = scope.spawn(|| receive(into, 1, &plan, None, &StopFlag::new(), &mut |_| {}));
        let sent = send(out, 1, &plan, None, &Permits::unlimited(), &StopFlag::new());
        assert_eq!(sent.sent, 2000);
        receiver.join().unwrap()
    });
    assert!(received.drops.socket > Some(0), "{received:?}");
    // The datagrams that say the end are five, and may find no room either.
    let all = received.received + received.drops.socket.unwrap();
    assert!((2000..=2005).contains(&all), "each loss here is a drop: {received:?}");
}
