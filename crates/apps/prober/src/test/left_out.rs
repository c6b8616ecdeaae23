//! What a test says of what it left out: to the person who waits, and in the record once it is
//! known what was run after all.

use netaware_units::Span;

use super::{seconds, whole_seconds};

/// Of one test.
#[derive(Debug, Clone, Default)]
pub(super) struct LeftOut {
    planned: Option<Planned>,
    /// Why rounds were left out on the way.
    pub(super) rounds_for: Option<String>,
    /// Of phases that were left out on the way, one sentence each.
    pub(super) phases: Vec<String>,
}

/// The time limit with which everything would be run, or why nobody knows one.
pub(super) type Enough = Result<Span, &'static str>;

/// A path that drops datagrams for good takes an unknown time.
pub(super) const UNKNOWN: &str =
    "how much time it takes is not known, because not all datagrams come through";
const IN_VAIN: &str = "more time does not help, because TCP carried nothing";

/// Known when the plan is made.
#[derive(Debug, Clone)]
struct Planned {
    budget: Span,
    /// Of the slowest path.
    round_trip: Span,
    phases: Option<&'static str>,
    enough: Enough,
}

impl LeftOut {
    /// What is left out by plan of a path with this round trip.
    pub(super) fn plan(
        &mut self,
        budget: Span,
        round_trip: Span,
        phases: Option<&'static str>,
        enough: Enough,
    ) {
        self.planned = Some(Planned { budget, round_trip, phases, enough });
    }

    /// Nothing was carried, whatever the time.
    pub(super) fn no_time_is_enough(&mut self) {
        if let Some(planned) = &mut self.planned {
            planned.enough = Err(IN_VAIN);
        }
    }

    /// Somebody ended the test: what is missing is not missing for want of time.
    pub(super) fn was_stopped(&mut self) {
        self.planned = None;
    }

    /// What a person has to know before the test goes on, if anything: `longer` says how long it
    /// takes where that is more than was asked for.
    pub(super) fn announcement(&self, rounds: u16, asked: u16, longer: Option<String>) -> Option<String> {
        self.planned.as_ref()?.said(rounds, asked, longer)
    }

    /// What gives all rounds that were asked for, so many `rounds` having been run.
    pub(super) fn more_rounds(&self, rounds: u16, asked: u16) -> Option<String> {
        let is_planned = rounds < asked && self.rounds_for.is_none();
        let planned = self.planned.as_ref().filter(|_| is_planned)?;
        // A time that was given already would give no more.
        let enough = planned.enough.ok().filter(|enough| whole_seconds(*enough) > planned.budget)?;
        Some(format!("-t {} gives {asked} rounds", seconds(enough)))
    }

    /// The sentences of the record, so many `rounds` having been run.
    pub(super) fn warnings(self, rounds: u16, asked: u16) -> Vec<String> {
        // Nobody misses the rounds of a test that was stopped before its first.
        let rounds = if rounds == 0 { asked } else { rounds };
        let rounds_for = self.rounds_for.filter(|_| rounds < asked);
        let of_plan = match &rounds_for {
            Some(cause) => Some(of_rounds(rounds + 1, cause)),
            None => self.planned.as_ref().and_then(|planned| planned.said(rounds, asked, None)),
        };
        of_plan.into_iter().chain(self.phases).collect()
    }
}

impl Planned {
    fn said(&self, rounds: u16, asked: u16, longer: Option<String>) -> Option<String> {
        // The time was enough for all of it: what is missing ended for another reason.
        if longer.is_none() && self.enough.is_ok_and(|enough| whole_seconds(enough) <= self.budget) {
            return None;
        }
        let rounds = (rounds < asked).then(|| format!("rounds: {rounds} instead of {asked}"));
        let phases = self.phases.map(|what| format!("left out: {what}"));
        let what: Vec<String> = [rounds, phases, longer].into_iter().flatten().collect();
        if what.is_empty() {
            return None;
        }
        let Self { budget, round_trip, enough, .. } = self;
        let enough = match enough {
            Ok(enough) => format!("-t {} would be enough for all of it", seconds(*enough)),
            Err(why) => (*why).to_owned(),
        };
        Some(format!(
            "{budget} is too short for the whole test on a path with a round trip of {round_trip}; {}; {enough}",
            what.join("; ")
        ))
    }
}

