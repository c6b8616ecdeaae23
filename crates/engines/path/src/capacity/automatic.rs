//! Bulk first, and a second opinion where it is in doubt.
//!
//! Where stamps explain how the dispersions of the bulks spread, they are the answer. Otherwise
//! Pathrate looks at modes as long as time is left. Agreement within 10 % gives the figure with the
//! narrower interval, but not one that time cut short; disagreement is said. The interval holds
//! both. A bound gives way to a figure, unless the figure contradicts it, or time cut it short and
//! the bound is within 10 % of it. Under coalescing there is no second opinion: the first one's
//! trains at several rates see more than modes of batches do.

use netaware_stats::interval::Interval;
use netaware_units::{Mono, Span};

use super::bulk::Bulk;
use super::pathrate::{Pathrate, PathrateRules};
use crate::{Bound, Estimate, Estimator, Flag, Instrument, Needs, RateMode, Step, VolleyReport};

/// The method. It ends within three seconds, or, where it doubts or the load leaves room for few
/// trains, within 30.
#[derive(Debug, Clone)]
pub struct Automatic {
    instrument: Instrument,
    seed: u64,
    bulk: Bulk,
    second: Option<Pathrate>,
    began: Option<Mono>,
}

impl Automatic {
    /// It takes no longer by itself.
    pub const LONGEST: Span = Pathrate::LONGEST;
    /// What a first figure needs.
    pub const NEEDS: Needs = Bulk::NEEDS;

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        Pathrate::longest(instrument)
    }

    /// Equal seeds ask equal questions of equal paths.
    pub fn new(instrument: &Instrument, seed: u64) -> Self {
        let bulk = Bulk::new(instrument, seed);
        Self { instrument: instrument.clone(), seed, bulk, second: None, began: None }
    }

    fn doubt(&mut self, now: Mono) -> Option<Pathrate> {
        let first = self.bulk.answer()?;
        let ends =
            |flag: &Flag| matches!(flag, Flag::HostLimited | Flag::Shaped { .. } | Flag::Coalescing { .. });
        let ends_here = first.flags.iter().any(ends);
        if self.bulk.is_sure() || ends_here {
            return None;
        }
        let used = self.began.map_or(Span::ZERO, |began| now.since(began));
        let rules = PathrateRules::default();
        // What the bulks have cost must first be paid by waiting: the new budget knows nothing of
        // it.
        let time_limit = rules.time_limit.min(self.instrument.time_limit) - used;
        (time_limit > Span::from_secs(1))
            .then(|| Pathrate::new(&self.instrument, PathrateRules { time_limit, ..rules }, self.seed ^ 1))
    }
}

impl Estimator for Automatic {
    fn next(&mut self, now: Mono) -> Step {
        self.began.get_or_insert(now);
        if let Some(second) = &mut self.second {
            return second.next(now);
        }
        let mut step = self.bulk.next(now);
        if step == Step::Done && self.bulk.prolong(self.instrument.time_limit) {
            step = self.bulk.next(now);
        }
        if step != Step::Done {
            return step;
        }
        self.second = self.doubt(now);
        self.second.as_mut().map_or(Step::Done, |second| second.next(now))
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        match &mut self.second {
            Some(second) => second.take(now, report, took),
            None => self.bulk.take(now, report, took),
        }
    }

    fn answer(&self) -> Option<Estimate> {
        let first = self.bulk.answer()?;
        let Some(second) = self.second.as_ref().and_then(Pathrate::answer) else {
            return Some(first);
        };
        Some(both(first, second))
    }

    /// Of the second opinion. The figure may be the first one's all the same.
    fn modes(&self) -> Vec<RateMode> {
        self.second.as_ref().map_or_else(Vec::new, Pathrate::modes)
    }
}

