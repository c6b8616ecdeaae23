//! The receiving loop of one stream.
//!
//! Nothing looks at the payload, so on Linux it is not copied out at all: `recv` with `MSG_TRUNC`
//! only frees it. What then costs is waking up. A reader that wakes for every segment takes the
//! core away from the sender, or from its own soft interrupt, some 100,000 times a second; with
//! `SO_RCVLOWAT` at what arrives in half a millisecond it wakes 2,000 times at any rate. Measured
//! on loopback, one stream, in Gbit/s: in one run 34 without, 46 with 1 MiB, iperf3 3.12 had 27; in
//! another 49 with 256 KiB, 61 with 1 MiB, 64 with 4 MiB, iperf3 had 33.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use netaware_record::StreamEnd;
use netaware_units::{BitRate, ByteCount, Mono, Span};
use netaware_wire::control::TcpPlan;

use super::meter::{FirstByte, Lane, LastByte};
use super::moments::Moments;
use super::sink::{Got, Sink};
use super::{
    Carriage, Encryption, Ended, Ending, GRACE_ROUND_TRIPS, LOOK_UP, grace_over, idle_round_trip, is_timeout,
    planned_end, round_trip,
};
use crate::clock;
use crate::stop::StopFlag;
use crate::tcp_info::stream_end;

/// What the streams of one transfer share.
#[derive(Debug)]
pub(super) struct Receiver<'a> {
    first_byte: FirstByte,
    /// When the last byte came, of any stream.
    last_byte: LastByte,
    /// What came of all streams; of each no more than [`A_FEW_SEGMENTS`] and a read is counted.
    came: AtomicU64,
    /// How long sending takes by the plan.
    planned: Span,
    planned_end: Mono,
    /// Until then data of the path's queues are taken in, as long as some come.
    drained_by: Mono,
    limited_in_bytes: bool,
    /// Blocks come one by one, and how many reads they take is a figure: each read takes what is
    /// there.
    reads_at_once: bool,
    carriage: Carriage,
    stop: &'a StopFlag,
}

impl<'a> Receiver<'a> {
    pub(super) fn new(plan: &TcpPlan, carriage: Carriage, start: Mono, stop: &'a StopFlag) -> Self {
        let end = planned_end(plan, start);
        Self {
            first_byte: FirstByte::default(),
            last_byte: LastByte::default(),
            came: AtomicU64::new(0),
            planned: end - start,
            planned_end: end,
            drained_by: end + plan.longest_drain(),
            limited_in_bytes: plan.bytes.is_some(),
            reads_at_once: plan.block_spacing.is_some(),
            carriage,
            stop,
        }
    }

    pub(super) fn first_byte(&self) -> &FirstByte {
        &self.first_byte
    }

    pub(super) fn run(
        &self,
        index: u16,
        stream: &TcpStream,
        encryption: Option<Box<dyn Encryption>>,
        lane: &Lane,
    ) -> Ended {
        let mut sink = Sink::new(self.carriage, encryption);
        let mut reading =
            Reading { bytes: 0, first: 0, calls: 0, last_at: clock::now(), moments: Moments::default() };
        let (how, error) = match stream
            .set_read_timeout(Some(LOOK_UP.to_std()))
            .and_then(|()| self.read(stream, &mut sink, lane, &mut reading))
        {
            Ok(how) => (how, None),
            Err(error) => self.judge(&error),
        };
        // The sender of a limited transfer waits for this to know that all has been read.
        let _ = stream.shutdown(Shutdown::Write);
        let stream = StreamEnd {
            bytes: ByteCount(reading.bytes),
            first_read: Some(ByteCount(reading.first)).filter(|first| first.0 > 0),
            calls: reading.calls,
            error,
            ..stream_end(index, stream)
        };
        Ended { stream, at: reading.last_at, how, moments: reading.moments }
    }

