//! The default: a [`Curve`] for the figure, a [`Slops`] for the proof.
//!
//! The two look at different things, how far trains are stretched and whether delays rise, and err
//! for different reasons. The curve is quick and has an interval; the streams then try just below
//! and just above it. If they say what they should, the answer is the curve's; if not, they search
//! on, and should both ends then be apart, the answer holds both and says so. **Biased** as its
//! parts; where both are misled alike (a shaper's credit, a path with two tight links) it does not
//! notice.

use netaware_stats::interval::Interval;
use netaware_units::{Mono, Span};

use crate::available::{Curve, Slops, TightLink};
use crate::{Bound, Estimate, Estimator, Flag, Instrument, Needs, Step, VolleyReport};

/// The estimator.
#[derive(Debug, Clone)]
pub struct Automatic {
    instrument: Instrument,
    curve: Curve,
    slops: Option<Slops>,
    begin: Option<Mono>,
    /// When the streams began.
    confirms_at: Mono,
    /// The curve has what the streams have left of the time.
    is_back: bool,
    over: bool,
}

impl Automatic {
    /// It takes no longer by itself: its parts one after the other.
    pub const LONGEST: Span = Span(Curve::LONGEST.0 + Slops::LONGEST.0);
    /// What a first figure needs.
    pub const NEEDS: Needs = Curve::NEEDS;

    /// The longest that it takes by itself on a path like this.
    pub fn longest(instrument: &Instrument) -> Span {
        let both = Curve::longest(instrument) + Slops::longest(instrument);
        both.min(instrument.time_limit.or_zero().max(Self::LONGEST))
    }

    /// For hosts like these. It takes 20 s, or what the instrument allows if that is less.
    pub fn new(instrument: &Instrument) -> Self {
        Self {
            instrument: instrument.clone(),
            curve: Curve::new(instrument),
            slops: None,
            begin: None,
            confirms_at: Mono(0),
            is_back: false,
            over: false,
        }
    }

    /// The curve is done: what is left to confirm it?
    fn confirm(&mut self, now: Mono) {
        self.over = true;
        let Some(answer) = self.curve.answer() else { return };
        let Some((_, capacity)) = self.curve.near() else { return };
        let begin = self.begin.unwrap_or(now);
        let left = (begin + self.instrument.time_limit).since(now).or_zero();
        if answer.bound != Bound::None || left <= self.instrument.rtt * 8 {
            return;
        }
        let instrument = Instrument { time_limit: left, ..self.instrument.clone() };
        let mut slops = Slops::confirming(&instrument, &answer.rate, capacity, self.curve.packets());
        slops.arrived(self.curve.arrival_rate());
        slops.follow(self.curve.health());
        self.slops = Some(slops);
        self.confirms_at = now;
        self.over = false;
    }
}

impl Automatic {
    /// Whether the part whose time has ended has more of it: the streams, and then the curve once
    /// again.
    fn goes_on(&mut self) -> bool {
        let limit = self.instrument.time_limit;
        if let Some(slops) = &mut self.slops {
            let began = self.begin.unwrap_or(self.confirms_at);
            if !self.is_back && slops.prolong(limit - self.confirms_at.since(began)) {
                return true;
            }
            self.curve.spent_elsewhere(slops.bytes());
        }
        let goes_on = self.curve.prolong(limit);
        self.is_back |= goes_on;
        goes_on
    }
}

impl Estimator for Automatic {
    fn next(&mut self, now: Mono) -> Step {
        self.begin.get_or_insert(now);
        if self.slops.is_none() && !self.over {
            let mut step = self.curve.next(now);
            // The other half is for the streams.
            if step == Step::Done && self.curve.prolong(self.instrument.time_limit / 2) {
                step = self.curve.next(now);
            }
            if step != Step::Done {
                return step;
            }
            self.confirm(now);
        }
        if self.is_back {
            return self.curve.next(now);
        }
        let Some(slops) = &mut self.slops else { return Step::Done };
        let step = slops.next(now);
        if step == Step::Done && self.goes_on() { self.next(now) } else { step }
    }

    fn prolong(&mut self, limit: Span) -> bool {
        self.instrument.time_limit = self.instrument.time_limit.max(limit);
        self.goes_on()
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        match &mut self.slops {
            Some(slops) if !self.is_back => slops.take(now, report, took),
            _ => self.curve.take(now, report, took),
        }
    }

