//! The receiving loop of a stream, and the meter beside it.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;

use netaware_record::{CpuUse, HostDrops, Outcome, ReceiverTick, UdpReceiverEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;
use socket2::SockRef;

use super::account::{Account, Board, Standing};
use super::inbox::{self, Inbox};
use super::{LOOK_UP, RECEIVE_BUFFER};
use crate::probe_socket::is_refusal;
use crate::slices::{self, Slices};
use crate::stop::StopFlag;
use crate::timeout::is_timeout;
use crate::{clock, thread};

/// A socket that waits for a stream; see [`ready`](super::ready).
#[derive(Debug)]
pub struct Ready {
    socket: UdpSocket,
    since: Mono,
    drops_before: Option<u64>,
}

pub(super) fn ready(socket: UdpSocket, plan: &UdpPlan) -> Ready {
    let _ = socket.set_read_timeout(Some(LOOK_UP.to_std()));
    if plan.window.is_none() {
        ask_for_room(&socket);
    }
    inbox::ask(&socket, plan);
    let drops_before = inbox::socket_drops(&socket);
    Ready { socket, since: clock::now(), drops_before }
}

/// The largest receive buffer that can be had, up to [`RECEIVE_BUFFER`].
pub(crate) fn ask_for_room(socket: &UdpSocket) {
    // The first may be cut to the system's limit, the second needs privilege; the larger of both
    // remains.
    let _ = SockRef::from(socket).set_recv_buffer_size(RECEIVE_BUFFER as usize);
    inbox::force_receive_buffer(socket, RECEIVE_BUFFER);
}

pub(super) fn receive(
    ready: &Ready,
    flow: u32,
    plan: &UdpPlan,
    affinity: Option<usize>,
    stop: &StopFlag,
    tick: &mut dyn FnMut(ReceiverTick),
) -> UdpReceiverEnd {
    let board = Board::default();
    let meter = std::thread::current();
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new().name("udp-receive".into()).spawn_scoped(scope, || {
            let _ = affinity.map(thread::pin);
            let usage = thread::ThreadUse::begin();
            let mut end = follow(ready, flow, plan, stop, &board);
            end.cpu = Some(CpuUse { busiest_thread: usage.share().used, ..CpuUse::default() });
            board.finish();
            meter.unpark();
            end
        });
        let Ok(thread) = spawned else { return failed() };
        let stood_still = watch(plan.tick, &board, tick);
        UdpReceiverEnd { stood_still, ..thread.join().unwrap_or_else(|_| failed()) }
    })
}

fn failed() -> UdpReceiverEnd {
    UdpReceiverEnd { outcome: Outcome::Failed, ..UdpReceiverEnd::default() }
}

fn follow(ready: &Ready, flow: u32, plan: &UdpPlan, stop: &StopFlag, board: &Board) -> UdpReceiverEnd {
    let socket = &ready.socket;
    let mut account = Account::new(flow, plan);
    let mut inbox = Inbox::new(socket, plan, ready.since);
    let start = clock::now();
    let outcome = listen(&mut inbox, &mut account, plan, start, stop, board);
    let observed = observed(&account, plan, start, clock::now());
    // The system's counter has 32 bits.
    let dropped = inbox::socket_drops(socket)
        .zip(ready.drops_before)
        .map(|(now, before)| now.wrapping_sub(before) & u64::from(u32::MAX));
    UdpReceiverEnd {
        outcome,
        observed,
        calls: Some(inbox.calls()),
        drops: HostDrops {
            socket: dropped.map(|it| datagrams_in(it, account.datagrams(), inbox.parcels())),
            ..HostDrops::default()
        },
        receive_buffer: SockRef::from(socket).recv_buffer_size().ok().map(|size| ByteCount(size as u64)),
        ..account.close(plan)
    }
}

/// The system counts a bundle that it had merged (UDP_GRO) as one drop. Those that were dropped are
/// taken to have been as large as those that came, which leans low: full queues make for full
/// bundles.
fn datagrams_in(dropped: u64, received: u64, parcels: u64) -> u64 {
    if parcels == 0 {
        return dropped;
    }
    let datagrams = u128::from(dropped) * u128::from(received.max(parcels)) / u128::from(parcels);
    u64::try_from(datagrams).unwrap_or(u64::MAX)
}

