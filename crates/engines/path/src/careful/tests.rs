use netaware_stats::interval::Interval;

use super::*;
use crate::available::fifo::{Path, Traffic, instrument};
use crate::capacity::Bulk;

fn answer(bound: Bound, estimate: f64, lo: f64, hi: f64) -> Estimate {
    Estimate {
        rate: Interval { estimate, lo, hi, confidence: 0.9 },
        bound,
        method: "made up",
        bytes: 0,
        packets: 0,
        took: Span::ZERO,
        flags: Vec::new(),
    }
}

#[test]
fn a_bound_of_zero_is_no_answer() {
    let rows = [
        (Bound::AtMost, 0.0, 0.0, 0.0),
        (Bound::AtMost, 0.0, -5e6, -1e6),
        (Bound::AtMost, 1.0, 0.0, f64::INFINITY),
        (Bound::AtLeast, 1e6, 0.0, 2e6),
        (Bound::AtLeast, 1e6, -1.0, 2e6),
        (Bound::None, 0.0, 0.0, 0.0),
        (Bound::None, f64::NAN, 1.0, 2.0),
    ];
    for (bound, estimate, lo, hi) in rows {
        assert_eq!(sound(answer(bound, estimate, lo, hi)), None, "{bound:?} {estimate} {lo} {hi}");
    }
    let open = sound(answer(Bound::None, 1e6, -1e6, 3e6)).unwrap();
    assert_eq!(
        (open.bound, open.rate.lo.to_bits(), open.rate.hi.to_bits()),
        (Bound::AtMost, 0, 3e6_f64.to_bits())
    );
    assert_eq!(sound(answer(Bound::AtMost, 1e6, 0.0, 2e6)), Some(answer(Bound::AtMost, 1e6, 0.0, 2e6)));
}

fn bulk(limit: Span) -> Careful {
    let host = Instrument { time_limit: limit, ..instrument(1e8) };
    Careful::new(&host, Bulk::NEEDS, |host| Box::new(Bulk::new(host, 1)))
}

#[test]
fn whoever_has_no_figure_has_a_reason() {
    let mut dead = Path::single(1e8, 0.0, Traffic::Even, 1);
    dead.loss = 1.1;
    let mut careful = bulk(Span::from_secs(10));
    dead.run(&mut careful);
    assert!(matches!(careful.conclusion(), Err(NoFigure::NothingCame { packets: 1.. })), "{careful:?}");
    let mut slow = Path::single(1e5, 0.0, Traffic::Even, 1);
    let mut careful = bulk(Span::from_secs(10));
    slow.run(&mut careful);
    let Err(NoFigure::TooShort { carried: Some(rate), enough: Some(enough) }) = careful.conclusion() else {
        panic!("{:?}", careful.conclusion());
    };
    assert!((rate / 1e5 - 1.0).abs() < 0.1 && enough > Span::from_secs(10), "{rate} {enough}");
    let stopped = bulk(Span::from_secs(10));
    assert_eq!(stopped.conclusion(), Err(NoFigure::Stopped));
}

#[test]
fn what_may_send_no_more_has_not_been_stopped_by_somebody() {
    let mut capped = bulk(Span::from_secs(10));
    capped.cut_short(Mono(1));
    assert!(capped.is_out_of_time());
    assert_eq!(capped.next(Mono(2)), Step::Done);
    assert_eq!(capped.conclusion(), Err(NoFigure::TooShort { carried: None, enough: None }));
    // What is over is over.
    let mut content = bulk(Span::from_secs(10));
    content.over = Some(Over::Content);
    content.cut_short(Mono(1));
    assert!(!content.is_out_of_time());
}

