//! What networks and hosts do to estimators on bad days: none may answer nonsense in silence, and
//! none may overrun its time.
//!
//! An answer is honest if it is missing, within 20 % of the truth, a bound that holds, or told with
//! a flag that says why not. Where a cause can be seen, it must be named.

use netaware_netmodel::Scenario;
use netaware_path::available::{self, Chirp, Curve, Maximum, Search, Slops, Spruce};
use netaware_path::capacity::{self, Bulk, Pathrate, PathrateRules};
use netaware_path::{Bound, Estimate, Estimator, Flag, Instrument, Lasting, Metric, Step, VolleyReport};
use netaware_sim::cells::{FROM, RTT};
use netaware_sim::{Estimated, HostNoise, Stall, VolleyPath, estimate};
use netaware_stats::interval::Interval;
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

const CAPACITY: f64 = 100e6;
const AVAILABLE: f64 = 60e6;
const IDLE: &str = "[[hop]]\nrate = '100Mbit/s'\ndelay = '1ms'\n";
const LOADED: &str = "[[hop]]\nrate = '100Mbit/s'\ndelay = '1ms'\n\
                      [[cross]]\nenter = 0\npattern = 'poisson'\nrate = '40Mbit/s'\nsizes = 1000\n";
const METHODS: [&str; 9] =
    ["bulk", "pathrate", "capacity", "curve", "slops", "chirp", "spruce", "available", "maximum"];

fn instrument() -> Instrument {
    Instrument {
        largest: 1500,
        smallest: 200,
        rtt: RTT,
        send_gap: Span::from_micros(2),
        send_error: Span(300),
        receive_error: Span(500),
        largest_burst: 200_000,
        max_load: 0.1,
        time_limit: Span::from_secs(30),
        carried: None,
    }
}

/// A method with a test whether its figure lasts, but without first trains before it and without a
/// limit on what it sends: what it would say by itself.
fn method(name: &str, host: &Instrument) -> Box<dyn Estimator> {
    let (metric, longest) = match name {
        "bulk" => (Metric::Capacity, Bulk::LONGEST),
        "pathrate" | "capacity" => (Metric::Capacity, Pathrate::LONGEST),
        "curve" => (Metric::Available, Curve::LONGEST),
        "slops" => (Metric::Available, Slops::LONGEST),
        "chirp" => (Metric::Available, Chirp::LONGEST),
        "spruce" => (Metric::Available, Spruce::LONGEST),
        "available" => (Metric::Available, available::Automatic::LONGEST),
        _ => return alone(name, host),
    };
    Box::new(Lasting::new(host, metric, longest, |host| alone(name, host)))
}

fn alone(name: &str, host: &Instrument) -> Box<dyn Estimator> {
    let known = Interval { estimate: CAPACITY, lo: CAPACITY, hi: CAPACITY, confidence: 0.95 };
    match name {
        "bulk" => Box::new(Bulk::new(host, 1)),
        "pathrate" => Box::new(Pathrate::new(host, PathrateRules::default(), 1)),
        "capacity" => Box::new(capacity::Automatic::new(host, 1)),
        "curve" => Box::new(Curve::new(host)),
        "slops" => Box::new(Slops::new(host)),
        "chirp" => Box::new(Chirp::new(host)),
        "spruce" => Box::new(Spruce::new(host, known, 1)),
        "available" => Box::new(available::Automatic::new(host)),
        "maximum" => Box::new(Maximum::new(host, Search::TypeB)),
        "maximum-c" => Box::new(Maximum::new(host, Search::TypeC)),
        other => panic!("{other}"),
    }
}

fn truth(name: &str) -> f64 {
    // Who fills the path has what is free, or all if the cross traffic is pushed aside by what the
    // queue drops.
    if ["bulk", "pathrate", "capacity"].contains(&name) { CAPACITY } else { AVAILABLE }
}

/// A method whose reports something happens to on their way.
struct Spoiled<S> {
    method: Box<dyn Estimator>,
    spoil: S,
}

