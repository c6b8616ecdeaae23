//! What this host can do as an instrument: measured on its own loopback, in some milliseconds.

use std::net::{Ipv4Addr, UdpSocket};

use netaware_record::StampTiming;
use netaware_units::{ClockSource, Span};

use crate::clock;
use crate::instrument::receive_room;
use crate::probe_socket::{ProbeSocket, Stamping};

/// How fast this host sends single packets, and how far its stamps can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// Median time from the begin of one send to that of the next.
    pub send_gap: Span,
    /// Standard error of the time of a send or of an arrival, each half of what the way between the
    /// two stamps varies: the quartile range of it over 1.35 (normal), since single disturbances
    /// are for the methods to find.
    pub stamp_error: Span,
}

impl Calibration {
    /// What a host of which nothing is known is taken for.
    pub const USUAL: Self = Self { send_gap: Span::from_micros(3), stamp_error: Span::from_micros(1) };

    /// What another host says of itself, within what any host can be.
    #[must_use]
    pub fn sane(self) -> Self {
        let within = |span: Span, least| span.max(least).min(MOST);
        Self { send_gap: within(self.send_gap, Span(1)), stamp_error: within(self.stamp_error, LEAST_ERROR) }
    }
}

impl From<StampTiming> for Calibration {
    fn from(timing: StampTiming) -> Self {
        Self { send_gap: timing.send_gap, stamp_error: timing.error }
    }
}

/// Sends packets to itself, each as soon as the one before has been read; `None` on a host without
/// loopback.
pub fn stamp_timing() -> Option<StampTiming> {
    Some(StampTiming { room: receive_room(), ..calibrate_for(ROUNDS)? })
}

/// The same for so many rounds; `None` on a host without loopback.
pub(crate) fn calibrate_for(rounds: usize) -> Option<StampTiming> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok();
    let (out, into) = (bind()?, bind()?);
    out.connect(into.local_addr().ok()?).ok()?;
    into.connect(out.local_addr().ok()?).ok()?;
    let into = ProbeSocket::new(into, Stamping::Kernel).ok()?;
    let payload = [0; PAYLOAD];
    let mut gaps = Vec::with_capacity(rounds * TRAIN);
    let mut ways = Vec::with_capacity(rounds * TRAIN);
    let mut buf = [0; PAYLOAD];
    for _ in 0..rounds {
        let mut left = [clock::now(); TRAIN];
        for at in &mut left {
            *at = clock::now();
            out.send(&payload).ok()?;
        }
        gaps.extend(left.windows(2).map(|pair| pair[1] - pair[0]));
        for at in left {
            let until = clock::now() + PATIENCE;
            let arrival = into.receive(&mut buf, Some(until)).ok()??;
            if arrival.rx.by == ClockSource::Kernel {
                ways.push(arrival.rx.at - at);
            }
        }
    }
    gaps.sort_unstable();
    ways.sort_unstable();
    let at = |of: &[Span], share: usize| of.get(of.len() * share / 4).copied();
    let spread = at(&ways, 3).zip(at(&ways, 1)).map_or(Calibration::USUAL.stamp_error, |(high, low)| {
        // Two stamps share the variance; below the resolution of what is read nothing is known.
        Span(((high - low).0 as f64 / 1.35 / std::f64::consts::SQRT_2) as i64).max(LEAST_ERROR)
    });
    Some(StampTiming {
        by_kernel: !ways.is_empty(),
        error: spread,
        send_gap: at(&gaps, 2)?.max(Span(1)),
        room: None,
    })
}

/// No host is slower.
const MOST: Span = Span::from_millis(100);
const PAYLOAD: usize = 1400;
const ROUNDS: usize = 20;
const TRAIN: usize = 20;
const PATIENCE: Span = Span::from_millis(50);
const LEAST_ERROR: Span = Span(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_host_claims_is_kept_within_what_a_host_can_be() {
        let claimed = Calibration { send_gap: Span(-5), stamp_error: Span(i64::MAX) }.sane();
        assert_eq!(claimed, Calibration { send_gap: Span(1), stamp_error: Span::from_millis(100) });
        assert_eq!(Calibration::USUAL.sane(), Calibration::USUAL);
    }

    #[test]
    fn a_host_sends_no_faster_than_it_reads_its_clock_and_no_slower_than_a_sleep() {
        let found = Calibration::from(stamp_timing().unwrap());
        assert!(found.send_gap > Span(100) && found.send_gap < Span::from_millis(1), "{found:?}");
        assert!(found.stamp_error >= LEAST_ERROR && found.stamp_error < Span::from_millis(1), "{found:?}");
    }
}