#[test]
fn a_path_that_went_silent_is_not_called_too_slow_for_the_time() {
    let mut careful = bulk(Span::from_secs(2));
    careful.came_now = Came { sent: 31, arrived: 11, silent: 20, trains: 4, ..Came::default() };
    let enough = Some(Span::from_secs(20));
    careful.over = Some(Over::Hopeless(NoFigure::TooShort { carried: Some(5e8), enough }));
    assert_eq!(careful.conclusion(), Err(NoFigure::WentSilent { packets: 20 }));
}

#[test]
fn a_method_behind_first_trains_finds_what_it_finds_without() {
    let mut path = Path::single(1e8, 0.3, Traffic::Poisson, 1);
    let outcome = path.run(&mut bulk(Span::from_secs(10)));
    let answer = outcome.answer.unwrap();
    assert!((answer.rate.estimate / 1e8 - 1.0).abs() < 0.02, "{answer:?}");
    assert!((outcome.bits - answer.bytes as f64 * 8.0).abs() < 1.0, "first trains count: {answer:?}");
}

/// A method that sends ten trains a second and is never content.
struct NeverContent {
    left: u32,
}

impl Estimator for NeverContent {
    fn next(&mut self, now: Mono) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        let train =
            Train { packets: 10, length: 1500, gaps: crate::Gaps::BackToBack, rest: Span::from_millis(100) };
        Step::Volley { volley: Volley { trains: vec![train] }, due: now }
    }

    fn take(&mut self, _now: Mono, _report: &VolleyReport, _took: Span) {}

    fn answer(&self) -> Option<Estimate> {
        None
    }
}

#[test]
fn trains_over_two_paths_that_contradict_each_other_are_not_called_undecided() {
    for (detour, wanted) in [
        (Some((2e9, 4e7)), NoFigure::PathChanged),
        (Some((2e9, -4e6)), NoFigure::PathChanged),
        (None, NoFigure::Undecided),
    ] {
        let mut path = Path::single(1e8, 0.0, Traffic::Even, 1);
        path.detour = detour;
        let host = Instrument { time_limit: Span::from_secs(30), ..instrument(1e8) };
        let needs = Needs { packets: 100, train: 3, rounds: 10 };
        let mut careful = Careful::new(&host, needs, |_| Box::new(NeverContent { left: 40 }));
        path.run(&mut careful);
        assert_eq!(careful.conclusion(), Err(wanted), "{detour:?}");
    }
}

/// What a train of `sent` packets came to whose packets with these numbers arrived, each so many ns
/// after it left.
fn came(sent: u32, arrived: impl Iterator<Item = (u32, i64)>) -> (Volley, VolleyReport) {
    let train = Train { packets: sent, length: 1500, gaps: crate::Gaps::BackToBack, rest: Span::ZERO };
    let sends: Vec<i64> = (0..i64::from(sent)).map(|number| number * 10_000).collect();
    let arrivals = arrived
        .map(|(number, delay)| crate::Arrival { number, at: sends[number as usize] + delay })
        .collect();
    let report = TrainReport { sent: sends.into_iter().map(Some).collect(), arrivals };
    (Volley { trains: vec![train] }, VolleyReport { trains: vec![report] })
}

/// What first trains say after one of 48 packets came like this, and the next two whole or not.
fn after(first: &(Volley, VolleyReport), is_whole: bool) -> (Option<u32>, Option<f64>) {
    let mut scout = Scout::default();
    let beyond = Span::ZERO;
    let (asked, report) = came(12, (0..12).map(waits));
    scout.observe(&asked, &report, beyond);
    scout.observe(&first.0, &first.1, beyond);
    let Some(packets) = scout.packets(Some(1e7), 1e9) else { return (None, None) };
    let (mut asked, mut report) = came(packets, (0..packets).map(waits));
    let (second, of_second) = came(packets, (0..packets - u32::from(!is_whole)).map(waits));
    asked.trains.extend(second.trains);
    report.trains.extend(of_second.trains);
    assert_eq!(scout.observe(&asked, &report, beyond), None);
    (Some(packets), scout.fits())
}

