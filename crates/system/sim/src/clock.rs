//! The monotonic clock of a simulated host.

use netaware_netmodel::{HostClock, Scenario, Side};
use netaware_units::{Mono, Span};

use crate::drive::index;

/// What `CLOCK_MONOTONIC` of a host shows: its offset and skew, but none of its steps, because no
/// system ever steps that clock. Both hosts count from the same far-away zero, so the difference of
/// two readings at one instant is the offset between the hosts, and a reading mistaken for true
/// time is wrong by decades rather than by a little.
#[derive(Debug, Clone)]
pub struct LocalClock {
    clock: HostClock,
    /// Instant and size of each step of the wall clock, to be taken out again.
    steps: Vec<(Mono, Span)>,
    /// Reading minus true time of a clock that does not drift.
    constant: Option<i64>,
    skew_ppb: i64,
}

impl LocalClock {
    pub(crate) fn new(scenario: &Scenario, side: Side, clock: HostClock) -> Self {
        let said = &scenario.hosts[index(side)].clock;
        let steps = said.steps.iter().map(|step| (Mono(step.at.nanos().cast_unsigned()), step.by)).collect();
        let constant = (said.skew_ppb == 0).then_some(said.offset.nanos());
        Self { clock, steps, constant, skew_ppb: said.skew_ppb }
    }

    /// What it shows at the true instant `at`. Never runs backwards.
    pub fn reading(&self, at: Mono) -> Mono {
        let error = self.constant.unwrap_or_else(|| self.drifting_error(at));
        Mono((ZERO + at.0.min(LAST)).saturating_add_signed(error))
    }

    fn drifting_error(&self, at: Mono) -> i64 {
        let stepped: Span = self.steps.iter().filter(|(from, _)| *from <= at).map(|(_, by)| *by).sum();
        (self.clock.error(at) - stepped).nanos()
    }

    /// The first true instant at which it shows `reading` or more; far-away ones are never.
    pub fn when(&self, reading: Mono) -> Mono {
        if reading.0 >= ZERO + LAST {
            return Mono(u64::MAX);
        }
        let shown = i128::from(reading.0) - i128::from(ZERO);
        if let Some(error) = self.constant {
            return Mono(u64::try_from(shown - i128::from(error)).unwrap_or(0));
        }
        let since = shown - i128::from(self.drifting_error(Mono(0)));
        let mut at =
            Mono(u64::try_from(since * BILLION / (BILLION + i128::from(self.skew_ppb))).unwrap_or(0));
        // Rounding makes the guess wrong by a nanosecond or two.
        while self.reading(at) < reading {
            at += Span(1);
        }
        while at.0 > 0 && self.reading(at - Span(1)) >= reading {
            at = at - Span(1);
        }
        at
    }
}

/// Of both hosts' clocks; more than the largest offset of a scenario on either side.
const ZERO: u64 = 1 << 60;
/// Decades after the network's own end.
const LAST: u64 = 1 << 60;
const BILLION: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use netaware_netmodel::Network;

    use super::*;

    fn clock(text: &str) -> LocalClock {
        let hop = "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n";
        let scenario =
            Scenario::parse(&format!("about = 'x'\n[host.a]\nclock = {{ {text} }}\n{hop}")).unwrap();
        LocalClock::new(&scenario, Side::A, Network::new(&scenario, 1).clock(Side::A))
    }

    #[test]
    fn a_reading_leads_back_to_the_first_instant_that_shows_it() {
        for text in
            ["", "offset = '7ms'", "offset = '-3s'", "skew_ppm = 40.0", "skew_ppm = -77.7, offset = '1s'"]
        {
            let clock = clock(text);
            for at in [0, 1, 999, 1_000_003, 7_777_777_777, 3_600_000_000_000] {
                let at = Mono(at);
                let shown = clock.reading(at);
                let when = clock.when(shown);
                assert!(when <= at && clock.reading(when) >= shown, "{text}: {at:?} {when:?}");
                assert!(
                    when.0 == 0 || clock.reading(when - Span(1)) < shown,
                    "{text}: {when:?} is not the first"
                );
            }
            assert_eq!(clock.when(Mono(u64::MAX)), Mono(u64::MAX));
        }
    }

    #[test]
    fn steps_move_the_wall_clock_and_not_this_one() {
        let steps = "skew_ppm = 10.0, steps = [{ at = '1s', by = '-5ms' }, { at = '2s', by = '1h' }]";
        let (stepped, plain) = (clock(steps), clock("skew_ppm = 10.0"));
        for at in [0, 999_999_999, 1_000_000_000, 1_500_000_000, 5_000_000_000] {
            assert_eq!(stepped.reading(Mono(at)), plain.reading(Mono(at)), "{at}");
        }
    }
}
