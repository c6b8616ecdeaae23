//! Reads the streams' counters on absolute deadlines, while the streams' threads never wait for
//! anybody.

use std::net::TcpStream;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use netaware_record::{ReceiverTick, SenderTick};
use netaware_units::{ByteCount, Mono, Span};

use super::samples::Samples;
use crate::slices::{self, Slices};
use crate::tcp_info::TcpInfo;

/// What one stream's thread tells the meter. On cache lines of its own (two, because processors
/// fetch them in pairs), so that counting costs its thread nothing.
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
        self.done.store(true, Release);
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    fn is_done(&self) -> bool {
        self.done.load(Acquire)
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

/// When the last byte of any stream came.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LastByte(AtomicU64);

impl LastByte {
    pub(super) fn set(&self, at: Mono) {
        self.0.store(at.0.max(1), Relaxed);
    }

    pub(super) fn get(&self) -> Option<Mono> {
        Some(self.0.load(Relaxed)).filter(|at| *at > 0).map(Mono)
    }
}

/// Reports slices counted from `start` until all lanes are done, and samples each stream if
/// `samples` are wanted. Returns how long the program did not run meanwhile although it was to.
pub(super) fn watch_sender(
    start: Mono,
    tick: Span,
    streams: &[TcpStream],
    lanes: &[Lane],
    mut samples: Option<&mut Samples>,
    on_tick: &mut dyn FnMut(SenderTick),
) -> Span {
    let mut slices = Slices::starting_at(start, tick);
    let (mut bytes_before, mut retransmits_before, mut acked_before) = (0, 0, ByteCount(0));
    loop {
        let slice = slices.wait(|| all_done(lanes));
        let bytes = sum(lanes);
        let infos: Vec<TcpInfo> = streams.iter().filter_map(TcpInfo::read).collect();
        if let Some(samples) = &mut samples {
            samples.take(slice.end, &infos);
        }
        // Of one stream that does not tell, the sum would be that of the others.
        let tells = !infos.is_empty() && infos.len() == streams.len();
        let retransmits: u64 = infos.iter().map(|info| info.retransmits).sum();
        let acked: ByteCount = infos.iter().map(|info| info.acked).sum();
        let rtts: Vec<Span> = infos.iter().map(|info| info.rtt).filter(|rtt| *rtt > Span::ZERO).collect();
        let cwnd: ByteCount = infos.iter().map(|info| info.cwnd).sum();
        on_tick(SenderTick {
            end: slice.end,
            length: slice.length,
            bytes: ByteCount(bytes - bytes_before),
            retransmits: tells.then(|| retransmits.saturating_sub(retransmits_before)),
            rtt: (!rtts.is_empty()).then(|| rtts.iter().copied().sum::<Span>() / rtts.len() as i64),
            cwnd: tells.then_some(cwnd).filter(|cwnd| *cwnd > ByteCount(0)),
            acked: tells.then(|| ByteCount(acked.0.saturating_sub(acked_before.0))),
            held: tells.then(|| infos.iter().map(|info| info.held).sum()),
        });
        (bytes_before, retransmits_before, acked_before) = (bytes, retransmits, acked);
        if slice.is_last {
            return slices.stood_still();
        }
    }
}

/// Waits for the first byte, then reports slices counted from it; nothing if none ever comes.
/// Returns how long the program did not run since then although it was to.
pub(super) fn watch_receiver(
    tick: Span,
    first: &FirstByte,
    lanes: &[Lane],
    on_tick: &mut dyn FnMut(ReceiverTick),
) -> Option<Span> {
    let start = slices::wait_for(|| first.get(), || all_done(lanes))?;
    let mut slices = Slices::starting_at(start, tick);
    let mut bytes_before = 0;
    loop {
        let slice = slices.wait(|| all_done(lanes));
        let bytes = sum(lanes);
        on_tick(ReceiverTick {
            end: slice.end,
            length: slice.length,
            bytes: ByteCount(bytes - bytes_before),
            streams: lanes.iter().filter(|lane| lane.bytes() > 0).count() as u16,
            ..ReceiverTick::default()
        });
        bytes_before = bytes;
        if slice.is_last {
            return Some(slices.stood_still());
        }
    }
}

fn all_done(lanes: &[Lane]) -> bool {
    lanes.iter().all(Lane::is_done)
}

fn sum(lanes: &[Lane]) -> u64 {
    lanes.iter().map(Lane::bytes).sum()
}