/// Delay in a queue of thirty packets that a train fills.
fn waits(number: u32) -> (u32, i64) {
    (number, 5_000_000 + i64::from(number.min(29)) * 1_190_000)
}

#[test]
fn a_train_that_is_longer_than_a_queue_is_not_taken_for_one_that_is_policed() {
    // Some of those behind find a place as it drains.
    let overflowed = || came(48, (0..30).chain([35, 41]).map(waits));
    assert_eq!(after(&overflowed(), true), (Some(30), Some(45_000.0)));
    assert_eq!(after(&overflowed(), false), (Some(30), None), "a policer has no tokens yet");
    // Of what a policer lets through nothing has waited, and chance drops while the queue fills.
    assert_eq!(after(&came(48, (0..30).map(|number| (number, 5_000_000))), true), (None, None));
    let lost = came(48, (0..48).filter(|number| number % 10 != 5).map(waits));
    assert_eq!(after(&lost, true), (None, None));
}

#[test]
fn a_time_that_is_said_to_be_enough_counts_the_rate_at_which_tokens_come() {
    let host = Instrument { max_load: 1.0, time_limit: Span::from_secs(10), ..instrument(1e6) };
    let mut careful = Careful::new(&host, Bulk::NEEDS, |host| Box::new(Bulk::new(host, 1)));
    careful.carried.saw_first(12, 1e6);
    let free = careful.enough().unwrap();
    // Three of four packets are lost without a queue: less may be sent from then on.
    let (asked, report) =
        came(48, (0..48).filter(|number| number % 4 == 0).map(|number| (number, 5_000_000)));
    careful.carried.count(Mono(1_000_000_000), Span::from_millis(500), &asked, &report);
    let held = careful.enough().unwrap();
    assert!(held > free * 2, "{free} {held}");
    let bits = f64::from(Bulk::NEEDS.packets) * careful.sender.bits();
    let carried = careful.carried.rate().unwrap();
    assert!(bits / held.secs_f64() < carried, "no limit is said that asks for more than tokens give");
}

#[test]
fn a_path_that_fell_silent_hours_ago_did_not_always_drop_the_trains() {
    let mut careful = bulk(Span::from_secs(10));
    let train = |comes: bool| {
        let sent = (0..60).map(|number: i64| Some(number * 10_000_000)).collect();
        let came = (0..60).filter(|_| comes);
        let arrivals =
            came.map(|number| crate::Arrival { number, at: i64::from(number) * 10_000_000 + 5 }).collect();
        VolleyReport { trains: vec![TrainReport { sent, arrivals }] }
    };
    for (turn, comes) in [true, false, false, false].into_iter().enumerate() {
        careful.begin_turn();
        careful.came_now.observe(&train(comes));
        let told = careful.silence();
        assert!(!matches!(told, Some(NoFigure::NothingCame { .. })), "turn {turn}: {told:?}");
        assert!(turn < 2 || matches!(told, Some(NoFigure::WentSilent { .. })), "turn {turn}: {told:?}");
    }
    let mut careful = bulk(Span::from_secs(10));
    careful.came_now.observe(&train(false));
    assert!(matches!(careful.silence(), Some(NoFigure::NothingCame { packets: 60 })));
}

#[test]
fn an_outage_of_an_earlier_turn_is_not_told_for_ever() {
    let mut careful = bulk(Span::from_secs(10));
    let train = |lost: std::ops::Range<u32>| {
        let sent = (0..60).map(|number: i64| Some(number * 10_000_000)).collect();
        let came = (0..60).filter(|number| !lost.contains(number));
        let arrivals =
            came.map(|number| crate::Arrival { number, at: i64::from(number) * 10_000_000 + 5 }).collect();
        VolleyReport { trains: vec![TrainReport { sent, arrivals }] }
    };
    careful.came_now.observe(&train(20..50));
    assert_eq!(careful.came().outage().map(|it| it.packets), Some(30));
    careful.begin_turn();
    careful.came_now.observe(&train(0..0));
    assert_eq!(careful.came().outage().map(|it| it.packets), Some(30), "the turn before");
    careful.begin_turn();
    careful.came_now.observe(&train(0..0));
    assert!(careful.came().outage().is_none() && careful.came().lost() == 0.0);
    assert_eq!(careful.came().sent, 120);
    // A pause between turns is no time in which the path was gone.
    careful.came_now.observe(&train(59..60));
    careful.begin_turn();
    careful.came_now.observe(&train(0..5));
    careful.came_now.end_stretch();
    assert_eq!(careful.came().longest.packets, 5);
}