impl<S: FnMut(Mono, &mut VolleyReport)> Estimator for Spoiled<S> {
    fn next(&mut self, now: Mono) -> Step {
        self.method.next(now)
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        let mut report = report.clone();
        (self.spoil)(now, &mut report);
        self.method.take(now, &report, took);
    }

    fn answer(&self) -> Option<Estimate> {
        self.method.answer()
    }
}

fn path(text: &str, noise: HostNoise) -> VolleyPath {
    let scenario = Scenario::parse(&format!("about = 'a bad day'\n{text}")).unwrap();
    VolleyPath::new(&scenario, FROM, 5, noise)
}

fn noise() -> HostNoise {
    HostNoise {
        send_gap: Span::from_micros(2),
        send_error: Span(300),
        receive_error: Span(500),
        ..HostNoise::default()
    }
}

fn run(name: &str, text: &str, noise: HostNoise, host: &Instrument) -> Estimated {
    spoiled(name, text, noise, host, |_, _| {})
}

fn spoiled(
    name: &str,
    text: &str,
    noise: HostNoise,
    host: &Instrument,
    spoil: impl FnMut(Mono, &mut VolleyReport),
) -> Estimated {
    let mut method = Spoiled { method: method(name, host), spoil };
    let outcome = estimate(&mut path(text, noise), &mut method, RTT);
    assert!(outcome.done, "{name}: no end");
    assert!(outcome.took <= host.time_limit + Span::from_secs(1), "{name}: {}", outcome.took);
    outcome
}

/// Why an answer misleads, if it does.
fn nonsense(outcome: &Estimated, truth: f64) -> Option<String> {
    let answer = outcome.answer.as_ref()?;
    let told = answer.flags.iter().any(|flag| !matches!(flag, Flag::Coalescing { .. }));
    let honest = match answer.bound {
        Bound::None => told || (answer.rate.estimate / truth - 1.0).abs() <= 0.2,
        Bound::AtLeast => told || answer.rate.lo <= truth * 1.05,
        Bound::AtMost => told || answer.rate.hi >= truth * 0.95,
    };
    (!honest).then(|| format!("{answer:?}, but {truth}"))
}

/// Why the figure of a method that fills the path cannot be, whatever its flags say. How low it may
/// be depends on how far the search climbs in its time with the load that it may make; but nobody
/// gets more than the link carries.
fn exceeds(outcome: &Estimated, capacity: f64) -> Option<String> {
    let answer = outcome.answer.as_ref()?;
    (answer.rate.lo > capacity * 1.05).then(|| format!("{answer:?}, but the link carries {capacity}"))
}

/// Runs every method. Each must give an answer, and an honest one: whoever says nothing is never
/// wrong.
fn all_honest(what: &str, of: impl Fn(&str) -> Estimated) -> Vec<(&'static str, Estimated)> {
    let outcomes: Vec<_> = METHODS.iter().map(|name| (*name, of(name))).collect();
    let without: Vec<&str> =
        outcomes.iter().filter(|(_, outcome)| outcome.answer.is_none()).map(|(name, _)| *name).collect();
    assert_eq!(without, [""; 0], "{what}: methods without an answer");
    let liars: Vec<String> = outcomes
        .iter()
        .filter_map(|(name, outcome)| {
            let is_maximum = *name == "maximum";
            let lie = if is_maximum { exceeds(outcome, CAPACITY) } else { nonsense(outcome, truth(name)) };
            Some(format!("{name}: {}", lie?))
        })
        .collect();
    assert!(liars.is_empty(), "{what}:\n{}", liars.join("\n"));
    outcomes
}

fn has(outcome: &Estimated, wanted: impl Fn(&Flag) -> bool) -> bool {
    outcome.answer.as_ref().is_some_and(|answer| answer.flags.iter().any(wanted))
}

#[test]
fn where_nothing_arrives_nothing_is_said() {
    for name in METHODS {
        let outcome = spoiled(name, LOADED, noise(), &instrument(), |_, report| {
            report.trains.iter_mut().for_each(|train| train.arrivals.clear());
        });
        assert_eq!(outcome.answer, None, "{name}");
    }
}

