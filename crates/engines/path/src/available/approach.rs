//! Getting near: the rate at which a train arrives is the rate of the next one.
//!
//! On a first-in-first-out link R' = C R / (R + X), so the rates fall towards the available
//! bandwidth, by the utilisation's power from round to round (Jin and Tierney's feedback
//! convergence, 2002-2003, as reconstructed). After a few rounds the line through what was seen
//! says where they are going. One train a round is noisy: good to a fifth, no result by itself.
//!
//! The first train leaves as fast as the host can. Where the receiver hands it over in one batch it
//! is made longer, then slower, until its dispersion shows; and what passes at the fastest rate
//! that can be seen is a lower bound.

use netaware_units::Span;

use crate::Train;
use crate::available::line::{Fitter, Sample};
use crate::available::passage::{Dispersion, Passage, Unusable};
use crate::available::sender::{SLOWEST, Sender};

/// Where the approach led.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found {
    /// bit/s, both rough.
    Near { available: f64, capacity: f64 },
    /// Trains of this rate pass untouched, and faster ones cannot be sent or seen, bit/s.
    AtLeast { rate: f64, why: Ceiling },
    /// Nothing arrives.
    Nothing,
}

/// What keeps trains from being faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ceiling {
    /// The sender.
    Sender,
    /// How the receiver hands over, and how long a train may be.
    Receiver,
}

/// The search as it stands.
#[derive(Debug, Clone)]
pub(crate) struct Approach {
    rate: f64,
    packets: u32,
    samples: Vec<Sample>,
    /// Fastest rate at which a train arrived, bit/s.
    pub(crate) fastest_arrival: f64,
    /// Rate and packets of the train that arrived last, bit/s.
    pub(crate) arrival: Option<(f64, f64)>,
    failures: u32,
    /// Trains above this are too short to be seen, bit/s.
    ceiling: Option<f64>,
    found: Option<Found>,
}

impl Approach {
    pub(crate) fn new(sender: &Sender) -> Self {
        Self {
            rate: sender.fastest,
            packets: FIRST.min(sender.longest),
            samples: Vec::new(),
            fastest_arrival: 0.0,
            arrival: None,
            failures: 0,
            ceiling: None,
            found: None,
        }
    }

    /// The next train.
    pub(crate) fn train(&self, sender: &Sender) -> Train {
        sender.train(self.rate, self.packets, Span::ZERO)
    }

    pub(crate) fn found(&self) -> Option<Found> {
        self.found
    }

    /// What to make of it if time ends here.
    pub(crate) fn so_far(&self) -> Option<Found> {
        self.found.or_else(|| (!self.samples.is_empty()).then(|| self.fit()))
    }

    /// Packets of a train that is long enough to be seen at `rate` bit/s.
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// What became of the train. `packets_a_round` is what may be spent on the next.
    pub(crate) fn take(&mut self, passage: &Passage, sender: &Sender, packets_a_round: u32) {
        self.arrival = None;
        match passage.dispersion(0.0) {
            Ok(seen) => self.saw(&seen, sender, packets_a_round),
            Err(Unusable::Lost) => self.failed(sender),
            Err(Unusable::TooShort) => self.too_short(sender),
        }
    }

    fn failed(&mut self, sender: &Sender) {
        self.failures += 1;
        // The first may have been too much for a queue.
        self.packets = (self.packets / 2).max(FEWEST).min(sender.longest);
        self.rate = (self.rate / 4.0).max(SLOWEST);
        if self.failures >= MOST_FAILURES {
            self.found = Some(if self.samples.is_empty() { Found::Nothing } else { self.fit() });
        }
    }

    fn too_short(&mut self, sender: &Sender) {
        if self.packets < sender.longest {
            self.packets = self.packets.saturating_mul(4).min(sender.longest);
            return;
        }
        self.rate /= 2.0;
        self.ceiling = Some(self.rate);
        if self.rate < SLOWEST {
            self.found = Some(Found::Nothing);
        }
    }

