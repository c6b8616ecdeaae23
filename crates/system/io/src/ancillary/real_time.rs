//! Carries the kernel's stamps from the real-time clock, which may step, to the monotonic clock,
//! which never does.
//!
//! Both clocks run at the same steered rate, so their difference is one constant until somebody
//! steps the real-time clock. Each paired reading brackets that constant; the brackets are
//! intersected, which leaves a few nanoseconds after a handful of readings. A reading that fits no
//! longer means a step: stamps taken before it belong to a difference that is gone, so they are
//! refused until none of them can be confused with a new one. The refused are replaced by the
//! application's own reading and counted: they lean late by the scheduler's delay, but never by the
//! step.

use netaware_units::{ClockSource, Mono, Span, Stamp, Wall};

use crate::clock;

/// The two clocks read together: `wall` between two readings of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockPair {
    /// Just before `wall`.
    pub(crate) before: Mono,
    /// The real-time clock.
    pub(crate) wall: Wall,
    /// Just after `wall`.
    pub(crate) after: Mono,
}

impl ClockPair {
    /// Three reads, about 90 ns.
    #[inline]
    pub(crate) fn read() -> Self {
        let before = clock::now();
        let wall = clock::wall();
        Self { before, wall, after: clock::now() }
    }

    /// The least and the greatest difference real-time minus monotonic, in ns, that this reading
    /// allows.
    fn bracket(self) -> (i64, i64) {
        let wall = i128::from(self.wall.0);
        let less = |mono: Mono| saturate(wall - i128::from(mono.0));
        (less(self.after), less(self.before))
    }
}

/// What is known about the difference of the two clocks.
#[derive(Debug, Clone)]
pub(crate) struct RealTime {
    low: i64,
    high: i64,
    /// Stamps that map to an earlier instant may have been taken before the last step.
    trusted_from: Mono,
    fallbacks: u64,
}

impl RealTime {
    /// Starts from one reading.
    pub(crate) fn new(first: ClockPair) -> Self {
        let (low, high) = first.bracket();
        Self { low, high, trusted_from: Mono(0), fallbacks: 0 }
    }

    /// Starts from a few readings of the host's clocks.
    pub(crate) fn start() -> Self {
        let mut clocks = Self::new(ClockPair::read());
        for _ in 0..FIRST_READINGS {
            clocks.observe(ClockPair::read());
        }
        clocks
    }

    /// Takes in a reading; finds out whether the real-time clock was stepped since the last one.
    #[inline]
    pub(crate) fn observe(&mut self, pair: ClockPair) {
        let (low, high) = pair.bracket();
        let (narrow_low, narrow_high) = (low.max(self.low), high.min(self.high));
        if narrow_low <= narrow_high {
            (self.low, self.high) = (narrow_low, narrow_high);
        } else if narrow_low - narrow_high > ROUNDING {
            self.step(pair.after, low, high);
        }
    }

    /// A stamp taken before a step by `d` and mapped after it is wrong by `d`. After a forward step
    /// it lands before the step was seen; after a backward one up to `d` beyond its true instant,
    /// so that span is refused as well.
    fn step(&mut self, seen_at: Mono, low: i64, high: i64) {
        let backward = Span(self.low.saturating_sub(low)).or_zero();
        self.trusted_from = seen_at + backward.min(LONGEST_QUEUEING);
        (self.low, self.high) = (low, high);
    }

    /// Maps a stamp that the kernel took between `earliest` and the reading `pair`, or gives the
    /// application's stamp, counted, if that cannot be believed. `None`: the kernel gave no stamp.
    #[inline]
    pub(crate) fn map_or_application(
        &mut self,
        stamp: Option<Wall>,
        pair: ClockPair,
        earliest: Mono,
    ) -> Stamp {
        let mapped = stamp.and_then(|stamp| self.map(stamp, pair, earliest));
        mapped.unwrap_or_else(|| {
            self.fallbacks += 1;
            Stamp::application(pair.before)
        })
    }

    /// Maps a stamp, or nothing if it cannot be believed.
    #[inline]
    pub(crate) fn map(&mut self, stamp: Wall, pair: ClockPair, earliest: Mono) -> Option<Stamp> {
        self.observe(pair);
        let error = (self.high - self.low) / 2 + 1;
        let at = i128::from(stamp.0) - i128::from(self.low + (self.high - self.low) / 2);
        let at = Mono(u64::try_from(at).ok()?);
        let from = earliest.max(pair.after - OLDEST).max(self.trusted_from);
        if at + Span(error) < from || at > pair.before + Span(error) {
            return None;
        }
        Some(Stamp { at: at.min(pair.before), by: ClockSource::Kernel, error: Span(error) })
    }

    /// Counts a stamp of the application that stands for one of the kernel's.
    pub(crate) fn count_fallback(&mut self) {
        self.fallbacks += 1;
    }

    /// Stamps of the application that stand for one of the kernel's.
    pub(crate) fn fallbacks(&self) -> u64 {
        self.fallbacks
    }
}

fn saturate(nanos: i128) -> i64 {
    nanos.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
}