fn listen(
    inbox: &mut Inbox<'_>,
    account: &mut Account,
    plan: &UdpPlan,
    start: Mono,
    stop: &StopFlag,
    board: &Board,
) -> Outcome {
    loop {
        match inbox.receive(account) {
            Ok(()) => account.publish(board),
            Err(error) if is_passing(&error) => pause_if_down(&error),
            Err(_) => return Outcome::Failed,
        }
        let is_over = verdict(account, plan, start, clock::now()).is_some();
        if is_over || stop.is_raised() {
            // Who did not run for a while finds the time over and the datagrams in its socket: they
            // have come.
            inbox.drain(account, clock::now() + LONGEST_DRAIN);
            account.publish(board);
            // What came may be a reason to wait for more.
            if let Some(outcome) = verdict(account, plan, start, clock::now()) {
                return outcome;
            }
            if stop.is_raised() {
                return Outcome::Interrupted;
            }
        }
    }
}

/// Whether a stream that has been listened to since `start` is over, and how it ended.
pub(super) fn verdict(account: &Account, plan: &UdpPlan, start: Mono, now: Mono) -> Option<Outcome> {
    let settle = || plan.settle.unwrap_or(AFTER_END).max(account.stragglers().min(LONGEST_STRAGGLER));
    if account.end().is_some_and(|end| now - end.heard_at >= settle()) {
        return Some(Outcome::Complete);
    }
    let latest = start + plan.duration.or_zero() + plan.longest_drain();
    (now >= latest).then(|| without_end(account, start + plan.duration.or_zero() + plan.round_trip.or_zero()))
}

/// What a receiver that listens no longer has seen the end of; `None` where that is all. One that
/// was stopped before it heard of the sender's end cannot know what would still have come, nor can
/// one whose time was over while datagrams still came out of a long queue.
pub(super) fn observed(account: &Account, plan: &UdpPlan, start: Mono, now: Mono) -> Option<u64> {
    let was_quiet = account.first().is_none() || now - account.last() >= QUIET;
    let is_over = account.end().is_some() || (was_quiet && verdict(account, plan, start, now).is_some());
    (!is_over).then(|| account.highest())
}

/// All five announcements of the end may be lost; a stream that ran until about its planned end was
/// complete all the same.
fn without_end(account: &Account, planned_end: Mono) -> Outcome {
    let ran = account.end().is_some()
        || account.first().is_some_and(|first| account.last() + (planned_end - first) / 10 >= planned_end);
    if ran { Outcome::Complete } else { Outcome::Failed }
}

/// Nothing came in time, the interface is down, or an ICMP error about something that we have sent
/// earlier.
fn is_passing(error: &io::Error) -> bool {
    is_refusal(error) || is_timeout(error) || error.kind() == ErrorKind::NetworkDown
}

/// An interface that is down says so at once, and again with the next call.
fn pause_if_down(error: &io::Error) {
    if error.kind() == ErrorKind::NetworkDown {
        clock::sleep(LOOK_UP);
    }
}

/// Tells the slices of a stream. One ends where the stream does, and those behind it are told only
/// where something came late: so the rate of the last one is that of the time up to the end.
/// Returns how long the program did not run since the first datagram although it was to.
fn watch(tick: Span, board: &Board, on_tick: &mut dyn FnMut(ReceiverTick)) -> Option<Span> {
    let start = slices::wait_for(|| board.first(), || board.is_done())?;
    let mut slices = Slices::starting_at(start, tick);
    let mut before = Standing::default();
    loop {
        let slice = slices.wait_or_end(|| board.end(), || board.is_done());
        let now = board.read();
        let is_behind = board.end().is_some_and(|end| start + (slice.end - slice.length) >= end);
        if !is_behind || now != before {
            on_tick(ReceiverTick {
                end: slice.end,
                length: slice.length,
                bytes: ByteCount(now.bytes - before.bytes),
                packets: now.packets - before.packets,
                lost: now.missing.cast_signed().wrapping_sub(before.missing.cast_signed()),
                streams: 0,
            });
        }
        before = now;
        if slice.is_last {
            return Some(slices.stood_still());
        }
    }
}