/// What two methods say together.
fn both(first: Estimate, second: Estimate) -> Estimate {
    let (one, two) = (first.rate, second.rate);
    let agree = (one.estimate / two.estimate - 1.0).abs() <= DISAGREE;
    let cut_short = second.flags.contains(&Flag::CutShort);
    let first_is_bound = first.bound == Bound::AtLeast;
    let better = if cut_short || !first_is_bound && one.width() <= two.width() { one } else { two };
    let hull = |of: Interval| of.widened_to(one.lo, one.hi).widened_to(two.lo, two.hi);
    let doubtful = second.flags.contains(&Flag::Ambiguous);
    let mut flags = first.flags;
    for flag in second.flags {
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    let (rate, bound) = match (first.bound, second.bound) {
        (Bound::None, Bound::None) if agree => (hull(better), Bound::None),
        (Bound::None, Bound::None) => (hull(one), Bound::None),
        (Bound::AtLeast, Bound::None) if two.estimate < one.lo => (one, Bound::AtLeast),
        (Bound::AtLeast, Bound::None) if agree => (hull(better), Bound::None),
        (Bound::AtLeast, Bound::None) => (hull(two), Bound::None),
        (Bound::None, _) => (one, Bound::None),
        _ => (if one.estimate >= two.estimate { one } else { two }, Bound::AtLeast),
    };
    // That a bound agrees is no evidence: what keeps the first from a figure may have misled the
    // second. Nor is agreement of which one says that the truth may be far away.
    let narrow = rate.hi - rate.lo <= TELLING * rate.estimate;
    if agree && narrow && bound == Bound::None && !doubtful && !first_is_bound {
        flags.retain(|flag| *flag != Flag::Ambiguous);
    } else if !flags.contains(&Flag::Ambiguous) {
        flags.push(Flag::Ambiguous);
    }
    let (bytes, packets) = (first.bytes + second.bytes, first.packets + second.packets);
    Estimate { rate, bound, method: "automatic", bytes, packets, took: first.took + second.took, flags }
}

/// An interval that is wider, as a share of its figure, is told.
const TELLING: f64 = 0.2;
/// Methods whose figures differ by more contradict each other.
const DISAGREE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::made_up::{drive, ideal, instrument};
    use super::*;

    /// Its bulks have grown on an ideal link, and none has been sampled yet; with the instant at
    /// which it began.
    fn in_doubt(time_limit: Span) -> (Automatic, Mono) {
        let began = Mono(1_000_000);
        let mut automatic = Automatic::new(&Instrument { time_limit, ..instrument() }, 1);
        let mut now = began;
        while automatic.bulk.answer().is_none() {
            let Step::Volley { volley, due } = automatic.next(now) else { panic!("it ended before it grew") };
            now = now.max(due);
            let reports = volley.trains.iter().map(|train| ideal(train, now.0.cast_signed(), 12_000));
            let report = VolleyReport { trains: reports.collect() };
            now += Span::from_millis(10);
            automatic.take(now, &report, Span::from_millis(10));
        }
        (automatic, began)
    }

    #[test]
    fn without_a_second_of_time_left_there_is_no_second_opinion() {
        for (limit, left) in [(60, 30), (30, 30), (5, 5)] {
            let (mut automatic, began) = in_doubt(Span::from_secs(limit));
            let after = |secs: i64| began + Span::from_secs(secs);
            assert!(automatic.doubt(after(left - 2)).is_some(), "{limit}");
            assert!(automatic.doubt(after(left - 1)).is_none(), "{limit}");
        }
    }

    #[test]
    fn the_second_opinion_takes_no_more_than_the_time_that_is_left() {
        let took_with = |left: i64| {
            let (mut automatic, began) = in_doubt(Span::from_secs(30));
            let mut second = automatic.doubt(began + Span::from_secs(30 - left)).unwrap();
            // At 10 Mbit/s its preliminary trains are paid for after more than five seconds.
            drive(&mut second, |train, at| ideal(train, at, 1_200_000))
        };
        let (with_all, with_little) = (took_with(30), took_with(3));
        assert!(with_all > Span::from_secs(5), "{with_all}");
        assert!(with_little <= Span::from_secs(3), "{with_little}");
    }
}
