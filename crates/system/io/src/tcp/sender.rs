//! The sending loop of one stream.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;

use netaware_record::StreamEnd;
use netaware_units::{BitRate, ByteCount, Mono, Span};
use netaware_wire::control::TcpPlan;

use super::budget::{Budget, Schedule};
use super::meter::Lane;
use super::moments::{self, Moments, Patience, Sent};
use super::{
    DEFAULT_LENGTH, Encryption, Ended, Ending, LOOK_UP, grace_over, idle_round_trip, is_timeout, planned_end,
};
use crate::clock;
use crate::stop::StopFlag;
use crate::tcp_info::stream_end;

/// What the streams of one transfer share.
#[derive(Debug)]
pub(super) struct Sender<'a> {
    payload: &'static [u8],
    budget: Budget,
    /// Each stream's share.
    rate: Option<BitRate>,
    start: Mono,
    others_start: Mono,
    end: Mono,
    /// How long the path's queues may take to drain after that.
    longest_drain: Span,
    zerocopy: bool,
    /// What each stream's peer had acknowledged before the first byte that counts.
    acked_before: &'a [ByteCount],
    stop: &'a StopFlag,
}

impl<'a> Sender<'a> {
    /// `acked_before` has one entry for each stream.
    pub(super) fn new(
        plan: &TcpPlan,
        acked_before: &'a [ByteCount],
        start: Mono,
        stop: &'a StopFlag,
    ) -> Self {
        let streams = acked_before.len().max(1) as u64;
        Self {
            payload: &payload()[..plan.length.clamp(1, DEFAULT_LENGTH) as usize],
            budget: Budget::new(plan.bytes),
            rate: plan.rate.map(|rate| BitRate((rate.0 / streams).max(1))),
            start,
            others_start: start + plan.alone.or_zero(),
            end: planned_end(plan, start),
            longest_drain: plan.longest_drain(),
            zerocopy: plan.zerocopy,
            acked_before,
            stop,
        }
    }

    pub(super) fn run(
        &self,
        index: u16,
        stream: &TcpStream,
        encryption: Option<Box<dyn Encryption>>,
        lane: &Lane,
    ) -> Ended {
        let mut progress = self.progress(index.into(), lane);
        self.wait_for_turn(index);
        let result = prepare(stream, self.rate)
            .and_then(|()| Writer::new(self.zerocopy, encryption))
            .and_then(|mut writer| self.send_all(stream, &mut writer, &mut progress));
        progress.returned_by(clock::now());
        self.conclude(index, stream, progress, result)
    }

    fn send_all(
        &self,
        stream: &TcpStream,
        writer: &mut Writer,
        progress: &mut Progress<'_>,
    ) -> io::Result<Ending> {
        let given_before = writer.given();
        let result = self.send(stream, writer, progress).and_then(|how| match how {
            Ending::Planned if self.budget.is_spent() => self.finish(stream, writer),
            other => Ok(other),
        });
        progress.added = writer.given().saturating_sub(given_before + progress.bytes);
        result
    }

    /// What encryption holds back belongs to the bytes that were asked for.
    fn finish(&self, stream: &TcpStream, writer: &mut Writer) -> io::Result<Ending> {
        loop {
            match writer.finish(stream) {
                Err(error) if is_timeout(&error) => {}
                other => return other.map(|()| Ending::Planned),
            }
            if self.stop.is_raised() {
                return Ok(Ending::Stopped);
            }
            if clock::now() >= self.end + self.grace(stream) {
                return Err(io::Error::new(ErrorKind::TimedOut, "the peer does not take what is left"));
            }
        }
    }

    fn grace(&self, stream: &TcpStream) -> Span {
        grace_over(idle_round_trip(stream), self.longest_drain)
    }

