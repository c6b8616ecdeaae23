//! What hosts add to a train: lateness, stalls, and errors of the stamps. All of it drawn from a
//! seed.

use netaware_path::{Gaps, Train};
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

/// How imperfect the two hosts are. The default is perfect but for the distance of packets that
/// leave back to back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostNoise {
    /// Shortest distance at which the sender starts two packets.
    pub send_gap: Span,
    /// Mean lateness of a packet against its plan, exponential.
    pub send_jitter: Span,
    /// Standard deviation of the stamp of a send, normal.
    pub send_error: Span,
    /// Standard deviation of the stamp of an arrival, normal; the stamps never run back.
    pub receive_error: Span,
    /// Now and then the sender is kept from its core, before it reads the clock: the stamp tells.
    pub stall: Option<Stall>,
    /// Now and then it is kept from its core between its reading and the packet's leaving: no stamp
    /// tells.
    pub unseen: Option<Stall>,
}

/// A sender that does not run for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// Before each packet.
    pub probability: f64,
    /// How long.
    pub lasts: Span,
}

impl Default for HostNoise {
    fn default() -> Self {
        Self {
            send_gap: Span(100),
            send_jitter: Span::ZERO,
            send_error: Span::ZERO,
            receive_error: Span::ZERO,
            stall: None,
            unseen: None,
        }
    }
}

/// The hosts while they run.
#[derive(Debug)]
pub(super) struct Host {
    noise: HostNoise,
    rng: SplitMix64,
    /// Plan of the present packet, ps.
    plan: u128,
    /// Before this none can leave.
    free: Mono,
    last_sent: i64,
    last_received: i64,
    /// What the stalls took so far, seen and unseen.
    stalled: Span,
}

impl Host {
    pub(super) fn new(noise: HostNoise, seed: u64) -> Self {
        let rng = SplitMix64::new(SplitMix64::new(seed ^ 0x686f_7374).next_u64());
        Self {
            noise,
            rng,
            plan: 0,
            free: Mono(0),
            last_sent: i64::MIN,
            last_received: i64::MIN,
            stalled: Span::ZERO,
        }
    }

    pub(super) fn begin(&mut self, start: Mono) {
        self.plan = u128::from(start.0) * 1000;
    }

    /// When packet `n` leaves; to be asked for each in turn.
    pub(super) fn depart(&mut self, train: &Train, n: u32) -> Mono {
        let gap = match (&train.gaps, n.checked_sub(1)) {
            (_, None) => 0,
            (Gaps::BackToBack, _) => self.noise.send_gap.or_zero().nanos().unsigned_abs() * 1000,
            (Gaps::Even(gap), _) => *gap,
            (Gaps::Each(gaps), Some(before)) => gaps.get(before as usize).copied().unwrap_or(0),
        };
        self.plan += u128::from(gap);
        let plan = Mono(u64::try_from(self.plan / 1000).unwrap_or(u64::MAX));
        let at = (plan + self.lateness()).max(self.free);
        self.free = at + self.noise.send_gap.or_zero();
        at
    }

    /// From a packet's stamp to its leaving; what follows it waits as well.
    pub(super) fn unseen(&mut self) -> Span {
        let Some(stall) = self.noise.unseen else { return Span::ZERO };
        let lasts = self.drawn(stall);
        self.free += lasts;
        lasts
    }

    /// What the sender's stalls took so far.
    pub(super) fn stalled(&self) -> Span {
        self.stalled
    }

    fn drawn(&mut self, stall: Stall) -> Span {
        let lasts = if self.rng.unit() < stall.probability { stall.lasts.or_zero() } else { Span::ZERO };
        self.stalled += lasts;
        lasts
    }

    /// Plan of the packet that left last.
    pub(super) fn planned(&self) -> Mono {
        Mono(u64::try_from(self.plan / 1000).unwrap_or(u64::MAX))
    }

    pub(super) fn send_stamp(&mut self, reading: Mono) -> i64 {
        let stamp = self.stamp(reading, self.noise.send_error).max(self.last_sent);
        self.last_sent = stamp;
        stamp
    }

    pub(super) fn receive_stamp(&mut self, reading: Mono) -> i64 {
        let stamp = self.stamp(reading, self.noise.receive_error).max(self.last_received);
        self.last_received = stamp;
        stamp
    }

    fn lateness(&mut self) -> Span {
        let mut late = Span::ZERO;
        if self.noise.send_jitter > Span::ZERO {
            let drawn = -(1.0 - self.rng.unit()).ln() * self.noise.send_jitter.nanos() as f64;
            late += Span(drawn as i64);
        }
        late + self.noise.stall.map_or(Span::ZERO, |stall| self.drawn(stall))
    }

    fn stamp(&mut self, reading: Mono, error: Span) -> i64 {
        let reading = i64::try_from(reading.0).unwrap_or(i64::MAX);
        if error <= Span::ZERO {
            return reading;
        }
        // Box and Muller 1958.
        let radius = (-2.0 * (1.0 - self.rng.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.rng.unit()).cos();
        reading.saturating_add((normal * error.nanos() as f64).round() as i64)
    }
}
