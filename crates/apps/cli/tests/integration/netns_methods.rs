//! Each `--method` of `capacity`, `available` and `hops`, and each direction, by name through the program: over one lab path whose
//! truth is arithmetic and differs up and down, both IP versions.
//!
//! How accurate methods are is for the simulator to tell; here they must be the ones that were asked for, measure what was asked for,
//! and end in their time, in every run. A figure must hold in one of three, since this host may lose its cores for milliseconds. Needs root: `cargo xtask netns`.

use netaware_netns::{in_one_of, permitted};
use netaware_record::{Direction, IpVersion, PathMetric, PathRate, RateBound, Record};
use netaware_testkit::lab;
use netaware_units::Span;

const RUNS: usize = 3;
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// What opening and ending take beside the time asked for.
const BESIDE: Span = Span::from_secs(4);

/// 40 Mbit/s up and 20 down, and nobody else.
const IDLE: &str = "[[hop]]\nrate = '40Mbit/s'\ndelay = '2ms'\nreverse = { rate = '20Mbit/s' }\n";

/// The same with 16 Mbit/s of others up and 5 down: 24 and 15 are left.
fn loaded() -> String {
    let cross = |from: &str, rate: u32| {
        format!(
            "[[cross]]\nenter = 0\nfrom = '{from}'\npattern = 'constant'\nrate = '{rate}Mbit/s'\nsizes = 1000\n"
        )
    };
    format!("{IDLE}{}{}", cross("a", 16), cross("b", 5))
}

/// A figure that has to come out.
#[derive(Clone, Copy)]
struct Want {
    direction: Direction,
    metric: PathMetric,
    method: &'static str,
    /// bit/s.
    truth: f64,
    /// Share of it.
    tolerance: f64,
}

const UP: Direction = Direction::Forward;
const DOWN: Direction = Direction::Reverse;

