//! Bulk TCP: as many bytes as the path takes, one thread per stream, counted while they move.
//!
//! What is measured: payload bytes handed to (sender) and taken from (receiver) the system, per
//! slice of time. The receiver's count is the truth; the sender's runs ahead of it by what lies in
//! buffers and on the way. Assumed: that neither end is the bottleneck. `StreamEnd` carries what is
//! needed to tell (thread shares, time held back by window or buffer). Bias: a receiver counts data
//! when it reads it, up to half a millisecond after it arrived (see `receiver`), and up to 20 ms
//! after in the moment a rate collapses; the sum is exact.
//!
//! Time runs like this: the first stream starts at once and the others `plan.alone` later; all end
//! together at `plan.alone + plan.duration`. With `plan.bytes` they end once so much has been sent,
//! and that time is only the limit. With `plan.block_spacing` one thread serves all streams, a
//! block at a time (see `spaced`).

mod budget;
mod meter;
mod moments;
mod receiver;
mod samples;
mod sender;
mod sink;
mod spaced;
#[cfg(target_os = "linux")]
mod splice;
mod stream;

use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use netaware_record::{CpuUse, Outcome, ReceiverTick, SenderTick, SpacedBlocks, StreamEnd, TcpEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::{MAX_ROUND_TRIP, TcpPlan};

use crate::stop::StopFlag;
use crate::tcp_info::TcpInfo;
use crate::timeout::is_timeout;
use crate::{clock, thread};
use meter::Lane;
use moments::Moments;
use samples::Samples;
use sender::Sender;
pub use stream::{Encryption, Stream};

/// Bytes per write unless somebody asks for another length; also the longest, longer ones are cut.
///
/// Measured together with the limit on unsent bytes (see `sender`), Gbit/s in one run, one stream,
/// IPv4:
///
/// | write | 128 KiB | 256 KiB | 512 KiB | 1 MiB |
/// |---|---|---|---|---|
/// | veth | 24 | 24 | 46 | 55 |
/// | loopback | 59 | 54 | 39 | 51 |
///
/// iperf3 3.12 had 17 and 18. A long write stays in the kernel and sends whenever there is room; a
/// short one returns for each 128 KiB, and on veth, where segments are small, acknowledgements then
/// find the socket free and are dealt with one by one. A write that blocks gives back what it has
/// written after 20 ms, so a slow path costs no precision.
pub const DEFAULT_LENGTH: u32 = 1 << 20;

/// Sends as planned and returns when all streams have ended. `tick` is called about every
/// `plan.tick` with what happened since; `affinity` names cores to pin the threads to, taken in
/// turn.
///
/// At the end of time what is still queued is dropped (the peer sees a reset), because a queue that
/// drains for seconds would disturb the next measurement. With `plan.bytes` all is delivered first,
/// as far as the limit of time allows.
pub fn send(
    streams: Vec<TcpStream>,
    plan: &TcpPlan,
    affinity: &[usize],
    stop: &StopFlag,
    tick: &mut dyn FnMut(SenderTick),
) -> TcpEnd {
    send_carried(streams.into_iter().map(Stream::from).collect(), plan, affinity, stop, tick)
}

/// [`send`], of streams that may be encrypted. What counts is payload; a sender runs ahead of it by
/// another 64 KiB at most, which wait for room in the socket. `acked` of ticks and samples is the
/// kernel's count and so of encrypted bytes, 0.1 % more than the payload with long blocks. Blocks
/// that are spaced are not encrypted: such a transfer fails with the reason.
pub fn send_carried(
    streams: Vec<Stream>,
    plan: &TcpPlan,
    affinity: &[usize],
    stop: &StopFlag,
    tick: &mut dyn FnMut(SenderTick),
) -> TcpEnd {
    let (streams, encryptions) = parted(streams);
    let acked_before: Vec<ByteCount> = streams.iter().map(moments::acked_before).collect();
    let mut samples = plan.per_stream.then(|| Samples::new(acked_before.clone()));
    let start = clock::now();
    let sender = Sender::new(plan, &acked_before, start, stop);
    let lanes = lanes(streams.len());
    let mut stood_still = None;
    let watch = || {
        stood_still = Some(meter::watch_sender(start, plan.tick, &streams, &lanes, samples.as_mut(), tick));
    };
    let is_encrypted = || encryptions.iter().any(Hold::is_full);
    let (mut ends, spaced) = if plan.block_spacing.is_some() && is_encrypted() {
        let refused = |index| never_ran(index as u16, "spaced blocks cannot be encrypted".to_owned());
        ((0..streams.len()).map(refused).collect(), None)
    } else if let Some(spacing) = plan.block_spacing {
        let (ends, blocks) = run_spaced(&sender, spacing, &streams, &lanes, affinity, watch);
        (ends, Some(blocks))
    } else {
        let work = |index: u16, stream: &TcpStream, lane: &Lane| {
            sender.run(index, stream, encryptions[usize::from(index)].take(), lane)
        };
        (run(&streams, &lanes, affinity, work, watch), None)
    };
    for stream in &streams {
        crate::options::close_now(stream);
    }
    for (end, samples) in ends.iter_mut().zip(samples.into_iter().flat_map(Samples::into_streams)) {
        end.stream.samples = samples;
    }
    let (given, acknowledged) = (moments::span(&ends), moments::acknowledged(&ends));
    TcpEnd {
        given,
        acknowledged: acknowledged.map(|(span, _)| span),
        acknowledged_bytes: acknowledged.map(|(_, bytes)| bytes),
        spaced,
        stood_still,
        ..summarise(start, ends)
    }
}

/// Receives until every stream has ended, however it ends, at the latest three seconds after the
/// plan's end; as long as data come out of the path's queues, [`TcpPlan::longest_drain`] after it.
/// A path that has been silent for a while when the plan ends is not waited for.
///
/// `elapsed` and the ticks count from the first byte. A reset at about the planned end is how a
/// sender ends; an earlier one is an error of that stream.
pub fn receive(
    streams: Vec<TcpStream>,
    plan: &TcpPlan,
    affinity: &[usize],
    stop: &StopFlag,
    tick: &mut dyn FnMut(ReceiverTick),
) -> TcpEnd {
    let streams = streams.into_iter().map(Stream::from).collect();
    receive_carried(streams, Carriage::Plain, plan, affinity, stop, tick)
}

/// What a stream carries its payload in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// Every byte is payload.
    Plain,
    /// Frames of a browser; a message is a block.
    WebSocket,
}