    fn saw(&mut self, seen: &Dispersion, sender: &Sender, packets_a_round: u32) {
        let (stretch, arrived) = (seen.stretch(), seen.received_rate());
        // What short trains' stamps make of it by chance is no rate to plan with.
        let chance = (STAMPS * sender.stamp_error / seen.received_ns).min(0.5);
        self.fastest_arrival = self.fastest_arrival.max(arrived * (1.0 - chance));
        self.arrival = Some((arrived * (1.0 - chance), seen.packets));
        if self.samples.is_empty() && stretch <= UNTOUCHED {
            let why = if self.ceiling.is_some() { Ceiling::Receiver } else { Ceiling::Sender };
            self.found = Some(Found::AtLeast { rate: seen.rate() / stretch.max(1.0), why });
            return;
        }
        // The capacity rests on the fastest rounds: they are not to weigh less for having been
        // stretched.
        let lasted = seen.sent_ns / 1e9 * stretch;
        self.samples.push(Sample { rate: seen.rate(), stretch, lasted });
        if stretch <= CLOSE || self.samples.len() >= ROUNDS {
            self.found = Some(self.fit());
            return;
        }
        self.rate = arrived.max(SLOWEST).min(sender.fastest);
        // Slower trains are seen with fewer packets, but an arrival in batches needs as many as it
        // took.
        let slower = (f64::from(self.packets) * self.rate / seen.rate()).ceil() as u32;
        let needed = if self.packets > FIRST { slower.max(FIRST) } else { FEWEST };
        self.packets = packets_a_round.max(needed).min(sender.longest);
    }

    /// Where the line through all rounds is 1, not far from where the last round was.
    fn fit(&self) -> Found {
        let Some(last) = self.samples.last() else { return Found::Nothing };
        let top = (last.rate / last.stretch.max(1.0)).max(SLOWEST);
        let capacity = self.fastest_arrival.max(top);
        let fit = Fitter::new((capacity, 10.0 * capacity)).fit(&self.samples);
        let (available, capacity) = fit.map_or((top, capacity), |fit| (fit.available, fit.capacity));
        Found::Near { available: available.clamp(top / 4.0, top), capacity }
    }
}

/// Standard errors of a stamp that a rate may be too high by.
const STAMPS: f64 = 4.0;
/// Packets of the first train: enough for a rate, few enough for any queue.
const FIRST: u32 = 24;
/// Packets of the shortest train.
const FEWEST: u32 = 12;
/// A train with a stretch up to here met nothing, as far as one train can say.
const UNTOUCHED: f64 = 1.02;
/// Near enough.
const CLOSE: f64 = 1.05;
/// Rounds with an answer.
const ROUNDS: usize = 4;
/// Rounds without.
const MOST_FAILURES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::{Path, Traffic, instrument};
    use crate::{Instrument, Volley};

    fn approach(path: &mut Path, host: &Instrument, packets: u32) -> (Found, usize) {
        let sender = Sender::new(host);
        let mut approach = Approach::new(&sender);
        for round in 0..20 {
            if let Some(found) = approach.found() {
                return (found, round);
            }
            let train = approach.train(&sender);
            let (report, _) = path.carry(&Volley { trains: vec![train.clone()] }, 1e9 + 2e8 * round as f64);
            approach.take(&Passage::of(&train, &report.trains[0]), &sender, packets);
        }
        panic!("no end");
    }

    #[test]
    fn even_traffic_is_found_in_five_rounds_at_any_load() {
        for load in [0.0, 0.2, 0.5, 0.8, 0.9] {
            let mut path = Path::single(1e8, load, Traffic::Even, 3);
            let (found, rounds) = approach(&mut path, &instrument(1e8), 200);
            let Found::Near { available, .. } = found else { panic!("{found:?}") };
            let truth = 1e8 * (1.0 - load);
            assert!((available - truth).abs() < 0.04 * 1e8 && rounds <= 5, "{load}: {found:?} in {rounds}");
        }
    }

    #[test]
    fn a_host_slower_than_the_path_yields_a_lower_bound() {
        let mut host = instrument(1e9);
        host.send_gap = Span::from_micros(120);
        let mut path = Path::single(1e9, 0.3, Traffic::Even, 1);
        let (found, _) = approach(&mut path, &host, 50);
        let Found::AtLeast { rate, why: Ceiling::Sender } = found else { panic!("{found:?}") };
        assert!((rate / 1e8 - 1.0).abs() < 0.02);
    }

    #[test]
    fn coalescing_makes_the_first_train_longer_and_then_slower() {
        let mut path = Path::single(1e9, 0.5, Traffic::Even, 1);
        path.coalescing = 250_000.0;
        let (found, _) = approach(&mut path, &instrument(1e9), 50);
        let Found::Near { available, .. } = found else { panic!("{found:?}") };
        assert!((available / 5e8 - 1.0).abs() < 0.2, "{available}");

        let mut host = instrument(1e10);
        host.largest_burst = 200_000;
        let mut path = Path::single(1e10, 0.0, Traffic::Even, 1);
        path.coalescing = 250_000.0;
        let (found, _) = approach(&mut path, &host, 50);
        let Found::AtLeast { rate, why: Ceiling::Receiver } = found else { panic!("{found:?}") };
        assert!(rate < 1.3e9, "{rate}");
    }

    #[test]
    fn a_dead_path_ends_the_approach() {
        let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
        path.loss = 1.1;
        assert_eq!(approach(&mut path, &instrument(1e8), 50).0, Found::Nothing);
    }
}