    fn answer(&self) -> Option<Estimate> {
        let curve = Estimate { method: "automatic", ..self.curve.answer()? };
        let Some((proof, slops)) = self.slops.as_ref().and_then(|slops| Some((slops, slops.answer()?)))
        else {
            return Some(curve);
        };
        let mut both = together(curve, slops);
        if proof.is_certain() {
            // The curve may have had few trains: these were more.
            both.flags.retain(|flag| *flag != Flag::Noisy);
        }
        Some(both)
    }

    fn tight_link(&self) -> Option<TightLink> {
        self.curve.tight_link()
    }
}

/// One answer of two.
fn together(mut curve: Estimate, slops: Estimate) -> Estimate {
    curve.bytes += slops.bytes;
    curve.packets += slops.packets;
    curve.took += slops.took;
    // Streams of few packets fall on either side by chance, so the figure is the line's, unless the
    // traffic gave way to its trains.
    let doubts = curve.flags.contains(&Flag::Elastic);
    let cut_short = Flag::CutShort;
    let news = slops.flags.into_iter().filter(|flag| *flag != cut_short);
    for flag in news {
        if !curve.flags.iter().any(|known| std::mem::discriminant(known) == std::mem::discriminant(&flag)) {
            curve.flags.push(flag);
        }
    }
    match slops.bound {
        Bound::None if agree(&curve.rate, &slops.rate) => {
            let own = curve.rate.estimate;
            curve.rate = weighed(curve.rate, &slops.rate);
            if !doubts {
                (curve.rate.lo, curve.rate.hi) = (curve.rate.lo.min(own), curve.rate.hi.max(own));
                curve.rate.estimate = own;
            }
        }
        Bound::AtLeast if slops.rate.lo <= curve.rate.hi => {}
        Bound::AtMost if slops.rate.hi >= curve.rate.lo => {}
        _ => {
            if doubts {
                curve.rate.estimate = f64::midpoint(curve.rate.estimate, slops.rate.estimate);
            }
            curve.rate = curve.rate.widened_to(slops.rate.lo, slops.rate.hi);
            curve.flags.push(Flag::Ambiguous);
        }
    }
    curve
}

fn agree(a: &Interval, b: &Interval) -> bool {
    let touch = a.lo <= b.hi && b.lo <= a.hi;
    touch || (a.estimate - b.estimate).abs() <= SAME * a.estimate.max(b.estimate)
}

/// The narrower counts more; the interval is what both allow, and never less than what keeps both
/// estimates.
fn weighed(a: Interval, b: &Interval) -> Interval {
    let weight = |interval: &Interval| 1.0 / interval.width().max(0.01 * interval.estimate).max(1.0).powi(2);
    let (wa, wb) = (weight(&a), weight(b));
    let estimate = (wa * a.estimate + wb * b.estimate) / (wa + wb);
    let lo = a.lo.max(b.lo).min(a.estimate.min(b.estimate)).min(a.lo.max(a.estimate * (1.0 - CLOSE)));
    let hi = a.hi.min(b.hi).max(a.estimate.max(b.estimate)).max(a.hi.min(a.estimate * (1.0 + CLOSE)));
    Interval {
        estimate,
        lo: lo.min(estimate),
        hi: hi.max(estimate),
        confidence: a.confidence.min(b.confidence),
    }
}