/// [`receive`], of streams whose payload is carried in something, or encrypted. `calls` of a stream
/// are the blocks that came where these can be told apart, else its reads.
pub fn receive_carried(
    streams: Vec<Stream>,
    carriage: Carriage,
    plan: &TcpPlan,
    affinity: &[usize],
    stop: &StopFlag,
    tick: &mut dyn FnMut(ReceiverTick),
) -> TcpEnd {
    let (streams, encryptions) = parted(streams);
    let receiver = receiver::Receiver::new(plan, carriage, clock::now(), stop);
    let lanes = lanes(streams.len());
    let mut stood_still = None;
    let ends = run(
        &streams,
        &lanes,
        affinity,
        |index, stream, lane| receiver.run(index, stream, encryptions[usize::from(index)].take(), lane),
        || stood_still = meter::watch_receiver(plan.tick, receiver.first_byte(), &lanes, tick),
    );
    let start = receiver.first_byte().get().unwrap_or_else(clock::now);
    TcpEnd { received: moments::span(&ends), stood_still, ..summarise(start, ends) }
}

/// What became of one stream.
#[derive(Debug)]
struct Ended {
    stream: StreamEnd,
    at: Mono,
    how: Ending,
    moments: Moments,
}

/// Why a stream's loop ended. The reason of `Broken` is in `StreamEnd::error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Planned,
    Stopped,
    Broken,
}

/// What a stream's thread takes along when it starts.
struct Hold(Mutex<Option<Box<dyn Encryption>>>);

impl Hold {
    fn take(&self) -> Option<Box<dyn Encryption>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_full(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

fn parted(streams: Vec<Stream>) -> (Vec<TcpStream>, Vec<Hold>) {
    streams.into_iter().map(|stream| (stream.socket, Hold(Mutex::new(stream.encryption)))).unzip()
}

fn lanes(count: usize) -> Vec<Lane> {
    (0..count).map(|_| Lane::default()).collect()
}

/// One small thread per stream; `watch` runs in the calling thread until all lanes are done.
fn run(
    streams: &[TcpStream],
    lanes: &[Lane],
    affinity: &[usize],
    work: impl Fn(u16, &TcpStream, &Lane) -> Ended + Sync,
    watch: impl FnOnce(),
) -> Vec<Ended> {
    let meter = std::thread::current();
    std::thread::scope(|scope| {
        let threads: Vec<_> = streams
            .iter()
            .zip(lanes)
            .enumerate()
            .map(|(index, (stream, lane))| {
                let (meter, work) = (meter.clone(), &work);
                let core = affinity.get(index % affinity.len().max(1)).copied();
                let index = index as u16;
                let spawned = std::thread::Builder::new()
                    .name(format!("tcp-{index}"))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || {
                        let ended = on_core(core, || work(index, stream, lane));
                        lane.finish();
                        meter.unpark();
                        ended
                    });
                if spawned.is_err() {
                    lane.finish();
                }
                (index, spawned)
            })
            .collect();
        watch();
        threads
            .into_iter()
            .map(|(index, spawned)| match spawned {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|_| never_ran(index, "its thread panicked".into()))
                }
                Err(error) => never_ran(index, format!("no thread for it: {error}")),
            })
            .collect()
    })
}

