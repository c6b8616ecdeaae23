//! What engines say of paths that come with netaware, digit by digit, as it is written down in
//! `snapshots`.
//!
//! The other tests ask whether a figure is near enough to the truth. These ask whether it has
//! changed, so that a change that nobody meant is seen. Who means it runs the tests with
//! `INSTA_UPDATE=always`, reads the difference and commits it with the change.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use netaware_path::hops::{CapacityWay, HopsFinding, HopsPlan};
use netaware_path::reach::{ReachFinding, TcpTries};
use netaware_record::IpVersion;
use netaware_sim::accuracy::Method as Estimators;
use netaware_sim::cells::{Cell, Shape, Traffic};
use netaware_sim::hops::{HopPath, TcpPort, hops};
use netaware_sim::methods::{LatencyAsk, Method, Pacing, StreamAsk};
use netaware_sim::reach::{TcpFound, reach_with_tcp};
use netaware_sim::{Bank, Scenario, Side};
use netaware_stats::patience::Waiting;
use netaware_units::{BitRate, Span};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// Each does something that the others do not.
const PATHS: [&str; 16] = [
    "asymmetric",
    "coalescing-50us",
    "copies-and-bit-errors",
    "five-hops",
    "hidden-switch",
    "idle-10m",
    "ipv6-black-hole",
    "load-square",
    "loss-5",
    "lte",
    "parallel-links",
    "policer",
    "reordering",
    "route-change",
    "skewed-clocks",
    "small-mtu",
];