#[test]
fn heavy_loss_is_told() {
    let outcomes = all_honest("a third is lost", |name| {
        let mut rng = SplitMix64::new(7);
        spoiled(name, LOADED, noise(), &instrument(), move |_, report| {
            report.trains.iter_mut().for_each(|train| train.arrivals.retain(|_| rng.unit() > 0.33));
        })
    });
    for (name, outcome) in outcomes {
        let lossy = has(&outcome, |flag| matches!(flag, Flag::Lossy(share) if *share > 0.2));
        assert!(lossy || name == "maximum", "{name}: {outcome:?}");
    }
}

#[test]
fn reordering_misleads_nobody() {
    all_honest("one of twenty is overtaken", |name| {
        let mut rng = SplitMix64::new(8);
        spoiled(name, LOADED, noise(), &instrument(), move |_, report| {
            for train in &mut report.trains {
                for arrival in &mut train.arrivals {
                    arrival.at += if rng.unit() < 0.05 { 500_000 } else { 0 };
                }
                train.arrivals.sort_by_key(|arrival| arrival.at);
            }
        })
    });
}

#[test]
fn a_responder_that_dies_leaves_what_was_found() {
    all_honest("gone after three volleys", |name| {
        let mut volleys = 0;
        spoiled(name, LOADED, noise(), &instrument(), move |_, report| {
            volleys += 1;
            if volleys > 3 {
                report.trains.iter_mut().for_each(|train| train.arrivals.clear());
            } else if volleys == 3 {
                let trains = report.trains.len();
                report.trains.iter_mut().skip(trains / 2).for_each(|train| train.arrivals.truncate(2));
            }
        })
    });
}

/// Adds `step` to what arrives after the instant at which half of what the method does is done.
fn stepped(name: &str, step: i64) -> Estimated {
    let host = instrument();
    let whole = run(name, LOADED, noise(), &host).took;
    let mut began = None;
    spoiled(name, LOADED, noise(), &host, move |now, report| {
        let began = *began.get_or_insert(now);
        if now.since(began) * 2 > whole {
            let arrivals = report.trains.iter_mut().flat_map(|train| &mut train.arrivals);
            arrivals.for_each(|arrival| arrival.at += step);
        }
    })
}

#[test]
fn another_path_and_a_clock_that_is_set_are_told() {
    for step in [20_000_000, 3_600_000_000_000, -3_600_000_000_000] {
        for (name, outcome) in all_honest("a step", |name| stepped(name, step)) {
            let told = has(&outcome, |flag| *flag == Flag::PathChanged);
            // Who fills the path sees queues as large; pairs have no delays.
            assert!(told || ["maximum", "spruce"].contains(&name), "{name}, {step}: {:?}", outcome.answer);
        }
    }
}

#[test]
fn a_clock_that_is_set_in_the_middle_of_a_train_misleads_nobody() {
    all_honest("a step within a train", |name| {
        let mut trains = 0;
        spoiled(name, LOADED, noise(), &instrument(), move |_, report| {
            for train in &mut report.trains {
                trains += 1;
                let middle = train.arrivals.len() / 2;
                let from = if trains == 9 { middle } else { 0 };
                let step = if trains >= 9 { 3_600_000_000_000 } else { 0 };
                train.arrivals.iter_mut().skip(from).for_each(|arrival| arrival.at += step);
            }
        })
    });
}

#[test]
fn a_sender_that_is_kept_from_its_core_misleads_nobody() {
    for (probability, millis) in [(0.002, 10), (0.02, 3), (0.1, 1)] {
        let stall = Some(Stall { probability, lasts: Span::from_millis(millis) });
        let hog = HostNoise { stall, send_jitter: Span::from_micros(20), ..noise() };
        all_honest("a hog", |name| run(name, LOADED, hog, &instrument()));
    }
}

