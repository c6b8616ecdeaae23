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
            if now >= self.planned_end {
                let round_trips = RoundTrips::of(stream);
                if self.is_overdue(round_trips, reading.bytes, now) {
                    return self.end_unheard(round_trips, reading, now);
                }
            }
        }
    }

    /// Whether no more is waited for, the planned end being over. What the sender has left in the
    /// path's queues may still come, and its end is behind it.
    fn is_overdue(&self, round_trips: RoundTrips, bytes: u64, now: Mono) -> bool {
        let grace = self.grace(round_trips);
        let Some((first, last)) = self.first_byte.get().zip(self.last_byte.get()) else {
            // Nothing ever came: there is nothing that could drain.
            return now >= self.planned_end - self.planned + grace;
        };
        let is_draining = now < self.drained_by && now - last < grace;
        // The last data leave at the end, and the sender began up to a round trip later.
        let is_silent = now >= self.planned_end + round_trips.smoothed + BEGINS_LATE
            && now - last > silence_that_ends(ByteCount(bytes), last - first, round_trips.smoothed);
        is_silent || (now >= self.planned_end + grace && !is_draining)
    }

    fn grace(&self, round_trips: RoundTrips) -> Span {
        grace_over(round_trips.idle, self.drained_by - self.planned_end)
    }

    /// The end of a stream whose sender has not been heard to end. The reset with which it ends
    /// goes once and may be lost; the data that came up to the planned end are a whole transfer.
    /// A stream that fell silent before is not whole, unless it may have waited for segments to be
    /// sent again behind a queue that others of its transfer show to be long.
    fn end_unheard(&self, round_trips: RoundTrips, reading: &Reading, now: Mono) -> io::Result<Ending> {
        // Of a stream that got a few segments nobody knows at what distances more would have come:
        // others of its transfer may have kept it from the path, and stand for it.
        let has_a_pace = reading.bytes >= A_FEW_SEGMENTS.0;
        let own = reading.moments.first.zip(reading.moments.last).filter(|_| has_a_pace);
        let last = own.map(|(_, last)| last).or_else(|| self.last_byte.get());
        let came_to_the_end = match own {
            Some((first, last)) => {
                let usual = silence_that_ends(ByteCount(reading.bytes), last - first, round_trips.smoothed);
                let silent = self.planned_end - last;
                (self.is_about_over(last) && silent <= usual)
                    || silent <= self.longest_time_out(round_trips.idle)
            }
            None => last.is_some_and(|last| self.is_about_over(last) || self.is_thin(last)),
        };
        // Data of others may have come until no more was waited for; this stream is judged by its
        // own.
        let is_still_draining =
            now >= self.drained_by && own.is_some_and(|(_, last)| now - last < self.grace(round_trips));
        if came_to_the_end && !is_still_draining && !self.limited_in_bytes {
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

    /// How long a sender may have waited before it sent again what the path's queue had dropped.
    /// What came of any stream after the planned end was in that queue, so a round trip through it
    /// takes as long; the time-out that follows from the first such round trip is three of it (RFC
    /// 6298 §2.2). Zero if nothing came after the planned end. This leans long: a stream that broke
    /// off so shortly before the end passes for one that waited.
    fn longest_time_out(&self, idle_round_trip: Span) -> Span {
        let drained = self.last_byte.get().map_or(Span::ZERO, |last| last - self.planned_end);
        if drained <= Span::ZERO {
            return Span::ZERO;
        }
        let longest_drain = self.drained_by - self.planned_end;
        ((idle_round_trip + drained) * FIRST_TIME_OUT).min(longest_drain)
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

/// The round trips of a stream's path as its kernel knows them; zero where it does not tell.
#[derive(Debug, Clone, Copy)]
struct RoundTrips {
    /// Without what waits in the path's queues.
    idle: Span,
    smoothed: Span,
}

impl RoundTrips {
    fn of(stream: &TcpStream) -> Self {
        Self { idle: idle_round_trip(stream), smoothed: round_trip(stream) }
    }
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
/// Round trips that a retransmission time-out takes once the first of them has been measured.
const FIRST_TIME_OUT: i64 = 3;
/// A reset this long before the planned end is still the sender's way to end: clocks and starts
/// differ.
const EARLIEST_END: Span = Span::from_millis(250);

#[cfg(test)]
mod tests {
    use netaware_record::Direction;

    use super::*;

    const START: Mono = Mono(1_000_000_000_000);

    fn after(millis: i64) -> Mono {
        START + Span::from_millis(millis)
    }

    /// How a stream of four ends, 8 s being planned over a round trip of 215 ms: its own 40,544
    /// bytes came from 200 ms until `last`, those of any stream until `last_of_all`, and no more is
    /// waited for `now`; all in milliseconds.
    fn ended(last: i64, last_of_all: i64, now: i64) -> Result<Ending, String> {
        let stop = StopFlag::new();
        let plan = TcpPlan { streams: 4, ..TcpPlan::new(Direction::Reverse, Span::from_secs(8)) };
        let receiver = Receiver::new(&plan, Carriage::Plain, START, &stop);
        receiver.first_byte.set(after(200));
        receiver.last_byte.set(after(last_of_all));
        let moments = Moments { first: Some(after(200)), last: Some(after(last)), acked: None };
        let reading = Reading { bytes: 40_544, first: 1448, calls: 28, last_at: after(last), moments };
        let round_trips = RoundTrips { idle: Span::from_millis(215), smoothed: Span::from_millis(216) };
        assert!(receiver.is_overdue(round_trips, reading.bytes, after(now)), "it is not waited for");
        receiver.end_unheard(round_trips, &reading, after(now)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_stream_is_waited_for_as_long_as_others_of_its_transfer_bring_data() {
        let stop = StopFlag::new();
        let plan = TcpPlan { streams: 4, ..TcpPlan::new(Direction::Reverse, Span::from_secs(8)) };
        let receiver = Receiver::new(&plan, Carriage::Plain, START, &stop);
        receiver.first_byte.set(after(200));
        receiver.last_byte.set(after(17_600));
        let round_trips = RoundTrips { idle: Span::from_millis(215), smoothed: Span::from_millis(216) };
        for bytes in [0, 20_272, 40_544] {
            assert!(!receiver.is_overdue(round_trips, bytes, after(20_500)), "{bytes} B of its own");
            assert!(
                receiver.is_overdue(round_trips, bytes, after(20_700)),
                "{bytes} B, nothing of any for 3 s"
            );
        }
    }

    #[test]
    fn a_stream_that_had_drained_is_whole_although_others_drained_until_nobody_waited() {
        assert_eq!(ended(20_900, 27_900, 28_000), Ok(Ending::Planned));
        // What still dribbles then does not end.
        let late = ended(27_000, 27_900, 28_000).unwrap_err();
        assert_eq!(late, "its end had not come 20.0 s after its time was up");
    }

    #[test]
    fn a_stream_that_waits_for_a_retransmission_behind_a_deep_queue_has_not_broken_off() {
        // 40 kB came within 2 s, then nothing: the queue of 9.4 s explains a time-out of 6 s.
        assert_eq!(ended(2000, 17_400, 20_500), Ok(Ending::Planned));
        // One of a round trip does not, and neither does a path that has nothing left to give.
        for (last_of_all, now) in [(8215, 11_300), (7900, 11_300)] {
            let why = ended(2000, last_of_all, now).unwrap_err();
            assert_eq!(why, "nothing more came for 9.30 s");
        }
    }
}
