//! What this host did while it estimated, and what its figures may therefore not say.

use netaware_path::{Bound, Estimate, Flag};
use netaware_record::{CpuUse, Health};
use netaware_units::BitRate;

use crate::departures::Departures;

/// Of the turns of one estimator.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct During {
    departures: Departures,
    /// Shares 0..=1, the worst of all turns.
    steal: Option<f64>,
    busiest_core: Option<f64>,
}

impl During {
    /// Of one turn.
    pub(crate) fn new(departures: Departures, cpu: &CpuUse) -> Self {
        Self { departures, steal: cpu.steal, busiest_core: cpu.busiest_core }
    }

    /// With a later turn.
    #[must_use]
    pub(crate) fn and(self, later: &Self) -> Self {
        let worse = |a: Option<f64>, b: Option<f64>| [a, b].into_iter().flatten().reduce(f64::max);
        Self {
            departures: self.departures.and(&later.departures),
            steal: worse(self.steal, later.steal),
            busiest_core: worse(self.busiest_core, later.busiest_core),
        }
    }

    /// As the record has it.
    pub(crate) fn health(&self) -> Health {
        Health {
            late_sends: self.departures.late,
            worst_lateness: self.departures.worst,
            not_sent: self.departures.not_sent,
            steal: self.steal,
            prober_busiest_core: self.busiest_core,
            ..Health::default()
        }
    }

    /// The rate at which the closest two packets left.
    pub(crate) fn fastest_sent(&self) -> Option<BitRate> {
        self.departures.fastest.map(|rate| BitRate(rate as u64))
    }

    /// A rate above the one at which any two packets left was not measured: the path carries what left, at least.
    pub(crate) fn bounded(&self, answer: Estimate) -> Estimate {
        let is_above = |fastest: &f64| answer.rate.estimate > fastest * ABOVE;
        let Some(fastest) = self.departures.fastest.filter(is_above) else { return answer };
        let mut flags = answer.flags;
        if !flags.contains(&Flag::HostLimited) {
            flags.push(Flag::HostLimited);
        }
        let rate = netaware_stats::interval::Interval {
            estimate: fastest,
            lo: answer.rate.lo.min(fastest),
            hi: fastest,
            ..answer.rate
        };
        Estimate { rate, bound: Bound::AtLeast, flags, ..answer }
    }
}

/// Stamps of two departures may err a little.
const ABOVE: f64 = 1.05;

#[cfg(test)]
mod tests {
    use netaware_stats::interval::Interval;
    use netaware_units::Span;

    use super::*;

    fn answer(rate: f64) -> Estimate {
        Estimate {
            rate: Interval { estimate: rate, lo: rate * 0.98, hi: rate * 1.02, confidence: 0.95 },
            bound: Bound::None,
            method: "bulk",
            bytes: 100_000,
            packets: 100,
            took: Span::from_secs(1),
            flags: vec![Flag::CutShort],
        }
    }

    fn left_at(fastest: Option<f64>) -> During {
        let departures = Departures { fastest, ..Departures::default() };
        During { departures, ..During::default() }
    }

    #[test]
    fn a_figure_that_left_no_host_becomes_a_bound() {
        let told = left_at(Some(8e9)).bounded(answer(40e9));
        assert_eq!(
            (told.bound, told.rate.estimate, told.rate.lo, told.rate.hi),
            (Bound::AtLeast, 8e9, 8e9, 8e9)
        );
        assert_eq!(told.flags, [Flag::CutShort, Flag::HostLimited]);
        let again = left_at(Some(8e9)).bounded(Estimate { flags: vec![Flag::HostLimited], ..answer(40e9) });
        assert_eq!(again.flags, [Flag::HostLimited]);
    }

    #[test]
    fn a_figure_within_what_left_is_not_touched() {
        for (fastest, rate) in [(Some(8e9), 100e6), (Some(8e9), 8.3e9), (None, 40e9)] {
            assert_eq!(left_at(fastest).bounded(answer(rate)), answer(rate));
        }
    }

    #[test]
    fn the_worst_turn_counts() {
        let cpu = |steal, busiest_core| CpuUse { steal, busiest_core, ..CpuUse::default() };
        let one = During::new(Departures { late: 2, ..Departures::default() }, &cpu(Some(0.1), None));
        let both = one
            .and(&During::new(Departures { late: 3, ..Departures::default() }, &cpu(Some(0.05), Some(0.9))));
        let health = both.health();
        assert_eq!((health.late_sends, health.steal, health.prober_busiest_core), (5, Some(0.1), Some(0.9)));
    }
}