#[test]
fn a_host_that_is_too_slow_gives_a_bound() {
    // 1500 bytes each 600 us are 20 Mbit/s.
    let slow = Span::from_micros(600);
    let host = Instrument { send_gap: slow, ..instrument() };
    let capped = HostNoise { send_gap: slow, ..noise() };
    for (name, outcome) in all_honest("20 Mbit/s at most", |name| run(name, IDLE, capped, &host)) {
        let answer = outcome.answer.unwrap();
        let is_right = match name {
            "spruce" => answer.bound == Bound::AtMost,
            _ => answer.bound == Bound::AtLeast && answer.rate.lo <= 20.5e6,
        };
        assert!(is_right, "{name}: {answer:?}");
    }
}

#[test]
fn packets_that_do_not_fit_are_no_measurement() {
    for name in METHODS {
        let outcome = run(name, &format!("{IDLE}mtu = 1400\n"), noise(), &instrument());
        assert_eq!(outcome.answer, None, "{name}");
    }
}

#[test]
fn a_policer_is_told_from_a_shaper() {
    let bucket = |kind: &str| {
        format!("{IDLE}bucket = {{ kind = '{kind}', rate = '30Mbit/s', burst = '60kB', initial = '60kB' }}\n")
    };
    for kind in ["policer", "shaper"] {
        for name in ["bulk", "pathrate", "capacity"] {
            let outcome = run(name, &bucket(kind), noise(), &instrument());
            let answer = outcome.answer.unwrap();
            let peak = answer.flags.iter().find_map(|flag| match flag {
                Flag::Shaped { peak } => Some(*peak),
                _ => None,
            });
            let two_modes =
                peak.is_some_and(|peak| peak > 90e6) && (answer.rate.estimate / 30e6 - 1.0).abs() < 0.1;
            assert!(two_modes, "{kind}, {name}: {answer:?}");
        }
    }
}

/// Credits of a bucket behind 100 Mbit/s, from a few packets to as much as a test of a figure can
/// drain.
const CREDITS: [&str; 3] = ["6kB", "30kB", "90kB"];