/// Has found this rate, bit/s, and is content.
struct Sure(f64);

impl Estimator for Sure {
    fn next(&mut self, _now: Mono) -> Step {
        Step::Done
    }

    fn take(&mut self, _now: Mono, _report: &VolleyReport, _took: Span) {}

    fn answer(&self) -> Option<Estimate> {
        Some(answer(Bound::None, self.0, self.0 * 0.95, self.0 * 1.05))
    }
}

/// Trains of 133 packets that leave from then on, ns, at 120 Mbit/s, 8 ms behind a link that takes
/// so many ns for a packet and has a queue of 166.
fn through_a_queue(from: i64, trains: i64, takes: i64) -> (Volley, VolleyReport) {
    let (mut asked, mut report) = (Volley::default(), VolleyReport::default());
    let mut free: i64 = 0;
    for train in 0..trains {
        let sent: Vec<i64> = (0..133).map(|number| from + (train * 133 + number) * 100_000).collect();
        let mut arrivals = Vec::new();
        for (number, at) in (0..).zip(&sent) {
            if free - at < 166 * takes {
                free = free.max(*at) + takes;
                arrivals.push(crate::Arrival { number, at: free + 8_000_000 });
            }
        }
        let gaps = crate::Gaps::Even(100_000_000);
        asked.trains.push(Train { packets: 133, length: 1500, gaps, rest: Span::ZERO });
        report.trains.push(TrainReport { sent: sent.into_iter().map(Some).collect(), arrivals });
    }
    (asked, report)
}

/// "IPv6 120 Mbit/s, interval 111 .. 129": the link had become one of 15 Mbit/s when the last
/// trains left, which lost two thirds of their packets, but had left within 80 ms.
#[test]
fn a_figure_is_not_told_that_the_last_trains_contradict() {
    let second = 1_000_000_000;
    let after = |found: f64, volleys: &[(i64, i64)]| {
        let mut careful = bulk(Span::from_secs(10));
        careful.method = Some(Box::new(Sure(found)));
        careful.over = Some(Over::Content);
        for (n, (trains, takes)) in (0..).zip(volleys) {
            let (asked, report) = through_a_queue(n * second, *trains, *takes);
            careful.carried.observe(Mono(0), &asked, &report);
            careful.transits.observe(&asked, &report);
        }
        careful.conclusion()
    };
    let (fast, slow) = (100_000, 800_000);
    let Err(NoFigure::Slower { from, to }) = after(1.2e8, &[(6, fast), (6, slow)]) else {
        panic!("{:?}", after(1.2e8, &[(6, fast), (6, slow)]));
    };
    assert!((from / 1.2e8 - 1.0).abs() < 0.02 && (to / 1.5e7 - 1.0).abs() < 0.02, "{from} {to}");
    // A path that stayed as it was, two trains that met others, and one that is fast again.
    for volleys in [&[(6, fast), (6, fast)][..], &[(6, fast), (2, slow)], &[(6, fast), (6, slow), (1, fast)]]
    {
        assert!(after(1.2e8, volleys).is_ok(), "{volleys:?}: {:?}", after(1.2e8, volleys));
    }
    // What the last trains had is no figure of before.
    assert!(after(1.5e7, &[(6, fast), (6, slow)]).is_ok());
}
