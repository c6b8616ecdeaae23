//! What this host did while it estimated, and what its figures may therefore not say.

use netaware_path::{Bound, Disturbance, EndLoad, Estimate, Flag};
use netaware_record::{CpuUse, Direction, Health};
use netaware_units::BitRate;

use crate::departures::Departures;

/// Of the turns of one estimator.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct During {
    departures: Departures,
    /// The worst of all turns, each figure by itself.
    here: EndLoad,
    there: EndLoad,
}

impl During {
    /// Of one turn.
    pub(crate) fn new(departures: Departures, cpu: &CpuUse) -> Self {
        Self { departures, here: load(cpu), ..Self::default() }
    }

    /// With what the responder told of its processors.
    #[must_use]
    pub(crate) fn with_responder(self, cpu: Option<&CpuUse>) -> Self {
        Self { there: cpu.map(load).unwrap_or_default(), ..self }
    }

    /// With a later turn.
    #[must_use]
    pub(crate) fn and(self, later: &Self) -> Self {
        Self {
            departures: self.departures.and(&later.departures),
            here: self.here.or_worse(&later.here),
            there: self.there.or_worse(&later.there),
        }
    }

    /// As the record has it.
    pub(crate) fn health(&self) -> Health {
        Health {
            late_sends: Some(self.departures.late),
            worst_lateness: Some(self.departures.worst),
            not_sent: Some(self.departures.not_sent),
            paused: self.departures.paused(),
            steal: self.here.steal,
            prober_busiest_core: self.here.busiest_core,
            prober_process: self.here.own,
            prober_denied: self.here.denied,
            responder_steal: self.there.steal,
            responder_busiest_core: self.there.busiest_core,
            responder_process: self.there.own,
            responder_denied: self.there.denied,
            ..Health::default()
        }
    }

    /// What others took of both ends; `unstamped` of the arrivals had no stamp of the kernel's.
    pub(crate) fn disturbance(&self, direction: Direction, unstamped: f64) -> Disturbance {
        let paused = self.departures.paused();
        let (sender, receiver) = match direction {
            Direction::Forward => (self.here, self.there),
            Direction::Reverse => (self.there, self.here),
            Direction::RoundTrip => return Disturbance::alone(&self.here),
        };
        Disturbance::of(&EndLoad { paused, ..sender }, &receiver, unstamped)
    }

    /// The rate at which the closest two packets left.
    pub(crate) fn fastest_sent(&self) -> Option<BitRate> {
        self.departures.fastest.map(|rate| BitRate(rate as u64))
    }

    /// A rate above the one at which any two packets left was not measured: the path carries what
    /// left, at least.
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

fn load(cpu: &CpuUse) -> EndLoad {
    EndLoad {
        paused: None,
        denied: cpu.denied,
        steal: cpu.steal,
        busy: cpu.host,
        busiest_core: cpu.busiest_core,
        own: cpu.process_user.zip(cpu.process_system).map(|(user, system)| user + system),
    }
    .sane()
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
    fn whoever_sends_must_not_wait_and_whoever_takes_in_may() {
        let cpu = |denied| CpuUse { denied: Some(denied), ..CpuUse::default() };
        let paused = || Departures {
            sending: Span::from_secs(2),
            pauses: Span::from_secs(1),
            ..Departures::default()
        };
        let during = During::new(paused(), &cpu(0.5)).with_responder(Some(&cpu(0.25)));
        let away = |direction, unstamped| during.disturbance(direction, unstamped).away;
        assert_eq!((away(Direction::Forward, 0.0), away(Direction::Reverse, 0.0)), (0.5, 0.25));
        assert_eq!((away(Direction::RoundTrip, 0.0), away(Direction::Reverse, 1.0)), (0.0, 1.0 - 0.75 * 0.5));
        // Who does not tell what its thread waited for is believed to have waited.
        let silent = During::new(paused(), &cpu(0.1)).with_responder(None);
        let untold = silent.disturbance(Direction::Reverse, 0.0);
        assert_eq!((untold.away, silent.health().responder_denied), (0.5, None));
    }

    #[test]
    fn what_a_responder_makes_up_of_its_processors_is_cut_to_what_can_be() {
        let mad = CpuUse {
            denied: Some(7.0),
            steal: Some(-1.0),
            process_user: Some(1e300),
            process_system: Some(0.0),
            ..CpuUse::default()
        };
        let health = During::default().with_responder(Some(&mad)).health();
        assert_eq!((health.responder_denied, health.responder_steal), (Some(1.0), Some(0.0)));
        assert!(health.responder_process.is_some_and(|cores| cores < 1e6), "{health:?}");
    }

    #[test]
    fn the_worst_turn_counts() {
        let cpu = |steal, busiest_core| CpuUse { steal, busiest_core, ..CpuUse::default() };
        let one = During::new(Departures { late: 2, ..Departures::default() }, &cpu(Some(0.1), None));
        let both = one
            .and(&During::new(Departures { late: 3, ..Departures::default() }, &cpu(Some(0.05), Some(0.9))));
        let health = both.health();
        assert_eq!(
            (health.late_sends, health.steal, health.prober_busiest_core),
            (Some(5), Some(0.1), Some(0.9))
        );
    }
}
