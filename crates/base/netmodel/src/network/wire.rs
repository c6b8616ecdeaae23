//! What happens to a packet between two devices: propagation, jitter, loss, copies, flipped bits.

use netaware_stats::rng::SplitMix64;
use netaware_units::Span;

use super::draw::{happens, lomax, normal};
use super::pace::{PerByte, Timeline, ps};
use crate::scenario::{Distribution, Jitter, Loss, MtuAnswer, Order, Outage, Wire};

/// One IP version on one link.
#[derive(Debug, Clone)]
pub(super) struct WireState {
    pub(super) per_byte: Timeline<PerByte>,
    pub(super) rate: Timeline<u64>,
    pub(super) apart: bool,
    pub(super) mtu: u32,
    pub(super) mtu_answer: MtuAnswer,
    pub(super) black_hole: bool,
    outages: Vec<OutageState>,
    delay: Timeline<u64>,
    loss: LossState,
    duplication: f64,
    corruption: f64,
    reordering: Option<(f64, u64)>,
    jitter: Option<Jitter>,
    last_out: u64,
}

#[derive(Debug, Clone)]
enum LossState {
    None,
    Bernoulli(f64),
    GilbertElliott { to_bad: f64, to_good: f64, loss_good: f64, loss_bad: f64, bad: bool },
    Periodic { every: u64, seen: u64 },
}

/// Times without the link, in picoseconds; `u64::MAX` is for ever.
#[derive(Debug, Clone, Copy)]
struct OutageState {
    at: u64,
    lasts: u64,
    every: u64,
}

impl OutageState {
    fn new(outage: &Outage) -> Self {
        let or_ever = |span: Option<Span>| span.map_or(u64::MAX, ps);
        Self { at: ps(outage.at), lasts: or_ever(outage.lasts), every: or_ever(outage.every) }
    }

    const fn covers(self, at: u64) -> bool {
        match at.checked_sub(self.at) {
            Some(since) => since % self.every < self.lasts,
            None => false,
        }
    }
}

/// The far end of the wire, for one packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    /// When the last bit is there.
    pub(super) at: u64,
    pub(super) copied: bool,
    pub(super) corrupted: bool,
}

impl WireState {
    pub(super) fn new(wire: &Wire) -> Self {
        let loss = match wire.loss {
            Loss::None => LossState::None,
            Loss::Bernoulli { probability } => LossState::Bernoulli(probability),
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                LossState::GilbertElliott { to_bad, to_good, loss_good, loss_bad, bad: false }
            }
            Loss::Periodic { every } => LossState::Periodic { every, seen: 0 },
        };
        Self {
            per_byte: Timeline::new(&wire.rate, PerByte::of),
            rate: Timeline::new(&wire.rate, |rate| rate.0),
            apart: wire.apart,
            mtu: wire.mtu,
            mtu_answer: wire.mtu_answer,
            black_hole: wire.black_hole,
            outages: wire.outages.iter().map(OutageState::new).collect(),
            delay: Timeline::new(&wire.delay, ps),
            loss,
            duplication: wire.duplication,
            corruption: wire.corruption,
            reordering: wire.reordering.map(|reordering| (reordering.probability, ps(reordering.by))),
            jitter: wire.jitter,
            last_out: 0,
        }
    }

    /// Whether the link is down at `at`.
    #[inline]
    pub(super) fn is_out(&self, at: u64) -> bool {
        self.outages.iter().any(|outage| outage.covers(at))
    }

    /// No packet is at the far end sooner than this after it was sent.
    pub(super) fn least_delay(&self) -> u64 {
        self.delay.values().min().unwrap_or(0)
    }

    /// Sends the packet off at `depart`; `None` is lost.
    #[inline]
    pub(super) fn cross(&mut self, depart: u64, rng: &mut SplitMix64) -> Option<Crossing> {
        if self.loses(rng) {
            return None;
        }
        let mut at = depart;
        if let Some(jitter) = self.jitter {
            at = self.jittered(jitter, depart, rng);
        }
        at += self.delay.at(depart);
        if let Some((probability, by)) = self.reordering
            && happens(rng, probability)
        {
            at += by;
        }
        let copied = happens(rng, self.duplication);
        let corrupted = happens(rng, self.corruption);
        Some(Crossing { at, copied, corrupted })
    }

    #[inline]
    fn loses(&mut self, rng: &mut SplitMix64) -> bool {
        match &mut self.loss {
            LossState::None => false,
            LossState::Bernoulli(probability) => happens(rng, *probability),
            LossState::GilbertElliott { to_bad, to_good, loss_good, loss_bad, bad } => {
                let lost = happens(rng, if *bad { *loss_bad } else { *loss_good });
                *bad = if *bad { !happens(rng, *to_good) } else { happens(rng, *to_bad) };
                lost
            }
            LossState::Periodic { every, seen } => {
                *seen += 1;
                seen.is_multiple_of(*every)
            }
        }
    }

    fn jittered(&mut self, jitter: Jitter, depart: u64, rng: &mut SplitMix64) -> u64 {
        let extra = match jitter.distribution {
            Distribution::Uniform { mean } => 2.0 * rng.unit() * ps(mean) as f64,
            Distribution::Normal { mean, deviation } => ps(mean) as f64 + normal(rng) * ps(deviation) as f64,
            Distribution::Exponential { mean } => rng.exponential() * ps(mean) as f64,
            Distribution::Pareto { mean, alpha } => lomax(rng, alpha) * ps(mean) as f64,
        };
        // A float outside the integer's range saturates, so a negative one is zero.
        let mut at = depart + (extra as u64).min(ps(jitter.max));
        let grid = ps(jitter.grid);
        if grid > 0 {
            at = at.next_multiple_of(grid);
        }
        if jitter.order == Order::Kept {
            at = at.max(self.last_out);
            self.last_out = at;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::pace::SECOND;

    #[test]
    fn outages_come_once_for_good_or_again_and_again() {
        let outage = |lasts: Option<i64>, every: Option<i64>| {
            let seconds = |value: Option<i64>| value.map(Span::from_secs);
            OutageState::new(&Outage { at: Span::from_secs(4), lasts: seconds(lasts), every: seconds(every) })
        };
        let (once, for_good, again) = (outage(Some(2), None), outage(None, None), outage(Some(2), Some(10)));
        let rows = [
            (0, [false, false, false]),
            (4, [true, true, true]),
            (5, [true, true, true]),
            (6, [false, true, false]),
            (14, [false, true, true]),
            (16, [false, true, false]),
            (104, [false, true, true]),
        ];
        for (at, want) in rows {
            let found = [once, for_good, again].map(|outage| outage.covers(at * SECOND));
            assert_eq!(found, want, "{at} s");
        }
        assert!(!once.covers(4 * SECOND - 1));
    }
}