    fn read(
        &self,
        stream: &TcpStream,
        sink: &mut Sink,
        lane: &Lane,
        reading: &mut Reading,
    ) -> io::Result<Ending> {
        let mut wakeups =
            if self.reads_at_once { Wakeups::as_it_comes() } else { Wakeups::new(reading.last_at) };
        loop {
            let result = sink.read(stream);
            let now = clock::now();
            match result {
                Ok(got) => {
                    if got.payload > 0 {
                        if reading.bytes == 0 {
                            reading.first = got.payload;
                            self.first_byte.set(now);
                        }
                        if reading.bytes < A_FEW_SEGMENTS.0 {
                            self.came.fetch_add(got.payload, Relaxed);
                        }
                        reading.count(got, now);
                        self.last_byte.set(now);
                        lane.set_bytes(reading.bytes);
                    }
                    if got.is_end {
                        reading.last_at = now;
                        return Ok(self.end_of_stream(now));
                    }
                    wakeups.adapt(stream, got.taken, now);
                }
                Err(error) if is_timeout(&error) => wakeups.adapt(stream, 0, now),
                Err(error) => {
                    reading.last_at = now;
                    return Err(error);
                }
            }
            if self.stop.is_raised() {
                reading.last_at = now;
                return Ok(Ending::Stopped);
            }
            if now >= self.planned_end && self.is_overdue(stream, reading.bytes, now) {
                return self.end_unheard(stream, reading, now);
            }
        }
    }

    /// Whether no more is waited for, the planned end being over. What the sender has left in the
    /// path's queues may still come, and its end is behind it.
    fn is_overdue(&self, stream: &TcpStream, bytes: u64, now: Mono) -> bool {
        let round_trip = round_trip(stream);
        let grace = grace_over(idle_round_trip(stream), self.drained_by - self.planned_end);
        let Some((first, last)) = self.first_byte.get().zip(self.last_byte.get()) else {
            // Nothing ever came: there is nothing that could drain.
            return now >= self.planned_end - self.planned + grace;
        };
        let is_draining = now < self.drained_by && now - last < grace;
        // The last data leave at the end, and the sender began up to a round trip later.
        let is_silent = now >= self.planned_end + round_trip + BEGINS_LATE
            && now - last > silence_that_ends(ByteCount(bytes), last - first, round_trip);
        is_silent || (now >= self.planned_end + grace && !is_draining)
    }

    /// The end of a stream whose sender has not been heard to end. The reset with which it ends
    /// goes once and may be lost; the data that came up to the planned end are a whole transfer.
    /// A stream that fell silent before is not whole, whatever others of its transfer did.
    fn end_unheard(&self, stream: &TcpStream, reading: &Reading, now: Mono) -> io::Result<Ending> {
        // Of a stream that got a few segments nobody knows at what distances more would have come:
        // others of its transfer may have kept it from the path, and stand for it.
        let has_a_pace = reading.bytes >= A_FEW_SEGMENTS.0;
        let own = reading.moments.last.filter(|_| has_a_pace);
        let last = own.or_else(|| self.last_byte.get());
        let usual = own.zip(reading.moments.first).map_or(Span::ZERO, |(last, first)| {
            silence_that_ends(ByteCount(reading.bytes), last - first, round_trip(stream))
        });
        let was_silent = own.is_some_and(|last| (self.planned_end - last) > usual);
        let came_to_the_end = last.is_some_and(|last| self.is_about_over(last) || self.is_thin(last))
            && !was_silent
            && (now < self.drained_by || !has_a_pace);
        if came_to_the_end && !self.limited_in_bytes {
            return Ok(Ending::Planned);
        }
        let why = match last.map(|last| now - last) {
            None => "nothing came".to_owned(),
            Some(silent) if silent > DRAINS_NOT => format!("nothing more came for {silent}"),
            Some(_) => {
                let late = (now - self.planned_end).or_zero();
                format!("its end had not come {late} after its time was up")
            }
        };
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    /// Whether all streams together got no more than a few segments, at a pace by which the next
    /// one may come after the planned end: what was lost in the queue of so slow a path is sent
    /// again after seconds.
    fn is_thin(&self, last: Mono) -> bool {
        let came = ByteCount(self.came.load(Relaxed));
        let over = self.first_byte.get().map_or(Span::ZERO, |first| last - first);
        let pace = BitRate::mean(came, over).filter(|_| came < A_FEW_SEGMENTS);
        pace.is_some_and(|rate| self.planned_end - last <= rate.time_for(A_FEW_SEGMENTS))
    }

    /// A sender that ends in an orderly way before its time has been stopped.
    fn end_of_stream(&self, now: Mono) -> Ending {
        if self.limited_in_bytes || self.is_about_over(now) { Ending::Planned } else { Ending::Stopped }
    }

    fn judge(&self, error: &io::Error) -> (Ending, Option<String>) {
        let reset = error.kind() == ErrorKind::ConnectionReset;
        if self.stop.is_raised() {
            (Ending::Stopped, None)
        } else if reset && self.is_about_over(clock::now()) {
            (Ending::Planned, None)
        } else {
            (Ending::Broken, Some(error.to_string()))
        }
    }

    fn is_about_over(&self, now: Mono) -> bool {
        let slack = (self.planned / 10).max(EARLIEST_END);
        self.first_byte.get().is_some_and(|first| now - first >= self.planned - slack)
    }
}

/// How long nothing may come before a path has nothing left to give, if `bytes` of a stream came in
/// `over`: a queue that drains lets a segment through now and then, and what was lost comes a round
/// trip later.
fn silence_that_ends(bytes: ByteCount, over: Span, round_trip: Span) -> Span {
    let least = DRAINS_NOT.max(round_trip * GRACE_ROUND_TRIPS);
    if bytes == ByteCount(0) {
        // Others of its streams fill the path, and how slow that is nobody knows here.
        return least.max(STARVED);
    }
    // A single read takes no time.
    BitRate::mean(bytes, over.max(Span(1))).map_or(least, |rate| least.max(rate.time_for(A_FEW_SEGMENTS)))
}

/// Where one stream stands.
#[derive(Debug)]
struct Reading {
    bytes: u64,
    /// Of these: the first read's.
    first: u64,
    calls: u64,
    last_at: Mono,
    moments: Moments,
}

impl Reading {
    fn count(&mut self, got: Got, now: Mono) {
        self.bytes += got.payload;
        self.calls += got.blocks;
        self.last_at = now;
        self.moments.first.get_or_insert(now);
        self.moments.last = Some(now);
    }
}

/// Follows the rate of a stream with `SO_RCVLOWAT`, so that the reader wakes about every
/// [`WAKE_EVERY`].
///
/// A rate that falls is no trap: the read timeout hands over what has arrived, and a window that is
/// nearly full wakes the reader whatever the mark (tcp_epollin_ready in the kernel). The mark also
/// raises the receive buffer to twice its value where the kernel tunes it; 2 MiB for a stream that
/// moves 2 GB/s.
#[derive(Debug)]
struct Wakeups {
    since: Mono,
    bytes: u64,
    mark: u64,
}

impl Wakeups {
    fn new(now: Mono) -> Self {
        Self { since: now, bytes: 0, mark: 1 }
    }

