//! What each method says of twenty paths, digit by digit, as it is written down in `snapshots`.
//!
//! The other tests ask whether a figure is near enough to the truth. These ask whether it has
//! changed, so that a change that nobody meant is seen. Who means it runs the tests with
//! `INSTA_UPDATE=always`, reads the difference and commits it with the change.

use std::fmt::Write as _;

use netaware_stats::interval::Interval;
use netaware_units::Span;

use crate::available::fifo::{Hop, Outcome, Path, Traffic, instrument};
use crate::available::{self, Chirp, Curve, Maximum, Search, Slops, Spruce};
use crate::capacity::{self, Bulk, Pathrate, PathrateRules};
use crate::{Estimator, Instrument, Lasting, Metric};

const CAPACITY: f64 = 4e7;

/// A path, and the hosts at its ends.
struct Case {
    name: &'static str,
    path: Path,
    host: Instrument,
}

fn case(name: &'static str, path: Path) -> Case {
    Case { name, path, host: instrument(CAPACITY) }
}

/// A link with cross traffic and something more.
fn link(name: &'static str, load: f64, traffic: Traffic, change: impl FnOnce(&mut Path)) -> Case {
    let mut path = Path::single(CAPACITY, load, traffic, 7);
    change(&mut path);
    case(name, path)
}

/// The same link, measured from other hosts.
fn host(name: &'static str, change: impl FnOnce(&mut Instrument)) -> Case {
    let mut case = link(name, 0.4, Traffic::Poisson, |_| {});
    change(&mut case.host);
    case
}

fn cases() -> Vec<Case> {
    use Traffic::{Even, Poisson};
    let hops = |of: [(f64, f64); 3]| {
        Path::new(of.map(|(capacity, load)| Hop::new(capacity, load, Poisson)).to_vec(), 7)
    };
    vec![
        link("idle", 0.0, Even, |_| {}),
        link("even traffic", 0.5, Even, |_| {}),
        link("random traffic", 0.4, Poisson, |_| {}),
        link("crowded", 0.85, Poisson, |_| {}),
        case("three hops", hops([(1.6e8, 0.4), (CAPACITY, 0.4), (1.6e8, 0.4)])),
        case("the tight link is another", hops([(4e8, 0.0), (CAPACITY, 0.0), (6e7, 0.6)])),
        link("arrivals in batches", 0.4, Even, |path| path.coalescing = 2.5e5),
        link("arrivals in large batches", 0.4, Even, |path| path.coalescing = 4e6),
        link("loss", 0.4, Even, |path| path.loss = 0.02),
        link("much loss", 0.4, Even, |path| path.loss = 0.3),
        link("reordering", 0.4, Even, |path| path.reordering = Some((20, 3e6))),
        link("the sender pauses", 0.4, Even, |path| path.hog = Some((5e7, 4e6))),
        link("another way after a second", 0.4, Even, |path| path.detour = Some((2e9, 2e7))),
        link("more traffic after a second", 0.4, Even, |path| path.swell = Some((2e9, 1.8))),
        link("policer", 0.0, Even, |path| path.policer = Some((1.5e7, 6e4))),
        link("policer with traffic", 0.2, Poisson, |path| path.policer = Some((1.5e7, 2e4))),
        host("a slow sender", |host| host.send_gap = Span::from_micros(700)),
        host("coarse stamps", |host| host.receive_error = Span::from_micros(200)),
        host("little load allowed", |host| host.max_load = 0.01),
        host("a second and a half", |host| host.time_limit = Span::from_millis(1500)),
    ]
}

fn line(name: &str, method: &dyn Estimator, outcome: &Outcome) -> String {
    let Outcome { answer, took, bits, volleys } = outcome;
    let mut line = format!("{name}: {volleys} volleys, {:.0} bytes, {took:.6} s\n", bits / 8.0);
    match answer {
        Some(answer) => {
            let Interval { estimate, lo, hi, confidence } = answer.rate;
            let _ = writeln!(
                line,
                "    {} {estimate:.1} from {lo:.1} to {hi:.1} at {confidence}, {:?}, {} bytes in {} packets, {:?}, {:.4?}",
                answer.method, answer.bound, answer.bytes, answer.packets, answer.took, answer.flags
            );
        }
        None => line.push_str("    nothing\n"),
    }
    if let Some(tight) = method.tight_link() {
        let _ = writeln!(line, "    {tight:.4?}");
    }
    for mode in method.modes() {
        let _ = writeln!(line, "    {mode:.4?}");
    }
    line
}

fn said(method: impl Fn(&Instrument) -> Box<dyn Estimator>) -> String {
    let of = |mut case: Case| {
        let mut method = method(&case.host);
        let outcome = case.path.run(method.as_mut());
        line(case.name, method.as_ref(), &outcome)
    };
    cases().into_iter().map(of).collect()
}

/// The load searches fill the path, or end as soon as they are not allowed to.
fn filling(host: &Instrument) -> Instrument {
    Instrument { max_load: host.max_load * 10.0, ..host.clone() }
}

#[test]
fn bulk_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(Bulk::new(host, 3))));
}

#[test]
fn pathrate_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(Pathrate::new(host, PathrateRules::default(), 3))));
}

#[test]
fn the_automatic_capacity_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(capacity::Automatic::new(host, 3))));
}

#[test]
fn curve_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(Curve::new(host))));
}

#[test]
fn slops_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(Slops::new(host))));
}

#[test]
fn chirp_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(Chirp::new(host))));
}

#[test]
fn spruce_says_what_it_said() {
    let known = Interval { estimate: CAPACITY, lo: CAPACITY * 0.97, hi: CAPACITY * 1.02, confidence: 0.95 };
    insta::assert_snapshot!(said(|host| Box::new(Spruce::new(host, known, 3))));
}

#[test]
fn the_automatic_available_bandwidth_says_what_it_said() {
    insta::assert_snapshot!(said(|host| Box::new(available::Automatic::new(host))));
}

#[test]
fn both_load_searches_say_what_they_said() {
    insta::assert_snapshot!("type_b", said(|host| Box::new(Maximum::new(&filling(host), Search::TypeB))));
    insta::assert_snapshot!("type_c", said(|host| Box::new(Maximum::new(&filling(host), Search::TypeC))));
}

#[test]
fn figures_that_are_put_to_the_test_are_what_they_were() {
    insta::assert_snapshot!(
        "lasting_capacity",
        said(|host| {
            let bulk = |host: &Instrument| Bulk::new(host, 3);
            Box::new(Lasting::new(host, Metric::Capacity, Bulk::LONGEST, bulk))
        })
    );
    insta::assert_snapshot!(
        "lasting_available",
        said(|host| Box::new(Lasting::new(host, Metric::Available, Curve::LONGEST, Curve::new)))
    );
    insta::assert_snapshot!(
        "watching",
        said(|host| {
            let host = Instrument { time_limit: host.time_limit.min(Span::from_secs(15)), ..host.clone() };
            let chirp = Chirp::watching(&host);
            Box::new(Lasting::watching(&host, Metric::Available, Span::from_secs(5), chirp))
        })
    );
}