fn scenario(name: &str) -> Scenario {
    let file = format!("{}/../../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn all_scenarios() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let paths = files.filter(|file| file.is_file());
    paths.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

/// What `of` says of each path, over both versions.
fn everywhere(of: impl Fn(&Scenario, IpVersion) -> String) -> String {
    let mut text = String::new();
    for name in PATHS {
        let scenario = scenario(name);
        for version in VERSIONS {
            let _ = writeln!(text, "{name}, {}\n{}", version.name(), of(&scenario, version));
        }
    }
    text
}

fn hops_text(found: &HopsFinding) -> String {
    let HopsFinding { hops, reached, choke_point, trains, largest, packets, bytes, took, flags, .. } = found;
    let mut text = format!(
        "    reached {reached}, choke point {choke_point:?}, {trains} trains, {largest} bytes, {packets} packets, {bytes} bytes, \
         {took:?}, {flags:.5?}\n"
    );
    for hop in hops {
        let _ = writeln!(text, "    {hop:.5?}");
    }
    text
}

fn hops_of(scenario: &Scenario, version: IpVersion, change: impl Fn(&mut HopsPlan)) -> String {
    let mut plan = netaware_sim::hops::usual_plan(version, Span::from_secs(8), 5);
    change(&mut plan);
    hops_text(&hops(&mut HopPath::new(scenario, version, 5), plan))
}

#[test]
fn hops_say_what_they_said() {
    insta::assert_snapshot!(
        "hops_as_usual",
        everywhere(|scenario, version| hops_of(scenario, version, |_| {}))
    );
}

#[test]
fn hops_of_other_plans_say_what_they_said() {
    type Change = fn(&mut HopsPlan);
    let plans: [(&str, Change); 7] = [
        ("direct", |plan| plan.way = CapacityWay::Direct),
        ("tailgating", |plan| plan.way = CapacityWay::Tailgating),
        ("no echoes and no trains", |plan| (plan.echo, plan.trains) = (false, false)),
        ("ten delays a hop", |plan| plan.per_hop = Some(10)),
        ("six sizes", |plan| plan.sizes = vec![60, 300, 600, 900, 1200, 1400]),
        ("stamps that err, a host that is slow", |plan| {
            (plan.stamp_error, plan.send_gap) = (Span::from_micros(30), Span::from_micros(15));
        }),
        ("two seconds, three hops", |plan| (plan.time, plan.max_hops) = (Span::from_secs(2), 3)),
    ];
    let mut text = String::new();
    for (name, change) in plans {
        for path in ["five-hops", "hidden-switch", "loaded-100m"] {
            let _ = writeln!(text, "{name}, {path}\n{}", hops_of(&scenario(path), IpVersion::V4, change));
        }
    }
    insta::assert_snapshot!("hops_of_other_plans", text);
}

fn reach_text(found: &ReachFinding) -> String {
    let ReachFinding { echo, udp, timestamps, clock, by_direction, capacity, lasting, .. } = found;
    let mut text = String::new();
    for (name, answers) in [("echo", echo), ("udp", udp), ("timestamps", timestamps)] {
        let sum: Span = answers.rtts.iter().copied().sum();
        let _ = writeln!(
            text,
            "    {name}: {} of {}, {} round trips of {sum:?} together, said {:?}, others {:?}, {} bytes",
            answers.answered,
            answers.asked,
            answers.rtts.len(),
            answers.said,
            answers.others,
            answers.bytes
        );
    }
    let _ = writeln!(text, "    {clock:.5?}\n    {by_direction:?}\n    {capacity:.5?}\n    {lasting:.5?}");
    let ReachFinding { host_limited, pairs, batched, udp_rationed, .. } = found;
    let _ = writeln!(
        text,
        "    host limited {host_limited}, {pairs} pairs, batched {batched}, rationed {udp_rationed}"
    );
    text
}

#[test]
fn reach_says_what_it_said() {
    let text = everywhere(|scenario, version| {
        let mut plan = netaware_sim::reach::usual_plan(version, Span::from_secs(12));
        plan.stamp_error = Span::from_micros(1);
        let (found, TcpFound { tries, lost, .. }) =
            reach_with_tcp(&mut HopPath::new(scenario, version, 5), plan, TcpPort::Open);
        let TcpTries { asked, accepted, refused, unreachable, rtts, .. } = tries;
        let sum: Span = rtts.iter().copied().sum();
        format!(
            "{}    TCP: {accepted} of {asked}, {refused} refused, {unreachable} unreachable, {lost} lost, {sum:?} together\n",
            reach_text(&found)
        )
    });
    insta::assert_snapshot!("reach", text);
}

fn found_by(method: &Method, scenario: &Scenario, version: IpVersion) -> String {
    let found = netaware_sim::methods::run(scenario, 5, version, method).unwrap();
    let mut text = String::new();
    for figure in &found.figures {
        let _ = writeln!(text, "    {}: {:.5?}, in truth {:.5?}", figure.name, figure.estimate, figure.truth);
    }
    let _ = writeln!(text, "    {:.5?}\n    {:.5?}\n    {:.5?}", found.truth, found.forward, found.reverse);
    let _ = writeln!(text, "    {}", serde_json::to_string(&found.result).unwrap());
    text
}

#[test]
fn a_train_of_echoes_says_what_it_said() {
    let ask = LatencyAsk {
        count: Some(400),
        time: None,
        pacing: Pacing::Even(Span::from_millis(5)),
        length: 200,
        response: 900,
        patience: Span::from_millis(500),
        waiting: Waiting::Exactly,
    };
    let text = everywhere(|scenario, version| found_by(&Method::Latency(ask), scenario, version));
    insta::assert_snapshot!("latency", text);
}

/// Streams through all scenarios from both sides, for as long as any of them takes to change.
#[test]
fn streams_meet_what_they_met() {
    let mut text = String::new();
    for name in all_scenarios() {
        let scenario = scenario(&name);
        // Millions of cross packets a second cost more than they tell.
        let (count, millis) = if name == "loaded-10g" { (300, 1) } else { (1500, 20) };
        for (from, version) in [(Side::A, IpVersion::V4), (Side::B, IpVersion::V6)] {
            let ask = StreamAsk { from, count, spacing: Span::from_millis(millis), length: 1100 };
            let said = found_by(&Method::Stream(ask), &scenario, version);
            let _ = writeln!(text, "{name}, {} from {from:?}\n{said}", version.name());
        }
    }
    insta::assert_snapshot!("streams", text);
}

#[test]
fn the_search_for_the_path_mtu_says_what_it_said() {
    let text = everywhere(|scenario, version| found_by(&Method::PathMtu, scenario, version));
    insta::assert_snapshot!("path_mtu", text);
}

#[test]
fn estimators_with_a_test_of_their_figure_say_what_they_said() {
    let cell = |rate, load, traffic, micros, shape| Cell {
        rate: BitRate(rate),
        load,
        traffic,
        coalescing: (micros > 0).then(|| Span::from_micros(micros)),
        shape,
    };
    let cells = [
        cell(10_000_000, 50, Traffic::Poisson, 0, Shape::Three),
        cell(100_000_000, 50, Traffic::Pareto, 50, Shape::NarrowNotTight),
        cell(1_000_000_000, 20, Traffic::Cbr, 250, Shape::One),
    ];
    let mut text = String::new();
    for cell in cells {
        let mut bank = Bank::default();
        for method in Estimators::ALL {
            let (ended, truth) = method.run(&cell, 5, &mut bank);
            let _ = writeln!(text, "{cell}, {method}, in truth {truth:.1}\n    {ended:.5?}");
        }
    }
    insta::assert_snapshot!("estimators", text);
}
