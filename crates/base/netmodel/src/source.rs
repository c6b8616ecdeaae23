//! Cross traffic: each source yields its packets in order of time, drawn only when they are needed.

mod on_off;
mod sizes;
mod tcp;
mod warp;

use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;

use crate::network::draw::{generator, pareto};
use crate::network::pace::{Pace, PerByte, SECOND};
use crate::network::server::Carried;
use crate::scenario::{Cross, Pattern};

use on_off::OnOff;
use sizes::Sizes;
use tcp::Tcp;
use warp::Warp;

/// What became of a packet of a responsive source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Arrived,
    Lost,
}

/// One entry of the scenario's cross traffic.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    number: u32,
    version: IpVersion,
    sizes: Sizes,
    rng: SplitMix64,
    warp: Warp,
    kind: Kind,
    /// When the next packet may come; `u64::MAX` for never.
    next_at: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    /// In the source's own time, which the schedule stretches.
    Open {
        gap: Gap,
        own: u64,
        length: u32,
    },
    OnOff(OnOff),
    Tcp(Tcp),
}

#[derive(Debug, Clone)]
enum Gap {
    Even { per_byte: PerByte, pace: Pace },
    Exponential { mean: f64 },
    Pareto { mean: f64, alpha: f64 },
}

impl Source {
    pub(crate) fn new(cross: &Cross, number: usize, seed: u64) -> Self {
        let sizes = Sizes::new(&cross.sizes);
        let mut rng = generator(seed, &[3, number as u64]);
        let mean_gap = |rate: netaware_units::BitRate| sizes.mean() * 8.0 * SECOND as f64 / rate.0 as f64;
        let open = |gap| Kind::Open { gap, own: 0, length: 0 };
        let kind = match cross.pattern {
            Pattern::Constant { rate } => {
                open(Gap::Even { per_byte: PerByte::of(rate), pace: Pace::default() })
            }
            Pattern::Poisson { rate } => open(Gap::Exponential { mean: mean_gap(rate) }),
            Pattern::Pareto { rate, alpha } => open(Gap::Pareto { mean: mean_gap(rate), alpha }),
            Pattern::OnOff { rate, sources, alpha, on, off } => {
                Kind::OnOff(OnOff::new(rate, sources, alpha, on, off, &mut rng))
            }
            Pattern::Tcp { flows, window, .. } => Kind::Tcp(Tcp::new(flows, window)),
        };
        let warp = Warp::new(&cross.schedule);
        let version = cross.version;
        let mut source = Self { number: number as u32, version, sizes, rng, warp, kind, next_at: 0 };
        source.start();
        source
    }

    pub(crate) fn reseed(&mut self, seed: u64) {
        self.rng = generator(seed, &[3, u64::from(self.number)]);
    }

    /// Of the cross traffic in the scenario.
    pub(crate) const fn number(&self) -> usize {
        self.number as usize
    }

    fn start(&mut self) {
        match &mut self.kind {
            // A first gap at random, so that sources do not start in step.
            Kind::Open { gap, own, length } => {
                *length = self.sizes.draw(&mut self.rng);
                let first = gap.draw(*length, &mut self.rng);
                *own = (first as f64 * self.rng.unit()) as u64;
                self.next_at = self.warp.real(*own);
            }
            Kind::OnOff(on_off) => self.next_at = self.warp.real(on_off.next_at()),
            Kind::Tcp(tcp) => {
                tcp.wake_all(self.warp.active_from(0));
                self.next_at = tcp.next_at();
            }
        }
    }

    /// When `emit` has something to do; `u64::MAX` for never.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.next_at
    }

    /// The packet that comes at `next_at`; `None` when a responsive source only heard something
    /// then.
    pub(crate) fn emit(&mut self) -> Option<Carried> {
        let (length, flow) = match &mut self.kind {
            Kind::Open { gap, own, length } => {
                let present = *length;
                // Even spacing in bits: the gap behind a packet is the time of its own bytes.
                *own = own.saturating_add(gap.draw(present, &mut self.rng));
                *length = self.sizes.draw(&mut self.rng);
                self.next_at = self.warp.real(*own);
                (present, 0)
            }
            Kind::OnOff(on_off) => {
                let length = self.sizes.draw(&mut self.rng);
                let member = on_off.emit(length, &mut self.rng);
                self.next_at = self.warp.real(on_off.next_at());
                (length, member)
            }
            Kind::Tcp(tcp) => {
                let sender = tcp.emit(&mut self.warp);
                self.next_at = tcp.next_at();
                (self.sizes.draw(&mut self.rng), sender?)
            }
        };
        Some(Carried { length, tag: self.number << 16 | flow, version: self.version })
    }

    /// Feedback on a packet of `flow`, which reaches the sender at `at`.
    pub(crate) fn hear(&mut self, at: u64, flow: u32, outcome: Outcome) {
        if let Kind::Tcp(tcp) = &mut self.kind {
            tcp.hear(at, flow, outcome);
            self.next_at = tcp.next_at();
        }
    }
}

impl Gap {
    fn draw(&mut self, length: u32, rng: &mut SplitMix64) -> u64 {
        match self {
            Self::Even { per_byte, pace } => pace.take(*per_byte, u64::from(length)),
            Self::Exponential { mean } => (rng.exponential() * *mean) as u64,
            Self::Pareto { mean, alpha } => (pareto(rng, *alpha) * *mean) as u64,
        }
    }
}
