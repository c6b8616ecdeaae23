//! Each `--method` of `capacity`, `available` and `hops`, and each direction, by name through the
//! program: over one lab path whose truth is arithmetic and differs up and down.
//!
//! In every run the methods are the ones that were asked for, measure what was asked for, end in
//! their time, and no figure is wrong without saying so. How near figures are to the truth is held
//! on virtual time (`crates/system/sim/tests/integration/{capacity,available,hops}.rs`), and in
//! real time by [`accuracy`]. Needs root: `cargo xtask netns`.

mod accuracy;

use netaware_lab::Report;
use netaware_netns::permitted;
use netaware_record::{Direction, HopsResult, IpVersion, PathMetric, PathRate, Record};
use netaware_testkit::figures::{has_a_busy_host, judge, misleads};
use netaware_testkit::{inconclusive, lab};
use netaware_units::Span;

const BOTH: &[IpVersion] = &[IpVersion::V4, IpVersion::V6];
const V4: &[IpVersion] = &[IpVersion::V4];
const V6: &[IpVersion] = &[IpVersion::V6];
/// What opening and ending take beside the time asked for.
const BESIDE: Span = Span::from_secs(4);
/// A train lasts milliseconds: packets later than this would show in its rate.
const LATE: Span = Span::from_micros(500);

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

/// A figure that was asked for.
#[derive(Clone, Copy)]
struct Want {
    direction: Direction,
    metric: PathMetric,
    method: &'static str,
    /// bit/s.
    truth: f64,
}

const UP: Direction = Direction::Forward;
const DOWN: Direction = Direction::Reverse;

fn capacity(method: &'static str, direction: Direction) -> Want {
    let truth = if direction == UP { 40e6 } else { 20e6 };
    Want { direction, metric: PathMetric::Capacity, method, truth }
}

fn available(method: &'static str, direction: Direction) -> Want {
    let truth = if direction == UP { 24e6 } else { 15e6 };
    Want { direction, metric: PathMetric::Available, method, truth }
}

fn maximum(direction: Direction) -> Want {
    let truth = if direction == UP { 40e6 } else { 20e6 };
    Want { direction, metric: PathMetric::Maximum, method: "maximum-capacity", truth }
}

/// Runs once. Returns each figure beside what was asked for; that they belong together, and that
/// time was kept, is asserted.
fn figures(
    path: &str,
    arguments: &[&str],
    seconds: i64,
    versions: &[IpVersion],
    wanted: &[Want],
) -> (Record, Vec<(PathRate, Want)>, Report) {
    let (record, took, report) = run(path, arguments, seconds, versions, Command::WithResponder);
    let turns = i64::try_from(versions.len() * wanted.len()).unwrap();
    assert!(took < Span::from_secs(seconds * turns) + BESIDE, "{arguments:?}: {took}");
    let measured: Vec<IpVersion> = record.versions.iter().map(|it| it.version).collect();
    assert_eq!(measured, versions, "{arguments:?}");
    let mut figures = Vec::new();
    for version in &record.versions {
        assert_eq!(version.path_rates.len(), wanted.len(), "{arguments:?}: {record:#?}");
        for (found, want) in version.path_rates.iter().zip(wanted) {
            let (of, is) = (&found.pedigree, version.version);
            assert_eq!(
                (of.version, of.direction, found.metric),
                (is, want.direction, want.metric),
                "{found:#?}"
            );
            // Nothing was said by no method.
            let method = if found.rate.is_some() { want.method } else { "none" };
            assert_eq!(of.method, method, "{arguments:?}: {found:#?}");
            assert!(found.received <= found.packets && found.packets > 0, "{found:#?}");
            println!("{}", text(found, want));
            figures.push((found.clone(), *want));
        }
    }
    (record, figures, report)
}

