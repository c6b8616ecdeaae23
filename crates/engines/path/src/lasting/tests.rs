//! Methods that say what they are told to, over links with and without a bucket.

use proptest::prelude::*;

use super::steady::Stretch;
use super::*;
use crate::available::fifo::{Path, Traffic, instrument};
use crate::{Arrival, Gaps, TrainReport};

const LONGEST: Span = Span::from_secs(15);

/// Has its figure after one train of twelve packets.
struct Sure {
    rate: f64,
    asked: bool,
}

impl Estimator for Sure {
    fn next(&mut self, now: Mono) -> Step {
        if std::mem::replace(&mut self.asked, true) {
            return Step::Done;
        }
        let gaps = Gaps::Even((12_000.0 / self.rate * 1e12) as u64);
        let train = Train { packets: 12, length: 1500, gaps, rest: Span::ZERO };
        Step::Volley { volley: Volley { trains: vec![train] }, due: now }
    }

    fn take(&mut self, _now: Mono, _report: &VolleyReport, _took: Span) {}

    fn answer(&self) -> Option<Estimate> {
        let rate = Interval { estimate: self.rate, lo: self.rate, hi: self.rate, confidence: 0.9 };
        let (bound, flags) = (Bound::None, Vec::new());
        let estimate = Estimate { rate, bound, method: "", bytes: 18_000, packets: 12, took: Span(1), flags };
        self.asked.then_some(estimate)
    }
}

fn tested(path: &mut Path, metric: Metric, rate: f64) -> Estimate {
    let host = instrument(1e8);
    let mut lasting = Lasting::new(&host, metric, LONGEST, |_| Sure { rate, asked: false });
    let outcome = path.run(&mut lasting);
    assert!(outcome.took <= 15.0, "{outcome:?}");
    // The little train was not waited for.
    assert!(outcome.bits <= 0.1 * 1e8 * outcome.took + 18_000.0 * 8.0, "{outcome:?}");
    let answer = outcome.answer.unwrap();
    assert_eq!(answer.bytes * 8, outcome.bits as u64);
    answer
}

fn peak(answer: &Estimate) -> Option<f64> {
    answer.flags.iter().find_map(|flag| if let Flag::Shaped { peak } = flag { Some(*peak) } else { None })
}

#[test]
fn behind_a_credit_is_the_token_rate_of_both_metrics() {
    for metric in [Metric::Capacity, Metric::Available] {
        for (tokens, credit) in [(3e7, 3_000.0), (3e7, 60_000.0), (3e7, 100_000.0), (7e7, 20_000.0)] {
            let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
            path.policer = Some((tokens, credit));
            let answer = tested(&mut path, metric, 1e8);
            assert_eq!(peak(&answer), Some(1e8), "{answer:?}");
            let near = (answer.rate.estimate / tokens - 1.0).abs() < 0.05 && answer.rate.contains(tokens);
            assert!(near && answer.bound == Bound::None, "{metric:?} {tokens} {credit}: {answer:?}");
        }
    }
}

#[test]
fn a_figure_that_lasts_is_left_alone() {
    for (load, traffic) in
        [(0.0, Traffic::Even), (0.3, Traffic::Poisson), (0.5, Traffic::Even), (0.8, Traffic::Poisson)]
    {
        for seed in 0..20 {
            let rate = 1e8 * (1.0 - load);
            let answer = tested(&mut Path::single(1e8, load, traffic, seed), Metric::Available, rate);
            assert_eq!((answer.rate.estimate, &answer.flags[..]), (rate, &[][..]), "{load} {traffic:?}");
            let answer = tested(&mut Path::single(1e8, load, traffic, seed), Metric::Capacity, 1e8);
            assert_eq!((answer.rate.estimate, &answer.flags[..]), (1e8, &[][..]), "{load} {traffic:?}");
        }
    }
}

#[test]
fn random_loss_is_no_policer() {
    for seed in 0..20 {
        let mut path = Path::single(1e8, 0.3, Traffic::Poisson, seed);
        path.loss = 0.2;
        let answer = tested(&mut path, Metric::Available, 7e7);
        assert_eq!(peak(&answer), None, "{answer:?}");
    }
}