/// What the record says of a test that took longer than it was `asked` to, without the end of its
/// sessions; `told` is the time with that, which the record's header has as well. `causes` says
/// what made it so much longer.
pub(super) fn overrun(
    took: Span,
    told: Span,
    asked: Span,
    causes: impl FnOnce(Span) -> String,
) -> Option<String> {
    (took > asked + asked / 10 + NOTICEABLE)
        .then(|| format!("the test took {told} instead of {asked}: {}", causes(took - asked)))
}

/// A promise that is exceeded by a tenth and by less than this is kept.
const NOTICEABLE: Span = Span::from_millis(500);

/// Rounds from this number on are left out.
pub(super) fn of_rounds(from: u16, cause: &str) -> String {
    format!("rounds from {from} on were left out: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(phases: Option<&'static str>) -> LeftOut {
        let mut left_out = LeftOut::default();
        left_out.plan(Span::from_secs(15), Span::from_millis(24), phases, Ok(Span::from_secs(24)));
        left_out
    }

    #[test]
    fn a_round_that_was_left_out_by_plan_and_run_after_all_is_no_warning() {
        let said = planned(None).announcement(1, 2, None).unwrap();
        assert_eq!(
            said,
            "15.0 s is too short for the whole test on a path with a round trip of 24.0 ms; rounds: 1 instead of 2; -t \
             24s would be enough for all of it"
        );
        assert_eq!(planned(None).warnings(2, 2), Vec::<String>::new());
        assert_eq!(planned(None).warnings(1, 2), [said]);
        assert_eq!(planned(None).more_rounds(1, 2).as_deref(), Some("-t 24s gives 2 rounds"));
        assert_eq!(planned(None).more_rounds(2, 2), None);
        let on_the_way = LeftOut { rounds_for: Some("it took long".to_owned()), ..planned(None) };
        assert_eq!(on_the_way.clone().warnings(2, 2), Vec::<String>::new());
        assert_eq!(on_the_way.warnings(1, 2), ["rounds from 2 on were left out: it took long"]);
    }

    #[test]
    fn a_time_that_was_announced_does_not_stay_as_a_warning_beside_the_time_it_took() {
        let left_out = planned(Some("UDP"));
        let longer = "it takes about 60.0 s instead of 15.0 s".to_owned();
        let said = left_out.announcement(2, 2, Some(longer)).unwrap();
        assert!(said.contains("left out: UDP; it takes about 60.0 s instead of 15.0 s; -t 24s"), "{said}");
        let [warning] = &left_out.warnings(2, 2)[..] else { panic!() };
        assert!(warning.contains("left out: UDP") && !warning.contains("60.0 s"), "{warning}");
        // Nothing is left out.
        let mut whole = planned(None);
        assert_eq!((whole.announcement(2, 2, None), whole.clone().warnings(2, 2)), (None, Vec::new()));
        whole.phases.push("IPv6: UDP down was left out".to_owned());
        assert_eq!(whole.warnings(2, 2).len(), 1);
    }

    /// Ten seconds were asked for, 22 were taken, and the record did not say why.
    #[test]
    fn a_test_that_took_longer_than_asked_for_says_so_in_its_record() {
        let seconds = Span::from_secs;
        let said = |took| {
            let told = seconds(took) + Span::from_millis(1300);
            overrun(seconds(took), told, seconds(15), |over| format!("{over} were lost to a slow path"))
        };
        assert_eq!(said(16), None);
        // The header said 23.3 s, and the warning 22.0 s.
        let want = "the test took 23.3 s instead of 15.0 s: 7.00 s were lost to a slow path";
        assert_eq!(said(22).unwrap(), want);
    }

    #[test]
    fn no_time_is_called_enough_where_more_time_is_not_what_is_missing() {
        let mut hole = LeftOut::default();
        hole.plan(Span::from_secs(15), Span::from_millis(24), None, Err(UNKNOWN));
        let mut late = planned(None);
        late.no_time_is_enough();
        for (left_out, why) in [(hole, UNKNOWN), (late, IN_VAIN)] {
            let [warning] = &left_out.warnings(1, 2)[..] else { panic!() };
            assert!(!warning.contains("enough") && warning.ends_with(why), "{warning}");
        }
    }

    /// A test of 15 s that was ended with Ctrl-C said that 8 s would have been enough.
    #[test]
    fn a_test_that_was_ended_early_is_not_said_to_have_had_too_little_time() {
        let mut stopped = planned(None);
        stopped.was_stopped();
        assert_eq!(stopped.warnings(1, 2), Vec::<String>::new());
        let mut died = LeftOut::default();
        died.plan(Span::from_secs(15), Span::from_millis(1), None, Ok(Span::from_secs(8)));
        assert_eq!(died.warnings(1, 2), Vec::<String>::new());
    }
}
