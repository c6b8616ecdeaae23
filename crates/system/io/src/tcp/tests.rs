use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use netaware_record::Direction;
use netaware_units::BitRate;

mod carried;
mod silent;
mod spaced;
mod stalled;
mod times;

use super::*;
use crate::options::{SocketOptions, connect_tcp, listen_tcp};

fn plan(streams: u16, millis: i64) -> TcpPlan {
    TcpPlan {
        streams,
        length: DEFAULT_LENGTH,
        tick: Span::from_millis(50),
        ..TcpPlan::new(Direction::Forward, Span::from_millis(millis))
    }
}

fn pairs(count: u16) -> (Vec<TcpStream>, Vec<TcpStream>) {
    pairs_with(count, &SocketOptions::default())
}

fn pairs_with(count: u16, options: &SocketOptions) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let listener = listen_tcp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), 16).unwrap();
    let to = listener.local_addr().unwrap();
    (0..count)
        .map(|_| {
            let out = connect_tcp(to, options, Span::from_secs(2)).unwrap();
            (out, listener.accept().unwrap().0)
        })
        .unzip()
}

/// Until there is something to read on each of them.
fn await_bytes(streams: &[TcpStream]) {
    for stream in streams {
        stream.set_read_timeout(Some(Span::from_secs(20).to_std())).unwrap();
        assert_eq!(stream.peek(&mut [0]).unwrap(), 1, "bytes come");
    }
}

struct Transfer {
    sent: TcpEnd,
    received: TcpEnd,
    sender_ticks: Vec<SenderTick>,
    receiver_ticks: Vec<ReceiverTick>,
}

fn transfer(plan: &TcpPlan, stop: &StopFlag) -> Transfer {
    transfer_watched(plan, stop, &|_| {})
}

/// Transfers, and calls `watch` with each tick of the receiver.
fn transfer_watched(plan: &TcpPlan, stop: &StopFlag, watch: &(dyn Fn(&ReceiverTick) + Sync)) -> Transfer {
    let (out, into) = pairs(plan.streams);
    let receiver_ticks = Mutex::new(Vec::new());
    let mut sender_ticks = Vec::new();
    let (sent, received) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            receive(into, plan, &[], stop, &mut |tick| {
                watch(&tick);
                receiver_ticks.lock().unwrap().push(tick);
            })
        });
        let sent = send(out, plan, &[], stop, &mut |tick| sender_ticks.push(tick));
        (sent, receiver.join().unwrap())
    });
    Transfer { sent, received, sender_ticks, receiver_ticks: receiver_ticks.into_inner().unwrap() }
}

fn sum<T>(ticks: &[T], of: impl Fn(&T) -> ByteCount) -> ByteCount {
    ticks.iter().map(of).sum()
}

#[test]
fn a_limit_in_bytes_is_met_exactly_at_both_ends() {
    for zerocopy in if cfg!(target_os = "linux") { vec![false, true] } else { vec![false] } {
        let limit = ByteCount(10_000_001);
        let plan = TcpPlan { bytes: Some(limit), zerocopy, ..plan(3, 20_000) };
        let done = transfer(&plan, &StopFlag::new());
        assert_eq!((done.sent.outcome, done.received.outcome), (Outcome::Complete, Outcome::Complete));
        assert_eq!((done.sent.bytes, done.received.bytes), (limit, limit), "zerocopy {zerocopy}");
        assert_eq!(sum(&done.sender_ticks, |tick| tick.bytes), limit);
        assert_eq!(sum(&done.receiver_ticks, |tick| tick.bytes), limit);
    }
}

#[test]
fn at_the_end_of_time_both_ends_are_complete_and_ticks_add_up() {
    let done = transfer(&plan(2, 400), &StopFlag::new());
    assert_eq!((done.sent.outcome, done.received.outcome), (Outcome::Complete, Outcome::Complete));
    assert!(done.received.streams.iter().all(|stream| stream.error.is_none()), "{:?}", done.received);
    assert!(done.received.bytes <= done.sent.bytes && done.received.bytes > ByteCount(0));
    assert_eq!(sum(&done.receiver_ticks, |tick| tick.bytes), done.received.bytes);
    let last = done.receiver_ticks.last().unwrap();
    assert_eq!(done.receiver_ticks.iter().map(|tick| tick.length).sum::<Span>(), last.end);
    assert!(done.sent.elapsed >= Span::from_millis(400));
    assert!(done.receiver_ticks.iter().all(|tick| tick.streams <= 2));
}

#[test]
#[cfg(target_os = "linux")]
fn what_the_kernel_knows_is_in_the_ends() {
    let done = transfer(&plan(1, 300), &StopFlag::new());
    let stream = &done.sent.streams[0];
    assert!(stream.mss.is_some() && stream.rtt.is_some() && stream.cwnd.is_some(), "{stream:?}");
    assert!(
        stream.busy.is_some_and(|busy| busy > Span::ZERO)
            && !stream.congestion.is_empty()
            && stream.calls > 0
    );
    assert!(stream.send_buffer.is_some() && stream.thread_cpu > Some(0.0));
    assert!(done.sent.cpu.unwrap().busiest_thread >= stream.thread_cpu);
    assert!(done.sender_ticks.iter().any(|tick| tick.rtt.is_some() && tick.cwnd.is_some()));
}