#[test]
fn a_credit_deeper_than_the_test_is_not_seen() {
    let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
    path.policer = Some((3e7, 5e6));
    path.run(&mut Sure { rate: 1e8, asked: false });
    let answer = tested(&mut path, Metric::Available, 1e8);
    // The bucket of this path begins empty, and fills in a second and a third.
    assert_eq!(peak(&answer).is_some(), answer.rate.estimate < 5e7, "{answer:?}");
}

#[test]
fn without_time_for_a_test_there_is_none() {
    let host = Instrument { time_limit: Span::from_millis(100), ..instrument(1e8) };
    let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
    path.policer = Some((3e7, 20_000.0));
    let mut lasting = Lasting::new(&host, Metric::Available, LONGEST, |_| Sure { rate: 1e8, asked: false });
    let outcome = path.run(&mut lasting);
    assert_eq!((outcome.volleys, peak(&outcome.answer.unwrap())), (1, None));
}

#[test]
fn who_follows_a_path_is_tested_now_and_then() {
    let host = Instrument { time_limit: Span::from_secs(40), ..instrument(1e8) };
    let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
    path.policer = Some((3e7, 20_000.0));
    let chirp = crate::available::Chirp::watching(&host);
    let mut lasting = Lasting::watching(&host, Metric::Available, Span::from_secs(10), chirp);
    let answer = path.run(&mut lasting).answer.unwrap();
    assert!(peak(&answer).is_some() && (answer.rate.estimate / 3e7 - 1.0).abs() < 0.1, "{answer:?}");
}

#[test]
fn more_arrivals_than_departures_are_no_loss_below_zero() {
    let train = Train { packets: 30, length: 1500, gaps: Gaps::Even(1_000), rest: Span::ZERO };
    let arrivals = (0..30).map(|number| Arrival { number, at: i64::from(number) }).collect();
    let report = TrainReport { sent: vec![Some(0)], arrivals };
    assert_eq!(Steady::of(&[train], &[report]).lost(0.0, 1.0).to_bits(), 0.0_f64.to_bits());
}

/// Has its figure without a question, and these flags.
struct Flagged(Vec<Flag>);

impl Estimator for Flagged {
    fn next(&mut self, _now: Mono) -> Step {
        Step::Done
    }

    fn take(&mut self, _now: Mono, _report: &VolleyReport, _took: Span) {}

    fn answer(&self) -> Option<Estimate> {
        let rate = Interval { estimate: 9e7, lo: 8e7, hi: 1e8, confidence: 0.9 };
        let (bound, flags) = (Bound::None, self.0.clone());
        Some(Estimate { rate, bound, method: "", bytes: 0, packets: 0, took: Span(1), flags })
    }
}

#[test]
fn a_bucket_that_is_found_replaces_the_methods_own_peak_and_none_of_its_other_flags() {
    let flags = vec![Flag::Noisy, Flag::Shaped { peak: 9e7 }, Flag::Elastic];
    let host = instrument(1e8);
    let mut lasting = Lasting::new(&host, Metric::Available, LONGEST, |_| Flagged(flags.clone()));
    assert_eq!(lasting.answer().unwrap().flags, flags);
    let lasts = Interval { estimate: 3e7, lo: 2.9e7, hi: 3.1e7, confidence: 0.9 };
    lasting.found = Some(Found::Bucket { peak: 1e8, lasts, bound: Bound::AtMost });
    let answer = lasting.answer().unwrap();
    assert_eq!(answer.flags, [Flag::Noisy, Flag::Elastic, Flag::Shaped { peak: 1e8 }]);
    assert_eq!((answer.rate, answer.bound), (lasts, Bound::AtMost));
}

/// A line through 4, 6 and 8 bit/s that came `by` times more slowly, behind a link of 10 bit/s.
fn three_rates(by: [f64; 3], error: f64, metric: Metric) -> Option<Found> {
    let [slow, middle, fast] = by;
    let parts = [(4.0, slow), (6.0, middle), (8.0, fast)].map(|(rate, by)| Stretch { rate, by, error });
    line(10.0, &parts, metric)
}