fn text(found: &PathRate, want: &Want) -> String {
    format!(
        "{} {} by {}: {:?} {:?}, truth {:.4e}, {} in {} {:?}",
        found.pedigree.version.name(),
        want.direction.name(),
        want.method,
        found.rate,
        found.bound,
        want.truth,
        found.bytes,
        found.took,
        found.flags
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    WithResponder,
    Alone,
}

fn run(
    path: &str,
    arguments: &[&str],
    seconds: i64,
    versions: &[IpVersion],
    how: Command,
) -> (Record, Span, Report) {
    let lab = lab::up(path, 1);
    let responder = (how == Command::WithResponder).then(|| lab::responder(&lab, &[]));
    let seconds = format!("{seconds}s");
    let mut others = vec!["b", "--time", &seconds, "--no-save", "--format", "json"];
    match versions {
        [IpVersion::V4] => others.push("-4"),
        [IpVersion::V6] => others.push("-6"),
        _ => {}
    }
    let ended = lab::prober(&lab, &[arguments, &others].concat()).finish_within(Span::from_secs(120));
    drop(responder);
    // If nothing could be measured, the program says so and exits with 2.
    assert!(matches!(ended.code, Some(0 | 2)), "{ended:?}");
    (ended.record(), ended.took, lab.end().unwrap())
}

/// One short run, in which something is said and nothing misleads.
fn measures(path: &str, arguments: &[&str], seconds: i64, versions: &[IpVersion], wanted: &[Want]) -> Record {
    let (record, figures, report) = figures(path, arguments, seconds, versions, wanted);
    let mut misleading = Vec::new();
    for (found, want) in &figures {
        let Some(rate) = &found.rate else { continue };
        let why = misleads(rate, found.bound, &found.flags, want.truth);
        misleading.extend(why.map(|why| format!("{arguments:?}, {}: {why}", text(found, want))));
    }
    if figures.iter().all(|(found, _)| found.rate.is_none()) {
        let is_excused = figures.iter().all(|(found, _)| has_a_busy_host(found));
        assert!(is_excused, "{arguments:?}: nothing was said: {record:#?}");
        inconclusive(format!("{arguments:?}: the host was too busy for a figure"));
        return record;
    }
    judge(&misleading, &report, LATE);
    record
}

#[test]
fn capacity_by_each_method_and_in_both_directions() {
    if !permitted() {
        return;
    }
    let both = [capacity("bulk", UP), capacity("bulk", DOWN)];
    measures(IDLE, &["capacity", "--method", "bulk", "--bidir"], 2, BOTH, &both);
    measures(IDLE, &["capacity", "--method", "pathrate"], 4, V6, &[capacity("pathrate", UP)]);
}

#[test]
fn available_bandwidth_by_both_slow_methods() {
    if !permitted() {
        return;
    }
    let loaded = loaded();
    let both = [available("curve", UP), available("curve", DOWN)];
    measures(&loaded, &["available", "--method", "curve", "--bidir"], 3, V6, &both);
    measures(&loaded, &["available", "--method", "slops", "-R"], 5, V4, &[available("slops", DOWN)]);
}

#[test]
fn available_bandwidth_by_pairs_and_by_chirps() {
    if !permitted() {
        return;
    }
    let loaded = loaded();
    let spruce = ["available", "--method", "spruce", "--link-rate", "40Mbit/s"];
    measures(&loaded, &spruce, 4, V6, &[available("spruce", UP)]);
    measures(&loaded, &["available", "--method", "chirp"], 4, V4, &[available("chirp", UP)]);
}

#[test]
fn the_maximum_by_both_searches() {
    if !permitted() {
        return;
    }
    for (method, way, search, versions) in
        [("maximum", UP, "maximum-b", V4), ("maximum-c", DOWN, "maximum-c", V6)]
    {
        let mut arguments = vec!["available", "--method", method, "--max-load", "100%"];
        arguments.extend((way == DOWN).then_some("-R"));
        let record = measures(IDLE, &arguments, 3, versions, &[maximum(way)]);
        // What both searches call themselves is what they measure; which one ran stands among the
        // options.
        assert_eq!(record.request.options.get("method").map(String::as_str), Some(search));
    }
}

/// Mbit/s of the path for [`tailgated`].
const THREE: [u32; 3] = [100, 10, 50];

/// Runs tailgating over both versions. That all hops are there, and measured in no other way, is
/// asserted.
fn tailgated(seconds: i64) -> (Vec<(IpVersion, HopsResult)>, Report) {
    let path: String = THREE.map(|rate| format!("[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '1ms'\n")).concat();
    let arguments = ["hops", "--method", "tailgating", "--no-trains"];
    let (record, took, report) = run(&path, &arguments, seconds, BOTH, Command::Alone);
    assert!(took < Span::from_secs(seconds) + BESIDE, "{took}");
    let versions = record.versions.iter().map(|it| (it.version, it.hops.clone().unwrap()));
    let found: Vec<(IpVersion, HopsResult)> = versions.collect();
    assert_eq!(found.iter().map(|(version, _)| *version).collect::<Vec<_>>(), BOTH);
    for (version, hops) in &found {
        assert!(hops.reached && hops.hops.len() == THREE.len(), "{}: {hops:#?}", version.name());
        for (hop, capacity) in hops.hops.iter().filter_map(|hop| Some((hop, hop.capacity.as_ref()?))) {
            assert_eq!(capacity.way, "tailgating", "{hop:#?}");
            println!("{} hop {}: {:?} {:?}", version.name(), hop.ttl, capacity.rate, hop.flags);
        }
    }
    (found, report)
}

#[test]
fn hops_by_tailgating() {
    if !permitted() {
        return;
    }
    let (found, report) = tailgated(6);
    let mut misleading = Vec::new();
    for (version, hops) in found {
        assert!(hops.hops.iter().any(|hop| hop.capacity.is_some()), "no rate at all: {hops:#?}");
        // The narrow link in the middle.
        let Some(capacity) = &hops.hops[1].capacity else { continue };
        let doubts = [&hops.hops[1].flags[..], &hops.flags].concat();
        let why = misleads(&capacity.rate, capacity.bound, &doubts, 10e6);
        misleading.extend(why.map(|why| format!("{}: {why}", version.name())));
    }
    judge(&misleading, &report, LATE);
}