/// Estimates that differ by less are the same.
const SAME: f64 = 0.1;
/// No two methods together know better than this.
const CLOSE: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::{Path, Traffic, instrument};

    fn estimate(estimate: f64, lo: f64, hi: f64) -> Estimate {
        let rate = Interval { estimate, lo, hi, confidence: 0.9 };
        Estimate {
            rate,
            bound: Bound::None,
            method: "",
            bytes: 1,
            packets: 1,
            took: Span(1),
            flags: vec![Flag::CutShort],
        }
    }

    #[test]
    fn methods_that_disagree_are_both_told() {
        let both = together(estimate(50.0, 48.0, 52.0), estimate(80.0, 75.0, 85.0));
        assert!(both.flags.contains(&Flag::Ambiguous));
        assert!(both.rate.contains(48.0) && both.rate.contains(85.0));
        assert_eq!((both.bytes, both.packets, both.took), (2, 2, Span(2)));
    }

    #[test]
    fn methods_that_agree_make_one_narrower_answer() {
        let both = together(estimate(50.0, 40.0, 60.0), estimate(52.0, 50.0, 54.0));
        assert!(!both.flags.contains(&Flag::Ambiguous));
        assert!((both.rate.estimate - 50.0).abs() < 1e-9, "the line's figure: {:?}", both.rate);
        assert!(both.rate.contains(50.0) && both.rate.lo >= 48.0 && both.rate.hi <= 54.0, "{:?}", both.rate);
    }

    #[test]
    fn of_elastic_traffic_the_streams_have_their_say() {
        let mut gave_way = estimate(50.0, 40.0, 60.0);
        gave_way.flags.push(Flag::Elastic);
        let both = together(gave_way, estimate(52.0, 50.0, 54.0));
        assert!(both.rate.estimate > 51.0 && both.rate.contains(both.rate.estimate), "{:?}", both.rate);
    }

    #[test]
    fn a_known_link_is_confirmed_in_time() {
        for (load, seed) in [(0.2, 1), (0.5, 2), (0.8, 3)] {
            let mut path = Path::single(1e8, load, Traffic::Even, seed);
            let outcome = path.run(&mut Automatic::new(&instrument(1e8)));
            let answer = outcome.answer.unwrap();
            let truth = 1e8 * (1.0 - load);
            assert!((answer.rate.estimate / truth - 1.0).abs() < 0.03, "{load}: {answer:?}");
            assert!(answer.rate.contains(truth) && !answer.flags.contains(&Flag::Ambiguous), "{answer:?}");
            assert!(outcome.took <= 20.0 && outcome.bits <= 0.105 * 1e8 * outcome.took);
        }
    }

    #[test]
    fn of_an_idle_path_it_is_not_said_that_trains_differed() {
        for (capacity, seed) in [(5e6, 1), (5e7, 2), (8e7, 3), (1e9, 4)] {
            let outcome = Path::single(capacity, 0.0, Traffic::Even, seed)
                .run(&mut Automatic::new(&instrument(capacity)));
            let answer = outcome.answer.unwrap();
            assert!((answer.rate.estimate / capacity - 1.0).abs() < 0.03, "{answer:?}");
            assert!(!answer.flags.contains(&Flag::Noisy), "{capacity}: {answer:?}");
        }
    }

    #[test]
    fn what_the_curve_can_only_bound_is_not_searched_further() {
        let mut host = instrument(1e9);
        host.send_gap = Span::from_micros(120);
        let outcome = Path::single(1e9, 0.3, Traffic::Even, 1).run(&mut Automatic::new(&host));
        assert_eq!(outcome.answer.unwrap().bound, Bound::AtLeast);
        let mut dead = Path::single(1e8, 0.0, Traffic::Even, 1);
        dead.loss = 1.1;
        assert_eq!(dead.run(&mut Automatic::new(&instrument(1e8))).answer, None);
    }

    #[test]
    fn the_answer_bears_the_name_of_this_method_and_not_that_of_the_curve() {
        let mut path = Path::single(1e8, 0.5, Traffic::Even, 2);
        let answer = path.run(&mut Automatic::new(&instrument(1e8))).answer.unwrap();
        assert_eq!(answer.method, "automatic");
    }

    #[test]
    fn a_bound_by_the_streams_is_ambiguous_only_if_it_excludes_the_curves_interval() {
        let curve = || estimate(50.0, 48.0, 52.0);
        let bounded = |bound, rate| Estimate { bound, ..estimate(rate, rate, rate) };
        for (row, (bound, rate)) in
            [(Bound::AtLeast, 51.0), (Bound::AtLeast, 40.0), (Bound::AtMost, 49.0), (Bound::AtMost, 60.0)]
                .into_iter()
                .enumerate()
        {
            let both = together(curve(), bounded(bound, rate));
            assert!(!both.flags.contains(&Flag::Ambiguous), "row {row}: {both:?}");
            assert_eq!(both.rate, curve().rate, "row {row}");
        }
        for (bound, rate) in [(Bound::AtLeast, 60.0), (Bound::AtMost, 40.0)] {
            let both = together(curve(), bounded(bound, rate));
            assert!(both.flags.contains(&Flag::Ambiguous), "{both:?}");
            assert!(both.rate.contains(rate) && both.rate.contains(50.0), "{both:?}");
        }
    }
}