    /// Nothing of the stream at `index` is sent yet.
    pub(super) fn progress<'l>(&self, index: usize, lane: &'l Lane) -> Progress<'l> {
        let acked_before = self.acked_before.get(index).copied().unwrap_or_default();
        Progress {
            bytes: 0,
            added: 0,
            calls: 0,
            acked_before,
            moments: Moments::default(),
            is_unclocked: false,
            is_shut: false,
            lane,
        }
    }

    /// Sending is over: lets what is limited in bytes arrive, and says what became of the stream.
    pub(super) fn conclude(
        &self,
        index: u16,
        stream: &TcpStream,
        mut progress: Progress<'_>,
        result: io::Result<Ending>,
    ) -> Ended {
        let result = result.and_then(|how| match how {
            Ending::Planned => self.deliver(stream, &mut progress),
            other => Ok(other),
        });
        let sent = progress.sent();
        let Progress { bytes, calls, mut moments, .. } = progress;
        moments.acked = moments.acked.or_else(|| moments::acked_now(stream, sent));
        let stream = StreamEnd { bytes: ByteCount(bytes), calls, ..stream_end(index, stream) };
        self.end_of(stream, moments, result)
    }

    /// Whether somebody asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_raised()
    }

    /// When sending is over by the plan.
    pub(super) fn end(&self) -> Mono {
        self.end
    }

    /// Whether a number of bytes was asked for and has been sent.
    pub(super) fn is_all_sent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Takes a block, or what is left of the bytes asked for; 0 when nothing is.
    pub(super) fn claim(&self) -> usize {
        self.budget.claim(self.payload.len())
    }

    /// Gives back what was claimed and not sent.
    pub(super) fn give_back(&self, unsent: usize) {
        self.budget.give_back(unsent);
    }

    /// So many bytes to send, at most a block.
    pub(super) fn block(&self, length: usize) -> &'static [u8] {
        &self.payload[..length.min(self.payload.len())]
    }

    /// Whether the stream at `index` has its turn already.
    pub(super) fn may_send(&self, index: usize, now: Mono) -> bool {
        index == 0 || now >= self.others_start
    }

    /// A failure after somebody asked us to stop is part of stopping: the peer was asked too.
    fn end_of(&self, mut stream: StreamEnd, moments: Moments, result: io::Result<Ending>) -> Ended {
        let how = result.unwrap_or_else(|error| {
            if self.stop.is_raised() {
                return Ending::Stopped;
            }
            stream.error = Some(error.to_string());
            Ending::Broken
        });
        Ended { stream, at: clock::now(), how, moments }
    }

    fn wait_for_turn(&self, index: u16) {
        let turn = if index == 0 { self.start } else { self.others_start };
        wait_until(turn, self.stop);
    }

    fn send(
        &self,
        stream: &TcpStream,
        writer: &mut Writer,
        progress: &mut Progress<'_>,
    ) -> io::Result<Ending> {
        let mut schedule = self.rate.map(|rate| Schedule::new(rate, clock::now()));
        let length = schedule.as_ref().map_or(self.payload.len(), |rate| rate.chunk(self.payload.len()));
        loop {
            if self.stop.is_raised() {
                return Ok(Ending::Stopped);
            }
            let now = clock::now();
            progress.returned_by(now);
            if now >= self.end {
                return Ok(Ending::Planned);
            }
            if let Some(due) = schedule.as_mut().map(|rate| rate.due(now)).filter(|due| *due > now) {
                wait_until(due.min(self.end), self.stop);
                continue;
            }
            let claimed = self.budget.claim(length);
            if claimed == 0 {
                return Ok(Ending::Planned);
            }
            progress.begins_at(now);
            let written = written(writer.write(stream, &self.payload[..claimed]));
            self.budget.give_back(claimed - written.as_ref().copied().unwrap_or(0));
            let written = written?;
            progress.count(written);
            if let Some(schedule) = &mut schedule {
                schedule.count(written);
            }
        }
    }

    /// Once a limit in bytes is reached: ends the stream and waits until the peer, having read all
    /// of it, closes too.
    fn deliver(&self, stream: &TcpStream, progress: &mut Progress<'_>) -> io::Result<Ending> {
        if !self.budget.is_spent() {
            return Ok(Ending::Planned);
        }
        progress.say_it_is_all(stream)?;
        stream.set_read_timeout(Some(LOOK_UP.to_std()))?;
        let patience =
            Patience { end: self.end, grace: self.grace(stream), longest_drain: self.longest_drain };
        progress.moments.acked = moments::await_acks(stream, progress.sent(), patience, self.stop);
        // All that was acknowledged last has to be read, and the other end's close has to come.
        let heard = progress.moments.acked.map_or(self.end, |(at, _)| at);
        let until = patience.until(heard);
        let mut scratch = [0; 512];
        loop {
            if self.stop.is_raised() {
                return Ok(Ending::Stopped);
            }
            match (&mut &*stream).read(&mut scratch) {
                Ok(0) => return Ok(Ending::Planned),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            if clock::now() >= until {
                let why = "the peer did not confirm that it has received everything";
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
        }
    }
}

/// Where one stream stands.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    bytes: u64,
    /// What encryption added to these.
    added: u64,
    calls: u64,
    acked_before: ByteCount,
    moments: Moments,
    /// The last write that moved data has returned, and nobody has looked at the clock since.
    is_unclocked: bool,
    /// The peer has been told that nothing more comes.
    is_shut: bool,
    lane: &'a Lane,
}

