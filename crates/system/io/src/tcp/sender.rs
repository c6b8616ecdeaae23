//! The sending loop of one stream.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;

use netaware_record::StreamEnd;
use netaware_units::{BitRate, ByteCount, Mono, Span};
use netaware_wire::control::TcpPlan;

use super::budget::{Budget, Schedule};
use super::meter::Lane;
use super::{DEFAULT_LENGTH, Ended, Ending, GRACE, LOOK_UP, is_timeout, planned_end};
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
    zerocopy: bool,
    stop: &'a StopFlag,
}

impl<'a> Sender<'a> {
    pub(super) fn new(plan: &TcpPlan, streams: usize, start: Mono, stop: &'a StopFlag) -> Self {
        Self {
            payload: &payload()[..plan.length.clamp(1, DEFAULT_LENGTH) as usize],
            budget: Budget::new(plan.bytes),
            rate: plan.rate.map(|rate| BitRate((rate.0 / streams.max(1) as u64).max(1))),
            start,
            others_start: start + plan.alone.or_zero(),
            end: planned_end(plan, start),
            zerocopy: plan.zerocopy,
            stop,
        }
    }

    pub(super) fn run(&self, index: u16, stream: &TcpStream, lane: &Lane) -> Ended {
        let mut progress = Progress { bytes: 0, calls: 0, lane };
        self.wait_for_turn(index);
        let result = prepare(stream, self.rate)
            .and_then(|()| Writer::new(self.zerocopy))
            .and_then(|mut writer| self.send(stream, &mut writer, &mut progress))
            .and_then(|how| if how == Ending::Planned { self.deliver(stream) } else { Ok(how) });
        let stream = StreamEnd {
            bytes: ByteCount(progress.bytes),
            calls: progress.calls,
            ..stream_end(index, stream)
        };
        self.end_of(stream, result)
    }

    /// A failure after somebody asked us to stop is part of stopping: the peer was asked too.
    fn end_of(&self, mut stream: StreamEnd, result: io::Result<Ending>) -> Ended {
        let how = result.unwrap_or_else(|error| {
            if self.stop.is_raised() {
                return Ending::Stopped;
            }
            stream.error = Some(error.to_string());
            Ending::Broken
        });
        Ended { stream, at: clock::now(), how }
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
            let written = written(writer.write(stream, &self.payload[..claimed]));
            self.budget.give_back(claimed - written.as_ref().copied().unwrap_or(0));
            let written = written?;
            progress.count(written);
            if let Some(schedule) = &mut schedule {
                schedule.count(written);
            }
        }
    }

    /// Once a limit in bytes is reached: ends the stream and waits until the peer, having read all of it, closes too.
    fn deliver(&self, stream: &TcpStream) -> io::Result<Ending> {
        if !self.budget.is_spent() {
            return Ok(Ending::Planned);
        }
        stream.shutdown(Shutdown::Write)?;
        let mut scratch = [0; 512];
        while clock::now() < self.end + GRACE {
            if self.stop.is_raised() {
                return Ok(Ending::Stopped);
            }
            match (&mut &*stream).read(&mut scratch) {
                Ok(0) => return Ok(Ending::Planned),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::TimedOut, "the peer did not confirm that it has received everything"))
    }
}

/// Where one stream stands.
#[derive(Debug)]
struct Progress<'a> {
    bytes: u64,
    calls: u64,
    lane: &'a Lane,
}

impl Progress<'_> {
    fn count(&mut self, bytes: usize) {
        self.calls += 1;
        self.bytes += bytes as u64;
        self.lane.set_bytes(self.bytes);
    }
}

/// How bytes are handed to the system.
#[derive(Debug)]
enum Writer {
    Copying,
    #[cfg(target_os = "linux")]
    Splicing(super::splice::Splicer),
}

impl Writer {
    #[cfg(target_os = "linux")]
    fn new(zerocopy: bool) -> io::Result<Self> {
        if zerocopy { super::splice::Splicer::new().map(Self::Splicing) } else { Ok(Self::Copying) }
    }

    #[cfg(not(target_os = "linux"))]
    fn new(zerocopy: bool) -> io::Result<Self> {
        if zerocopy {
            return Err(io::Error::new(ErrorKind::Unsupported, "no zero-copy sending on this system"));
        }
        Ok(Self::Copying)
    }

    fn write(&mut self, mut stream: &TcpStream, bytes: &'static [u8]) -> io::Result<usize> {
        match self {
            Self::Copying => stream.write(bytes),
            #[cfg(target_os = "linux")]
            Self::Splicing(splicer) => splicer.send(stream, bytes),
        }
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
        // Without it a sender fills the send buffer (megabytes that leave the cache) before it waits. It does not touch
        // what is in flight, and the device's own queue holds about a millisecond (TCP small queues), so a sender that
        // wakes late leaves no gap. Of 64, 128, 256 and 512 KiB the first is the fastest here, up to 20 % on loopback;
        // but it means that the queue is empty at each wake-up, which on a path limited by its window would read low.
        let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        if let Some(rate) = rate {
            set_pacing(stream, rate);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = rate;
    Ok(())
}

/// Asks TCP to spread segments at 5 % above the rate, which leaves room for headers; the schedule keeps the mean.
#[cfg(target_os = "linux")]
fn set_pacing(stream: &TcpStream, rate: BitRate) {
    use std::os::fd::AsRawFd;
    let bytes_per_second: u64 = (rate.0 / 8).saturating_mul(105) / 100;
    // SAFETY: the option takes a u64 of eight bytes (since Linux 5.0; older ones refuse or clamp, then only the schedule
    // paces).
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

/// What is sent: noise, so that a link that compresses gains nothing. Never freed and never changed, because the kernel
/// may still read its pages after a test has ended.
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