#[test]
fn every_method_tells_the_two_modes_of_a_bucket() {
    let mut failed = Vec::new();
    for kind in ["policer", "shaper"] {
        for (credit, tokens) in CREDITS.into_iter().flat_map(|credit| [(credit, 30e6), (credit, 60e6)]) {
            let text =
                format!("{IDLE}bucket = {{ kind = '{kind}', rate = '{tokens}bit/s', burst = '{credit}' }}\n");
            for name in METHODS.into_iter().filter(|name| *name != "maximum") {
                let outcome = run(name, &text, noise(), &instrument());
                let answer = outcome.answer.as_ref().unwrap();
                let shaped = has(&outcome, |flag| matches!(flag, Flag::Shaped { .. }));
                let near = (answer.rate.estimate / tokens - 1.0).abs() <= 0.2;
                let vague = answer.flags.contains(&Flag::Noisy) && answer.rate.contains(tokens);
                // Who sees the credit spent in each of its trains has the token rate without
                // knowing of the other mode.
                if !(near && (shaped || kind == "shaper") || vague) {
                    failed.push(format!("{kind} {tokens} {credit} {name}: {answer:?}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn beside_cross_traffic_a_bucket_leaves_a_figure_or_a_bound() {
    for kind in ["policer", "shaper"] {
        let path = format!(
            "{IDLE}bucket = {{ kind = '{kind}', rate = '30Mbit/s', burst = '60kB' }}\n\
             [[cross]]\nenter = 0\npattern = 'poisson'\nrate = '12Mbit/s'\nsizes = 1000\n"
        );
        for name in ["curve", "slops", "chirp", "spruce", "available"] {
            let outcome = run(name, &path, noise(), &instrument());
            let answer = outcome.answer.as_ref().unwrap();
            let honest = match answer.bound {
                Bound::AtMost => answer.rate.hi >= 0.9 * 18e6 && answer.rate.hi <= 36e6,
                _ => answer.rate.contains(18e6) || (answer.rate.estimate / 18e6 - 1.0).abs() < 0.2,
            };
            // A credit that lasts for all that there is time to send may leave no more than a
            // doubt.
            let doubted = has(&outcome, |flag| *flag == Flag::Ambiguous) && answer.rate.estimate <= 36e6;
            assert!((honest || doubted) && !answer.flags.is_empty(), "{kind} {name}: {answer:?}");
        }
    }
}

#[test]
fn a_greedy_flow_that_gives_way_is_told_or_in_the_interval() {
    // It has all of the link as long as nobody probes: nothing is left, and what the probes get is
    // what it gives way by.
    for queue in ["20kB", "100kB", "1MB"] {
        let path = format!(
            "[[hop]]\nrate = '100Mbit/s'\ndelay = '5ms'\nqueue = {{ bytes = '{queue}' }}\n\
             [[cross]]\nenter = 0\npattern = 'tcp'\nback = '5ms'\nsizes = 1500\n"
        );
        for name in ["curve", "slops", "chirp", "spruce", "available"] {
            let outcome = run(name, &path, noise(), &instrument());
            let answer = outcome.answer.unwrap();
            // In a queue that is too short for it the flow leaves up to a quarter by itself.
            let is_small_bound = answer.bound == Bound::AtMost && answer.rate.lo <= 25e6;
            assert!(answer.flags.contains(&Flag::Noisy) || is_small_bound, "{queue} {name}: {answer:?}");
        }
    }
}

/// A path, its capacity and what is available of it, bit/s, and the round trip.
type ShortOf = (&'static str, &'static str, f64, f64, Span);

const SHORT: [ShortOf; 5] = [
    ("idle", IDLE, 100e6, 100e6, RTT),
    ("loaded", LOADED, 100e6, 60e6, RTT),
    ("a megabit", "[[hop]]\nrate = '1Mbit/s'\ndelay = '1ms'\n", 1e6, 1e6, RTT),
    ("a gigabit", "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n", 1e9, 1e9, RTT),
    ("far away", "[[hop]]\nrate = '10Mbit/s'\ndelay = '150ms'\n", 10e6, 10e6, Span::from_millis(300)),
];

#[test]
fn a_short_limit_is_kept_and_costs_no_honesty() {
    let mut failed = Vec::new();
    for (what, text, capacity, available, rtt) in SHORT {
        for seconds in [2, 5] {
            for name in METHODS.into_iter().chain(["maximum-c"]) {
                let host = Instrument { time_limit: Span::from_secs(seconds), rtt, ..instrument() };
                let known = Interval { estimate: capacity, lo: capacity, hi: capacity, confidence: 0.95 };
                let mut method: Box<dyn Estimator> = match name {
                    "spruce" => Box::new(Spruce::new(&host, known, 1)),
                    _ => method(name, &host),
                };
                let outcome = estimate(&mut path(text, noise()), method.as_mut(), rtt);
                let case = format!("{what}, {seconds} s, {name}");
                if !outcome.done || outcome.took > host.time_limit + OVERRUN {
                    failed.push(format!("{case}: {} {}", outcome.done, outcome.took));
                }
                // On these two paths a volley takes so long that methods of many volleys may have
                // no answer in time.
                let is_slow = ["a megabit", "far away"].contains(&what);
                let may_be_silent = is_slow && ["pathrate", "chirp", "spruce"].contains(&name);
                if outcome.answer.is_none() && !may_be_silent {
                    failed.push(format!("{case}: no answer"));
                }
                let truth =
                    if ["bulk", "pathrate", "capacity"].contains(&name) { capacity } else { available };
                let is_maximum = name.starts_with("maximum");
                let lie = if is_maximum { exceeds(&outcome, capacity) } else { nonsense(&outcome, truth) };
                failed.extend(lie.map(|lie| format!("{case}: {lie}")));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What waits in a queue when the last packet has left must still come.
const OVERRUN: Span = Span::from_millis(500);