#[test]
fn a_rate_is_obeyed_by_all_streams_together() {
    let plan = TcpPlan { rate: Some(BitRate(80_000_000)), ..plan(2, 1_000) };
    let done = transfer(&plan, &StopFlag::new());
    let bytes = done.received.bytes.0;
    // 10 MB in a second; never more than the rate and a write per stream, less only if the machine
    // is busy.
    assert!(bytes <= 10_300_000, "{bytes}");
    assert!(bytes >= 5_000_000, "{bytes}");
}

#[test]
fn the_first_stream_is_alone_until_the_others_join() {
    let plan = TcpPlan { alone: Span::from_secs(1), ..plan(3, 300) };
    let done = transfer(&plan, &StopFlag::new());
    let joined: Vec<u16> = done.receiver_ticks.iter().map(|tick| tick.streams).collect();
    assert_eq!((joined.first(), joined.last()), (Some(&1), Some(&3)), "{joined:?}");
    // The receiver counts from its first byte, which may be late.
    let early = done.receiver_ticks.iter().filter(|tick| tick.end < Span::from_millis(240));
    assert!(early.map(|tick| tick.streams).all(|streams| streams == 1), "{joined:?}");
    assert!(done.sent.elapsed >= Span::from_millis(1_300));
}

#[test]
fn a_stop_ends_both_with_what_they_have() {
    let stop = StopFlag::new();
    let raised_at = Mutex::new(None);
    // Once something has come on each of them.
    let done = transfer_watched(&plan(4, 60_000), &stop, &|tick| {
        if tick.streams == 4 && !stop.is_raised() {
            *raised_at.lock().unwrap() = Some(clock::now());
            stop.raise();
        }
    });
    let took = clock::now() - raised_at.into_inner().unwrap().expect("bytes come on each");
    assert_eq!((done.sent.outcome, done.received.outcome), (Outcome::Interrupted, Outcome::Interrupted));
    assert!(done.received.bytes > ByteCount(0) && done.received.elapsed > Span::ZERO);
    assert!(done.received.streams.iter().all(|stream| stream.error.is_none()));
    assert!(took < Span::from_secs(5), "ended by the flag, not by the plan: {took}");
}

#[test]
fn a_stalled_sender_still_sees_the_stop_and_the_end() {
    let (out, into) = pairs(1);
    // Nobody reads: the writes block.
    let sent = send(out, &plan(1, 400), &[], &StopFlag::new(), &mut |_| {});
    assert_eq!(sent.outcome, Outcome::Complete);
    drop(into);
}

#[test]
fn a_killed_receiver_fails_the_sender_with_an_error() {
    let (out, into) = pairs(2);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(out, &plan(2, 60_000), &[], &StopFlag::new(), &mut |_| {}));
        await_bytes(&into);
        into.iter().for_each(crate::options::close_now);
        drop(into);
        sender.join().unwrap()
    });
    assert_eq!(sent.outcome, Outcome::Failed);
    assert!(sent.streams.iter().all(|stream| stream.error.is_some()), "{sent:?}");
}

#[test]
fn an_early_reset_is_an_error_and_spares_the_other_stream() {
    let (mut out, into) = pairs(2);
    let received = std::thread::scope(|scope| {
        let plan = plan(2, 1_000);
        let receiver = scope.spawn(move || receive(into, &plan, &[], &StopFlag::new(), &mut |_| {}));
        let mut broken = out.remove(0);
        std::io::Write::write_all(&mut broken, b"x").unwrap();
        clock::sleep(Span::from_millis(50));
        crate::options::close_now(&broken);
        drop(broken);
        send(out, &tests::plan(1, 1_000), &[], &StopFlag::new(), &mut |_| {});
        receiver.join().unwrap()
    });
    assert_eq!(received.outcome, Outcome::Failed);
    assert!(received.streams[0].error.is_some());
    assert_eq!(received.streams[1].error, None);
    assert!(received.streams[1].bytes > ByteCount(1_000_000));
}

#[test]
fn a_sender_that_leaves_early_in_good_order_has_been_stopped() {
    let (out, into) = pairs(1);
    drop(out);
    let received = receive(into, &plan(1, 60_000), &[], &StopFlag::new(), &mut |_| {});
    assert_eq!((received.outcome, received.bytes), (Outcome::Interrupted, ByteCount(0)));
}

#[test]
fn two_hundred_streams_share_a_limit() {
    let plan = TcpPlan { bytes: Some(ByteCount(20_000_000)), ..plan(200, 30_000) };
    let done = transfer(&plan, &StopFlag::new());
    assert_eq!(done.received.bytes, ByteCount(20_000_000));
    assert_eq!(done.received.streams.len(), 200);
}

#[test]
fn a_core_that_cannot_be_had_is_told_and_the_stream_runs() {
    let (out, into) = pairs(1);
    let plan = TcpPlan { bytes: Some(ByteCount(1000)), ..plan(1, 5_000) };
    std::thread::scope(|scope| {
        let receiver_plan = plan.clone();
        scope.spawn(move || receive(into, &receiver_plan, &[], &StopFlag::new(), &mut |_| {}));
        let sent = send(out, &plan, &[100_000], &StopFlag::new(), &mut |_| {});
        assert_eq!(sent.bytes, ByteCount(1000));
        assert!(sent.streams[0].error.as_ref().unwrap().contains("100000"));
    });
}
