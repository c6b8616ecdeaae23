//! Reads the streams' counters on absolute deadlines, while the streams' threads never wait for anybody.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use netaware_record::{ReceiverTick, SenderTick};
use netaware_units::{ByteCount, Mono, Span};

use crate::clock;
use crate::tcp_info::TcpInfo;

/// What one stream's thread tells the meter. On cache lines of its own (two, because processors fetch them in pairs),
/// so that counting costs its thread nothing.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Lane {
    bytes: AtomicU64,
    done: AtomicBool,
}

impl Lane {
    /// Only the lane's own thread calls this, so no atomic addition is needed.
    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Relaxed);
    }

    pub(super) fn finish(&self) {
        self.done.store(true, Relaxed);
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    fn is_done(&self) -> bool {
        self.done.load(Relaxed)
    }
}

/// When the first of all streams had its first byte; set once.
#[derive(Debug, Default)]
pub(super) struct FirstByte(AtomicU64);

impl FirstByte {
    pub(super) fn set(&self, at: Mono) {
        // The zero of the clock is in use as "not yet"; nobody receives in the first nanosecond.
        let _ = self.0.compare_exchange(0, at.0.max(1), Relaxed, Relaxed);
    }

    pub(super) fn get(&self) -> Option<Mono> {
        match self.0.load(Relaxed) {
            0 => None,
            at => Some(Mono(at)),
        }
    }
}

/// Deadlines every `tick`; a slice's length is what the clock says it was.
#[derive(Debug)]
pub(super) struct Meter {
    start: Mono,
    tick: Span,
    next: Mono,
    last: Mono,
}

/// One slice of time: its end since the start, and its length.
type Slice = (Span, Span);

impl Meter {
    pub(super) fn starting_at(start: Mono, tick: Span) -> Self {
        let tick = tick.max(SHORTEST_TICK);
        Self { start, tick, next: start + tick, last: start }
    }

    /// Waits for the end of the slice, or for the end of all lanes: then the rest is a shorter slice and the second
    /// value is true.
    fn wait(&mut self, lanes: &[Lane]) -> (Slice, bool) {
        loop {
            let now = clock::now();
            let done = lanes.iter().all(Lane::is_done);
            if done || now >= self.next {
                let slice = (now - self.start, now - self.last);
                self.last = now;
                while self.next <= now {
                    self.next += self.tick;
                }
                return (slice, done);
            }
            // A finishing stream unparks us; the bound covers a thread that could not be started.
            std::thread::park_timeout((self.next - now).min(LONGEST_WAIT).to_std());
        }
    }

    pub(super) fn watch_sender(
        mut self,
        streams: &[TcpStream],
        lanes: &[Lane],
        tick: &mut dyn FnMut(SenderTick),
    ) {
        let (mut bytes_before, mut retransmits_before) = (0, 0);
        loop {
            let ((end, length), done) = self.wait(lanes);
            let bytes = sum(lanes);
            let infos: Vec<TcpInfo> = streams.iter().filter_map(TcpInfo::read).collect();
            let retransmits: u64 = infos.iter().map(|info| info.retransmits).sum();
            tick(SenderTick {
                end,
                length,
                bytes: ByteCount(bytes - bytes_before),
                retransmits: retransmits.saturating_sub(retransmits_before),
                rtt: infos.iter().map(|info| info.rtt).sum::<Span>() / infos.len() as i64,
                cwnd: infos.iter().map(|info| info.cwnd).sum(),
            });
            (bytes_before, retransmits_before) = (bytes, retransmits);
            if done {
                return;
            }
        }
    }

    fn watch_receiver(mut self, lanes: &[Lane], tick: &mut dyn FnMut(ReceiverTick)) {
        let mut bytes_before = 0;
        loop {
            let ((end, length), done) = self.wait(lanes);
            let bytes = sum(lanes);
            tick(ReceiverTick {
                end,
                length,
                bytes: ByteCount(bytes - bytes_before),
                streams: lanes.iter().filter(|lane| lane.bytes() > 0).count() as u16,
                ..ReceiverTick::default()
            });
            bytes_before = bytes;
            if done {
                return;
            }
        }
    }
}

/// Waits for the first byte, then reports slices counted from it; nothing if none ever comes.
pub(super) fn watch_receiver(
    tick: Span,
    first: &FirstByte,
    lanes: &[Lane],
    on_tick: &mut dyn FnMut(ReceiverTick),
) {
    loop {
        let done = lanes.iter().all(Lane::is_done);
        if let Some(start) = first.get() {
            return Meter::starting_at(start, tick).watch_receiver(lanes, on_tick);
        }
        if done {
            return;
        }
        std::thread::park_timeout(FIRST_BYTE_CHECK.to_std());
    }
}

fn sum(lanes: &[Lane]) -> u64 {
    lanes.iter().map(Lane::bytes).sum()
}

/// A plan may come from the network: no slice is shorter than this.
const SHORTEST_TICK: Span = Span::from_millis(1);
const LONGEST_WAIT: Span = Span::from_millis(50);
/// Far below any tick, so that the first slice is not cut.
const FIRST_BYTE_CHECK: Span = Span::from_millis(2);