/// Each clock rounds to whole nanoseconds by itself, so that two true brackets may miss each other
/// by so much.
const ROUNDING: i64 = 4;
const FIRST_READINGS: usize = 8;
/// Nothing that we wait for lies in a socket buffer longer than this.
const OLDEST: Span = Span::from_secs(10);
/// After a backward step we refuse stamps for as long as stamped datagrams may have waited unread,
/// not for the hour that the step may have been.
const LONGEST_QUEUEING: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const HOUR: i64 = 3_600 * SECOND;

    /// A host whose clocks are read at will, 30 ns apart.
    struct Host {
        now: u64,
        offset: i64,
    }

    impl Host {
        fn new() -> Self {
            Self { now: 5_000_000_000, offset: 1_700_000_000 * SECOND }
        }
        fn wall(&self) -> Wall {
            Wall(self.now as i64 + self.offset)
        }
        fn pass(&mut self, nanos: u64) {
            self.now += nanos;
        }
        fn pair(&mut self) -> ClockPair {
            let before = Mono(self.now);
            self.pass(30);
            let wall = self.wall();
            self.pass(30);
            ClockPair { before, wall, after: Mono(self.now) }
        }
    }

    #[test]
    fn a_stamp_maps_to_its_instant_within_its_own_error() {
        let mut host = Host::new();
        let mut clocks = RealTime::new(host.pair());
        for nanos in [1, 17, 1_000, 250_000, 3_000_000] {
            let (true_at, stamp) = (host.now, host.wall());
            host.pass(nanos);
            let pair = host.pair();
            let got = clocks.map_or_application(Some(stamp), pair, Mono(0));
            assert_eq!(got.by, ClockSource::Kernel);
            assert!(got.at.since(Mono(true_at)).abs() <= got.error, "{got:?} for {true_at}");
            assert!(got.error <= Span(31));
        }
        assert_eq!(clocks.fallbacks(), 0);
    }

    #[test]
    fn brackets_narrow_so_that_two_stamps_share_one_mapping() {
        let mut host = Host::new();
        let mut clocks = RealTime::new(host.pair());
        // A reading torn by the scheduler before the wall clock was read, and one torn after it.
        for (first, second) in [(900_000, 3), (2, 700_000)] {
            let before = Mono(host.now);
            host.pass(first);
            let wall = host.wall();
            host.pass(second);
            clocks.observe(ClockPair { before, wall, after: Mono(host.now) });
        }
        let stamp = host.wall();
        let pair = host.pair();
        assert!(clocks.map(stamp, pair, Mono(0)).unwrap().error <= Span(4));
    }

    #[test]
    fn a_stamp_from_before_a_step_is_refused_whatever_the_step() {
        for step in [HOUR, -HOUR, SECOND, -SECOND, 5_000_000, -5_000_000, 20_000, -20_000, 100, -100] {
            let mut host = Host::new();
            let mut clocks = RealTime::new(host.pair());
            host.pass(1_000_000);
            let stamp = host.wall();
            host.pass(3_000);
            host.offset += step;
            host.pass(2_000);
            let pair = host.pair();
            let got = clocks.map_or_application(Some(stamp), pair, Mono(0));
            assert_eq!((got.by, got.at), (ClockSource::Application, pair.before), "step {step}");
            assert_eq!(clocks.fallbacks(), 1);
        }
    }

    #[test]
    fn a_datagram_that_waited_through_a_step_is_refused_too() {
        for step in [HOUR, -HOUR, 5_000_000, -5_000_000] {
            let mut host = Host::new();
            let mut clocks = RealTime::new(host.pair());
            let stamp = host.wall();
            host.pass(100_000);
            host.offset += step;
            // Another datagram is read first and finds out about the step; this one waits 20 ms
            // more.
            clocks.observe(host.pair());
            host.pass(20_000_000);
            let pair = host.pair();
            assert_eq!(clocks.map(stamp, pair, Mono(0)), None, "step {step}");
        }
    }

    #[test]
    fn kernel_stamps_return_after_a_step() {
        for (step, pause) in [(HOUR, 1_000), (-HOUR, SECOND as u64), (-5_000_000, 5_000_000)] {
            let mut host = Host::new();
            let mut clocks = RealTime::new(host.pair());
            host.offset += step;
            clocks.observe(host.pair());
            host.pass(pause);
            let (true_at, stamp) = (Mono(host.now), host.wall());
            host.pass(4_000);
            let pair = host.pair();
            let got = clocks.map(stamp, pair, Mono(0)).unwrap();
            assert!(got.at.since(true_at).abs() <= got.error, "step {step}");
        }
    }

    #[test]
    fn stamps_from_the_future_or_before_the_socket_are_refused() {
        let mut host = Host::new();
        let mut clocks = RealTime::new(host.pair());
        let (early, opened_at) = (host.wall(), Mono(host.now + 1_000));
        host.pass(5_000);
        let pair = host.pair();
        assert_eq!(clocks.map(early, pair, opened_at), None);
        assert_eq!(clocks.map(Wall(host.wall().0 + 10_000), pair, opened_at), None);
        for absurd in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(clocks.map(Wall(absurd), pair, opened_at), None);
        }
    }
}
