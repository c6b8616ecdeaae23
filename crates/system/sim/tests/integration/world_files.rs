//! `capacity` and `available`, as the commands run them, on paths of scenarios/world whose packets
//! are lost, overtaken, doubled, gathered or sent another way: how often is a figure inside its own
//! interval, flagged, or wrong?
//!
//! The truth of a bucket with more credit than was spent is the rate of its link, and that of a
//! fair queue the share of the probing flow: what the path had for this flow while it was measured.
//! docs/methods/first-trains.md has the table.

use std::fmt::Write as _;

use netaware_path::{Bound, Estimate, Flag, Instrument, NoFigure, RateMethod};
use netaware_sim::{Concluded, HostNoise, Scenario, Side, VolleyPath, conclude};
use netaware_units::Span;

const METHODS: [(&str, RateMethod); 2] =
    [("capacity", RateMethod::Capacity), ("available", RateMethod::Available)];

/// A file, the side that sends, the round trip, ms, and what is true, Mbit/s.
type Path = (&'static str, Side, i64, f64);

#[rustfmt::skip]
const PATHS: [Path; 30] = [
    ("loss-1-20ms", Side::A, 20, 20.0), ("loss-1-120ms", Side::A, 120, 20.0),
    ("loss-3-20ms", Side::A, 20, 20.0), ("loss-3-120ms", Side::A, 120, 20.0),
    ("loss-10-20ms", Side::A, 20, 20.0), ("loss-10-120ms", Side::A, 120, 20.0),
    ("reordering-20", Side::A, 20, 20.0), ("duplicates", Side::A, 20, 20.0),
    ("wifi-aggregation", Side::A, 6, 100.0), ("wifi-aggregation", Side::B, 6, 100.0),
    ("wifi-bursts", Side::A, 10, 40.0), ("wifi-bursts", Side::B, 10, 40.0),
    ("lte", Side::A, 40, 12.0), ("lte", Side::B, 40, 60.0),
    ("5g", Side::A, 25, 40.0), ("5g", Side::B, 25, 150.0),
    ("lte-handover", Side::A, 50, 10.0), ("lte-handover", Side::B, 50, 40.0),
    ("low-orbit", Side::A, 40, 15.0), ("low-orbit", Side::B, 40, 100.0),
    ("route-change-longer", Side::A, 40, 20.0), ("route-change-shorter", Side::A, 120, 20.0),
    ("power-boost", Side::A, 20, 100.0), ("policer-large-credit", Side::A, 20, 200.0),
    ("policer-small-credit", Side::A, 20, 20.0), ("udp-limited-2m", Side::A, 20, 2.0),
    ("fair-queueing", Side::B, 30, 10.0), ("fair-queueing", Side::A, 30, 20.0),
    ("adsl", Side::A, 40, 1.5 / 1.532), ("geostationary", Side::A, 600, 3.0),
];

fn scenario(name: &str) -> Scenario {
    let file = format!("{}/../../../scenarios/world/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn run(scenario: &Scenario, from: Side, millis: i64, method: RateMethod, seed: u64) -> Concluded {
    let (send_gap, send_error, receive_error) = (Span::from_micros(2), Span(300), Span(500));
    let rtt = Span::from_millis(millis);
    let instrument = Instrument {
        largest: 1500,
        smallest: 200,
        rtt,
        send_gap,
        send_error,
        receive_error,
        largest_burst: 200_000,
        max_load: 0.1,
        time_limit: Span::from_secs(30),
        carried: None,
    };
    let noise = HostNoise { send_gap, send_error, receive_error, ..HostNoise::default() };
    let mut path = VolleyPath::new(scenario, from, seed, noise);
    conclude(&mut path, &mut method.careful(&instrument, seed), rtt, |_, _| {})
}

/// How figures fared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Fared {
    held: usize,
    /// Outside of the interval by less than a fifth of the truth, and not flagged.
    near: usize,
    flagged: usize,
    /// There is a reason instead of a figure.
    missing: usize,
    wrong: usize,
}

fn holds(answer: &Estimate, truth: f64) -> bool {
    match answer.bound {
        Bound::None => answer.rate.contains(truth),
        Bound::AtLeast => answer.rate.lo <= truth * 1.01,
        Bound::AtMost => answer.rate.hi >= truth * 0.99,
    }
}

fn is_flagged(answer: &Estimate) -> bool {
    answer.flags.iter().any(|flag| !matches!(flag, Flag::Coalescing { .. }))
}

impl Fared {
    /// One more run. `truths` are what may be true of the path, bit/s.
    fn count(&mut self, ended: &Concluded, truths: &[f64]) {
        let near = |answer: &Estimate, truth: &f64| (answer.rate.estimate / truth - 1.0).abs() <= 0.2;
        let of = match &ended.conclusion {
            Ok(answer) if truths.iter().any(|truth| holds(answer, *truth)) => &mut self.held,
            Ok(answer) if is_flagged(answer) => &mut self.flagged,
            Ok(answer) if truths.iter().any(|truth| near(answer, truth)) => &mut self.near,
            Err(NoFigure::Stopped | NoFigure::NotSent | NoFigure::NothingCame { .. }) | Ok(_) => {
                &mut self.wrong
            }
            Err(_) => &mut self.missing,
        };
        *of += 1;
    }
}

/// What of `seeds` runs of each path and method was wrong; prints how the others fared.
fn wrong(seeds: u64) -> String {
    let mut wrong = String::new();
    for (name, from, millis, truth) in PATHS {
        let scenario = scenario(name);
        for (called, method) in METHODS {
            let mut fared = Fared::default();
            for seed in 0..seeds {
                let ended = run(&scenario, from, millis, method, seed);
                let before = fared.wrong;
                fared.count(&ended, &[truth * 1e6]);
                if fared.wrong > before {
                    let _ =
                        writeln!(wrong, "{name}, {from:?}, {called}, seed {seed}: {:?}", ended.conclusion);
                }
            }
            let Fared { held, near, flagged, missing, wrong } = fared;
            println!("| `{name}` {from:?} | {called} | {held} | {near} | {flagged} | {missing} | {wrong} |");
        }
    }
    wrong
}

#[test]
fn a_figure_of_a_path_of_the_world_is_not_wrong_without_a_flag() {
    let wrong = wrong(2);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
#[ignore = "long: 30 s, thirty runs of each path"]
fn a_figure_of_a_path_of_the_world_is_not_wrong_without_a_flag_in_thirty_runs() {
    let wrong = wrong(30);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_path_that_changes_in_the_middle_is_flagged_or_does_not_make_a_figure_wrong() {
    let hop = |what: &str| format!("about = 'it changes'\n[[hop]]\nqueue = {{ time = '100ms' }}\n{what}");
    let steps = |what: &str, of: [&str; 2], millis: u32| {
        format!(
            "{what} = [{{ at = '0s', value = '{}' }}, {{ at = '{millis}ms', value = '{}' }}]\n",
            of[0], of[1]
        )
    };
    let mut found = String::new();
    let mut changes = 0;
    for millis in [700, 1500, 2500] {
        for (text, truths) in [
            (hop(&format!("rate = '20Mbit/s'\n{}", steps("delay", ["20ms", "60ms"], millis))), [20e6, 20e6]),
            (hop(&format!("rate = '20Mbit/s'\n{}", steps("delay", ["60ms", "20ms"], millis))), [20e6, 20e6]),
            (
                hop(&format!("delay = '20ms'\n{}", steps("rate", ["20Mbit/s", "5Mbit/s"], millis))),
                [20e6, 5e6],
            ),
            (
                hop(&format!("delay = '20ms'\n{}", steps("rate", ["5Mbit/s", "20Mbit/s"], millis))),
                [20e6, 5e6],
            ),
        ] {
            let scenario = Scenario::parse(&text).unwrap();
            for (called, method) in METHODS {
                for seed in 0..3 {
                    let ended = run(&scenario, Side::A, 80, method, seed);
                    let mut fared = Fared::default();
                    fared.count(&ended, &truths);
                    changes += usize::from(match &ended.conclusion {
                        Ok(answer) => answer.flags.contains(&Flag::PathChanged),
                        Err(why) => *why == NoFigure::PathChanged,
                    });
                    if fared.wrong > 0 {
                        let _ = writeln!(found, "{text}{called}, {seed}: {:?}", ended.conclusion);
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
    assert!(changes > 0, "no change was seen at all");
    println!("{changes} of 72 saw the change");
}