/// Runs until each version has had each figure, in one run or another, and nothing else.
fn measures(path: &str, arguments: &[&str], seconds: i64, wanted: &[Want]) {
    let mut missing: Vec<(IpVersion, Want)> =
        VERSIONS.into_iter().flat_map(|version| wanted.iter().map(move |want| (version, *want))).collect();
    let mut seeds = 0..;
    in_one_of(RUNS, || {
        let seed = seeds.next().unwrap_or_default();
        let (record, took) = run(path, seed, arguments, seconds, Command::WithResponder);
        let turns = i64::try_from(VERSIONS.len() * wanted.len()).unwrap();
        assert!(took < Span::from_secs(seconds * turns) + BESIDE, "{arguments:?}: {took}");
        for version in &record.versions {
            let found: Vec<_> =
                version.path_rates.iter().map(|it| (it.metric, it.pedigree.direction)).collect();
            let asked: Vec<_> = wanted.iter().map(|want| (want.metric, want.direction)).collect();
            assert_eq!(found, asked, "{arguments:?}: {record:#?}");
        }
        let mut far = Vec::new();
        missing.retain(|(version, want)| near(&record, *version, want).map_err(|why| far.push(why)).is_err());
        if missing.is_empty() { Ok(()) } else { Err(format!("{arguments:?}: {}", far.join("\n"))) }
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    WithResponder,
    Alone,
}

fn run(path: &str, seed: u64, arguments: &[&str], seconds: i64, how: Command) -> (Record, Span) {
    let lab = lab::up(path, seed);
    let responder = (how == Command::WithResponder).then(|| lab::responder(&lab, &[]));
    let others = ["b", "--time", &format!("{seconds}s"), "--no-save", "--format", "json"];
    let ended =
        lab::prober(&lab, &[arguments, &others].concat()).finish_within(Span::from_secs(120)).exits_with(0);
    drop(responder);
    lab.end().unwrap();
    (ended.record(), ended.took)
}

fn near(record: &Record, version: IpVersion, want: &Want) -> Result<(), String> {
    let of = |it: &&PathRate| it.pedigree.direction == want.direction;
    let result = record.versions.iter().find(|it| it.version == version);
    let found = result.and_then(|it| it.path_rates.iter().find(of)).ok_or_else(|| format!("{record:#?}"))?;
    let rate = found.rate.as_ref().ok_or_else(|| format!("nothing was said: {found:#?}"))?;
    let error = rate.estimate / want.truth - 1.0;
    let told = format!(
        "{} {} by {}: {:.3} Mbit/s [{:.3} .. {:.3}] {:?}, {:+.2} % off {:.3}, {} in {} {:?}",
        version.name(),
        want.direction.name(),
        found.pedigree.method,
        rate.estimate / 1e6,
        rate.lo / 1e6,
        rate.hi / 1e6,
        found.bound,
        error * 100.0,
        want.truth / 1e6,
        found.bytes,
        found.took,
        found.flags
    );
    println!("{told}");
    assert_eq!((found.pedigree.method.as_str(), found.pedigree.version), (want.method, version), "{told}");
    let holds = error.abs() <= want.tolerance && found.bound == RateBound::None;
    if holds { Ok(()) } else { Err(told) }
}

#[test]
fn capacity_by_each_method_and_in_both_directions() {
    if !permitted() {
        return;
    }
    let want = |method, direction, truth| Want {
        direction,
        metric: PathMetric::Capacity,
        method,
        truth,
        tolerance: 0.03,
    };
    let both = [want("bulk", UP, 40e6), want("bulk", DOWN, 20e6)];
    measures(IDLE, &["capacity", "--method", "bulk", "--bidir"], 3, &both);
    measures(IDLE, &["capacity", "--method", "pathrate"], 7, &[want("pathrate", UP, 40e6)]);
}

#[test]
fn available_bandwidth_by_each_method_and_in_both_directions() {
    if !permitted() {
        return;
    }
    let want = |method, direction, truth| Want {
        direction,
        metric: PathMetric::Available,
        method,
        truth,
        tolerance: 0.1,
    };
    let loaded = loaded();
    let both = [want("curve", UP, 24e6), want("curve", DOWN, 15e6)];
    measures(&loaded, &["available", "--method", "curve", "--bidir"], 4, &both);
    measures(&loaded, &["available", "--method", "slops", "-R"], 6, &[want("slops", DOWN, 15e6)]);
    let spruce = ["available", "--method", "spruce", "--link-rate", "40Mbit/s"];
    measures(&loaded, &spruce, 6, &[want("spruce", UP, 24e6)]);
    measures(&loaded, &["available", "--method", "chirp"], 5, &[want("chirp", UP, 24e6)]);
}

#[test]
fn the_maximum_by_both_searches() {
    if !permitted() {
        return;
    }
    let want = |direction, truth| Want {
        direction,
        metric: PathMetric::Maximum,
        method: "maximum-capacity",
        truth,
        tolerance: 0.05,
    };
    for (method, way, search) in [("maximum", UP, "maximum-b"), ("maximum-c", DOWN, "maximum-c")] {
        let mut arguments = vec!["available", "--method", method, "--max-load", "100%"];
        arguments.extend((way == DOWN).then_some("-R"));
        // The first congestion takes it back by thirty rows; it has to climb again and then be there for a sub-interval.
        measures(IDLE, &arguments, 7, &[want(way, if way == UP { 40e6 } else { 20e6 })]);
        // What both searches call themselves is what they measure; which one ran stands among the options.
        let (record, _) = run(IDLE, 9, &[&arguments[..], &["-4"]].concat(), 1, Command::WithResponder);
        assert_eq!(record.request.options.get("method").map(String::as_str), Some(search));
    }
}

#[test]
fn hops_by_tailgating() {
    if !permitted() {
        return;
    }
    let path: String =
        ["100", "10", "50"].map(|rate| format!("[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '1ms'\n")).concat();
    let arguments = ["hops", "--method", "tailgating", "--no-trains"];
    let mut missing = VERSIONS.to_vec();
    let mut seeds = 0..;
    in_one_of(RUNS, || {
        let seed = seeds.next().unwrap_or_default();
        let (record, took) = run(&path, seed, &arguments, 14, Command::Alone);
        assert!(took < Span::from_secs(14) + BESIDE, "{took}");
        let mut far = Vec::new();
        missing.retain(|version| tailgated(&record, *version).map_err(|why| far.push(why)).is_err());
        if missing.is_empty() { Ok(()) } else { Err(far.join("\n")) }
    });
}

/// The narrow link in the middle, and not a hop in another way.
fn tailgated(record: &Record, version: IpVersion) -> Result<(), String> {
    let found = record.versions.iter().find(|it| it.version == version).and_then(|it| it.hops.as_ref());
    let found = found.ok_or_else(|| format!("no {}: {record:#?}", version.name()))?;
    let capacities: Vec<_> = found.hops.iter().filter_map(|hop| hop.capacity.as_ref()).collect();
    for (hop, capacity) in found.hops.iter().zip(&capacities) {
        let (rate, way) = (&capacity.rate, &capacity.way);
        println!(
            "{} hop {} by {way}: {:.3} Mbit/s {:?}",
            version.name(),
            hop.ttl,
            rate.estimate / 1e6,
            hop.flags
        );
    }
    let second = found.hops.get(1).and_then(|hop| hop.capacity.as_ref());
    let is_near = second.is_some_and(|it| (it.rate.estimate / 10e6 - 1.0).abs() < 0.1);
    assert!(capacities.iter().all(|it| it.way == "tailgating"), "{found:#?}");
    if is_near { Ok(()) } else { Err(format!("{found:#?}")) }
}