/// One thread for all streams, which get their blocks in turn; `watch` runs in the calling thread
/// until it is done.
fn run_spaced(
    sender: &Sender<'_>,
    spacing: Span,
    streams: &[TcpStream],
    lanes: &[Lane],
    affinity: &[usize],
    watch: impl FnOnce(),
) -> (Vec<Ended>, SpacedBlocks) {
    let meter = std::thread::current();
    let core = affinity.first().copied();
    let work = || {
        let pinned = core.map_or(Ok(()), thread::pin);
        let usage = thread::ThreadUse::begin();
        let (mut ends, blocks) = spaced::run(sender, spacing, streams, lanes);
        let share = usage.share();
        for end in &mut ends {
            end.stream.thread_cpu = share.used;
            end.stream.thread_waiting = share.waiting;
            if let (Err(error), None) = (&pinned, &end.stream.error) {
                end.stream.error = Some(not_pinned(core, error));
            }
        }
        (ends, blocks)
    };
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new().name("tcp-spaced".into()).spawn_scoped(scope, || {
            let done = work();
            lanes.iter().for_each(Lane::finish);
            meter.unpark();
            done
        });
        if spawned.is_err() {
            lanes.iter().for_each(Lane::finish);
        }
        watch();
        let nobody = |why: String| {
            let ends = (0..streams.len()).map(|index| never_ran(index as u16, why.clone())).collect();
            (ends, SpacedBlocks::default())
        };
        match spawned {
            Ok(thread) => thread.join().unwrap_or_else(|_| nobody("its thread panicked".into())),
            Err(error) => nobody(format!("no thread for it: {error}")),
        }
    })
}

/// Adds what the thread cost. A core that cannot be had is told, and the stream runs all the same.
fn on_core(core: Option<usize>, work: impl FnOnce() -> Ended) -> Ended {
    let pinned = core.map_or(Ok(()), thread::pin);
    let usage = thread::ThreadUse::begin();
    let mut ended = work();
    let share = usage.share();
    ended.stream.thread_cpu = share.used;
    ended.stream.thread_waiting = share.waiting;
    if let (Err(error), None) = (pinned, &ended.stream.error) {
        ended.stream.error = Some(not_pinned(core, &error));
    }
    ended
}

fn not_pinned(core: Option<usize>, error: &std::io::Error) -> String {
    format!("not pinned to core {}: {error}", core.unwrap_or_default())
}

fn never_ran(index: u16, error: String) -> Ended {
    let stream = StreamEnd { index, error: Some(error), ..StreamEnd::default() };
    Ended { stream, at: Mono(0), how: Ending::Broken, moments: Moments::default() }
}

fn summarise(start: Mono, ends: Vec<Ended>) -> TcpEnd {
    let any = |how| ends.iter().any(|end| end.how == how);
    let outcome = if any(Ending::Stopped) {
        Outcome::Interrupted
    } else if any(Ending::Broken) {
        Outcome::Failed
    } else {
        Outcome::Complete
    };
    let last = ends.iter().map(|end| end.at).max().unwrap_or(start);
    let busiest = ends.iter().filter_map(|end| end.stream.thread_cpu).reduce(f64::max);
    TcpEnd {
        outcome,
        elapsed: (last - start).or_zero(),
        bytes: ends.iter().map(|end| end.stream.bytes).sum::<ByteCount>(),
        cpu: Some(CpuUse { busiest_thread: busiest, ..CpuUse::default() }),
        streams: ends.into_iter().map(|end| end.stream).collect(),
        ..TcpEnd::default()
    }
}

/// When all sending is over by the plan.
fn planned_end(plan: &TcpPlan, start: Mono) -> Mono {
    start + plan.alone.or_zero() + plan.duration.or_zero()
}

/// A blocked call returns after this and looks at the stop flag and the clock.
const LOOK_UP: Span = Span::from_millis(20);

/// What either end waits beyond the plan's end, or after the last data that came since, for the
/// other to close: longer where round trips are, and no longer than the plan lets queues drain. The
/// round trip is that of the path without its queues: those are waited for as long as they drain.
pub fn grace_over(round_trip: Span, longest_drain: Span) -> Span {
    GRACE.max(round_trip * GRACE_ROUND_TRIPS).min(longest_drain.max(GRACE))
}

/// The smallest that the kernel knows of, or the smoothed one; zero where it does not tell.
fn idle_round_trip(stream: &TcpStream) -> Span {
    let Some(info) = TcpInfo::read(stream) else { return Span::ZERO };
    let smallest = if info.min_rtt > Span::ZERO { info.min_rtt } else { info.rtt };
    smallest.min(MAX_ROUND_TRIP)
}

/// As the kernel knows it; zero where it does not tell.
fn round_trip(stream: &TcpStream) -> Span {
    TcpInfo::read(stream).map_or(Span::ZERO, |info| info.rtt.min(MAX_ROUND_TRIP))
}

/// On a path whose round trip is no longer than a second.
const GRACE: Span = Span::from_secs(3);
/// Slow start sends once per round trip, and what is lost comes a round trip later.
const GRACE_ROUND_TRIPS: i64 = 3;

/// 512 threads must be cheap; the loops need a few KiB.
const STACK: usize = 256 << 10;

#[cfg(test)]
mod tests;