    /// Leaves the mark at one byte: the time to adapt it never comes.
    fn as_it_comes() -> Self {
        Self::new(Mono(u64::MAX))
    }

    fn adapt(&mut self, stream: &TcpStream, bytes: usize, now: Mono) {
        self.bytes += bytes as u64;
        let passed = now - self.since;
        if passed < ADAPT_EVERY {
            return;
        }
        let arriving = u128::from(self.bytes) * WAKE_EVERY.0 as u128 / passed.0 as u128;
        let mark = (arriving as u64).clamp(1, HIGHEST_MARK);
        (self.since, self.bytes) = (now, 0);
        // Small changes are not worth a call.
        if mark > self.mark + self.mark / 4 || mark < self.mark - self.mark / 4 {
            set_low_water_mark(stream, mark as i32);
            self.mark = mark;
        }
    }
}

#[cfg(target_os = "linux")]
fn set_low_water_mark(stream: &TcpStream, mark: i32) {
    use std::os::fd::AsRawFd;
    // SAFETY: the option takes an int. A refusal costs speed only.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const mark).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn set_low_water_mark(_: &TcpStream, _: i32) {}

/// Two thousand wake-ups a second cost nothing, and slices of 100 ms are cut at their ends by half
/// a percent at most.
const WAKE_EVERY: Span = Span::from_micros(500);
/// Often enough to follow slow start.
const ADAPT_EVERY: Span = Span::from_millis(2);
/// Where more brought nothing; also the size of a read, which holds the socket's lock.
pub(super) const HIGHEST_MARK: u64 = 1 << 20;
/// Outages that mobile networks recover from are shorter.
const DRAINS_NOT: Span = Span::from_secs(2);
/// Of a thread that finds no core at once.
const BEGINS_LATE: Span = Span::from_millis(100);
/// A stream that has had nothing while others had: one segment of 20 kbit/s takes 0.6 s.
const STARVED: Span = Span::from_secs(6);
const A_FEW_SEGMENTS: ByteCount = ByteCount(24 * 1500);
/// A reset this long before the planned end is still the sender's way to end: clocks and starts
/// differ.
const EARLIEST_END: Span = Span::from_millis(250);