impl Progress<'_> {
    fn sent(&self) -> Sent {
        let Self { acked_before, bytes, added, .. } = *self;
        Sent { acked_before, payload: bytes, given: bytes + added }
    }

    /// A write begins.
    pub(super) fn begins_at(&mut self, now: Mono) {
        self.moments.first.get_or_insert(now);
    }

    /// A write has moved so much.
    pub(super) fn count(&mut self, bytes: usize) {
        self.calls += u64::from(bytes > 0);
        self.is_unclocked |= bytes > 0;
        self.bytes += bytes as u64;
        self.lane.set_bytes(self.bytes);
    }

    /// Ends the stream in the direction of sending, once: a second time may find the connection
    /// closed by both.
    pub(super) fn say_it_is_all(&mut self, stream: &TcpStream) -> io::Result<()> {
        if std::mem::replace(&mut self.is_shut, true) { Ok(()) } else { stream.shutdown(Shutdown::Write) }
    }

    /// The writes so far have returned by `now`.
    pub(super) fn returned_by(&mut self, now: Mono) {
        if self.is_unclocked {
            self.moments.last = Some(now);
            self.is_unclocked = false;
        }
    }
}

/// How bytes are handed to the system.
#[derive(Debug)]
enum Writer {
    Copying,
    Encrypting(Box<dyn Encryption>),
    #[cfg(target_os = "linux")]
    Splicing(super::splice::Splicer),
}

impl Writer {
    /// What is encrypted has to be copied.
    fn new(zerocopy: bool, encryption: Option<Box<dyn Encryption>>) -> io::Result<Self> {
        match encryption {
            Some(encryption) => Ok(Self::Encrypting(encryption)),
            None if zerocopy => Self::splicing(),
            None => Ok(Self::Copying),
        }
    }

    #[cfg(target_os = "linux")]
    fn splicing() -> io::Result<Self> {
        super::splice::Splicer::new().map(Self::Splicing)
    }

    #[cfg(not(target_os = "linux"))]
    fn splicing() -> io::Result<Self> {
        Err(io::Error::new(ErrorKind::Unsupported, "no zero-copy sending on this system"))
    }

    fn write(&mut self, mut stream: &TcpStream, bytes: &'static [u8]) -> io::Result<usize> {
        match self {
            Self::Copying => stream.write(bytes),
            Self::Encrypting(encryption) => encryption.write(stream, bytes),
            #[cfg(target_os = "linux")]
            Self::Splicing(splicer) => splicer.send(stream, bytes),
        }
    }

    fn finish(&mut self, stream: &TcpStream) -> io::Result<()> {
        if let Self::Encrypting(encryption) = self { encryption.finish(stream) } else { Ok(()) }
    }

    /// Encrypted bytes that the socket has taken so far; 0 without encryption.
    fn given(&self) -> u64 {
        if let Self::Encrypting(encryption) = self { encryption.given() } else { 0 }
    }
}

/// A write that had to wait too long is one that has written nothing yet.
fn written(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if is_timeout(&error) => Ok(0),
        other => other,
    }
}

fn prepare(stream: &TcpStream, rate: Option<BitRate>) -> io::Result<()> {
    stream.set_write_timeout(Some(LOOK_UP.to_std()))?;
    stream.set_read_timeout(Some(LOOK_UP.to_std()))?;
    #[cfg(target_os = "linux")]
    {
        // Without it a sender fills the send buffer (megabytes that leave the cache) before it
        // waits. It does not touch what is in flight, and the device's own queue holds about a
        // millisecond (TCP small queues), so a sender that wakes late leaves no gap. Of 64, 128,
        // 256 and 512 KiB the first is the fastest here, up to 20 % on loopback; but it means that
        // the queue is empty at each wake-up, which on a path limited by its window would read low.
        let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        if let Some(rate) = rate {
            set_pacing(stream, rate);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = rate;
    Ok(())
}

/// Asks TCP to spread segments at 5 % above the rate, which leaves room for headers; the schedule
/// keeps the mean.
#[cfg(target_os = "linux")]
fn set_pacing(stream: &TcpStream, rate: BitRate) {
    use std::os::fd::AsRawFd;
    let bytes_per_second: u64 = (rate.0 / 8).saturating_mul(105) / 100;
    // SAFETY: the option takes a u64 of eight bytes (since Linux 5.0; older ones refuse or clamp,
    // then only the schedule paces).
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            size_of::<u64>() as libc::socklen_t,
        );
    }
}

fn wait_until(due: Mono, stop: &StopFlag) {
    let mut now = clock::now();
    while now < due && !stop.is_raised() {
        clock::sleep_until(due.min(now + LOOK_UP));
        now = clock::now();
    }
}

/// What is sent: noise, so that a link that compresses gains nothing. Never freed and never
/// changed, because the kernel may still read its pages after a test has ended.
fn payload() -> &'static [u8] {
    static PAYLOAD: OnceLock<Vec<u8>> = OnceLock::new();
    PAYLOAD.get_or_init(|| {
        let mut noise = netaware_stats::rng::SplitMix64::new(0x6e61);
        (0..DEFAULT_LENGTH / 8).flat_map(|_| noise.next_u64().to_ne_bytes()).collect()
    })
}

/// See `prepare`.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 << 10;

/// For the doc of [`LOOK_UP`]: the stop flag promises 50 ms.
const _: () = assert!(LOOK_UP.0 < Span::from_millis(50).0, "a raised flag must be seen within 50 ms");