#[test]
fn a_line_through_three_rates_tells_a_bucket_or_what_is_not_known_of_it() {
    // Tokens for 4 bit/s, of which others take 1: sent over received rate is (rate + 1) / 4.
    let bucket = [1.25, 1.75, 2.25];
    let is_told = |by: [f64; 3], error: f64, metric: Metric, want: [f64; 3], bound: Bound| {
        let told = three_rates(by, error, metric);
        let Some(Found::Bucket { peak, lasts, bound: found }) = told else { panic!("{told:?}") };
        let pairs = [(peak, 10.0), (lasts.estimate, want[0]), (lasts.lo, want[1]), (lasts.hi, want[2])];
        assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1e-9) && found == bound, "{told:?}");
    };
    // The slope errs by the error over the root of 8, the middle by it over the root of 3.
    let half = 0.48 / 8_f64.sqrt() + 0.42;
    is_told(bucket, 0.01, Metric::Capacity, [4.0, 4.0 - half, 4.0 + half], Bound::None);
    let half = 0.12 * (1.0_f64 / 3.0 + 9.0 / 8.0).sqrt() + 0.39;
    is_told(bucket, 0.01, Metric::Available, [3.0, 3.0 - half, 3.0 + half], Bound::None);
    // The middle one is off by 0.03: the errors are the root of 6 times as large.
    let half = 0.48 * 0.75_f64.sqrt() + 0.432;
    is_told([1.25, 1.78, 2.25], 0.01, Metric::Capacity, [4.0, 4.0 - half, 4.0 + half], Bound::None);
    // Too rough for a figure: 3.2 bit/s came of the slowest.
    is_told(bucket, 0.1, Metric::Capacity, [3.2, 3.2, 4.0], Bound::AtLeast);
    is_told(bucket, 0.1, Metric::Available, [3.2, 0.0, 3.2], Bound::AtMost);
    assert_eq!(three_rates(bucket, 1.0, Metric::Capacity), Some(Found::Unclear(3.2)));
    // No slope: what was lost is lost by chance.
    assert_eq!(three_rates([1.1; 3], 0.01, Metric::Capacity), None);
}

/// A train that came in two halves, each in blocks of ten gaps that are so long in turns, us.
fn in_halves(halves: [[i64; 2]; 2]) -> Steady {
    let times = (0..160).scan(0_i64, |at, number: usize| {
        let now = *at;
        *at += halves[number / 80][number / 10 % 2] * 1_000;
        Some(now)
    });
    let arrivals = (0..).zip(times).map(|(number, at)| Arrival { number, at }).collect();
    let sent = (0..160).map(|number| Some(number * 80_000)).collect();
    let train = Train { packets: 160, length: 1500, gaps: Gaps::Even(80_000_000), rest: Span::ZERO };
    Steady::of(&[train], &[TrainReport { sent, arrivals }])
}

#[test]
fn a_step_is_larger_than_six_times_what_the_means_of_both_sides_err() {
    // Blocks scatter by 4 per cent, means of seven or eight by half of that.
    assert!(in_halves([[96, 104], [113, 123]]).steps_down());
    assert!(!in_halves([[96, 104], [108, 117]]).steps_down());
    // Without scatter twelve per cent are needed.
    assert!(in_halves([[100, 100], [113, 113]]).steps_down());
    assert!(!in_halves([[100, 100], [111, 111]]).steps_down());
    assert!(!in_halves([[113, 113], [100, 100]]).steps_down());
}

proptest! {
    #[test]
    fn hostile_reports_do_no_harm(
        times in proptest::collection::vec((any::<u32>(), any::<i64>()), 0..60),
        sends in proptest::collection::vec(proptest::option::of(any::<i64>()), 0..40),
        gap in 0_u64..1_000_000_000,
    ) {
        let train = Train { packets: 30, length: 1500, gaps: Gaps::Even(gap), rest: Span::ZERO };
        let arrivals = times.into_iter().map(|(number, at)| Arrival { number: number % 40, at }).collect();
        let report = TrainReport { sent: sends, arrivals };
        let steady = Steady::of(&[train.clone(), train], &[report.clone(), report]);
        let read = (steady.stretch(0.5, 1.0), steady.lost(0.0, 1.0), steady.passes());
        prop_assert!(read.0.is_none_or(|stretch| stretch.by > 0.0), "{read:?}");
        prop_assert!((0.0..=1.0).contains(&read.1), "{read:?}");
        // These must only return.
        std::hint::black_box((steady.steps_down(), steady.has_knee(), steady.drops_without_queue()));
    }
}