/// Datagrams that overtook nothing and were overtaken by the end.
const AFTER_END: Span = Span::from_millis(300);
/// No path delays one datagram by so much more than another.
const LONGEST_STRAGGLER: Span = Span::from_secs(2);
/// The largest receive buffer is read in a tenth of that.
const LONGEST_DRAIN: Span = Span::from_millis(500);
/// What has not come so long after the last arrival does not come any more.
const QUIET: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use netaware_wire::control::UdpReceive;
    use netaware_wire::datagram::{Header, Kind};

    use super::super::account::ArrivedAt;
    use super::super::tests::{emit, pair, plan};
    use super::*;

    /// A receiver that was suspended over the end of its stream read one datagram and called the
    /// others, which lay in its socket, lost by the network.
    #[test]
    fn what_came_while_the_receiver_did_not_run_is_not_lost_though_the_time_is_over() {
        let long_ago = clock::now() - Span::from_secs(3600);
        for how in [UdpReceive::Single, UdpReceive::Mmsg, UdpReceive::Gro] {
            for (is_stopped, says_end) in [(false, true), (false, false), (true, true)] {
                let (out, into) = pair();
                let plan = UdpPlan { receive: how, ..plan(64, None) };
                let ready = ready(into, &plan);
                for seq in (0..100).filter(|seq| *seq != 50) {
                    emit(&out, Kind::Data, 7, seq);
                }
                if says_end {
                    emit(&out, Kind::End, 7, 101);
                }
                // It overtook the last one.
                emit(&out, Kind::Data, 7, 100);
                let mut account = Account::new(7, &plan);
                let mut inbox = Inbox::new(&ready.socket, &plan, ready.since);
                let stop = StopFlag::new();
                let start = if is_stopped { clock::now() } else { long_ago };
                if is_stopped {
                    stop.raise();
                }
                let outcome = listen(&mut inbox, &mut account, &plan, start, &stop, &Board::default());
                let case = format!("{how:?}, stopped: {is_stopped}, end: {says_end}");
                let want = if is_stopped { Outcome::Interrupted } else { Outcome::Complete };
                assert_eq!((outcome, account.highest()), (want, 101), "{case}");
                let end = account.close(&plan);
                assert_eq!((end.received, end.loss_runs), (100, vec![(1, 1)]), "{case}");
            }
        }
    }

    /// The last line had a rate of 3.57 Mbit/s, over the time in which stragglers were waited for.
    #[test]
    fn the_last_slice_ends_with_the_stream_and_not_with_the_wait_for_stragglers() {
        let plan = plan(64, None);
        let mut account = Account::new(7, &plan);
        let began_at = clock::now() - Span::from_millis(100);
        for (kind, seq, ms) in [(Kind::Data, 0, 0), (Kind::Data, 1, 20), (Kind::End, 2, 30)] {
            let mut datagram = [0_u8; 64];
            Header { kind, flow: 7, seq, sent_at: 0 }.emit(&mut datagram);
            account.take(&datagram, ArrivedAt { at: began_at + Span::from_millis(ms), by_kernel: true });
        }
        let board = Board::default();
        account.publish(&board);
        board.finish();
        let mut told = Vec::new();
        watch(Span::from_secs(1), &board, &mut |tick| told.push((tick.length, tick.packets)));
        assert_eq!(told, [(Span::from_millis(30), 2)]);
    }

    #[test]
    fn a_dropped_bundle_counts_for_all_its_datagrams() {
        let rows = [
            ((45, 4000, 100), 1800),
            ((7, 100, 100), 7),
            ((7, 0, 0), 7),
            ((0, 4000, 100), 0),
            ((3, 1, 9), 3),
        ];
        for ((dropped, received, parcels), want) in rows {
            assert_eq!(datagrams_in(dropped, received, parcels), want);
        }
    }
}
