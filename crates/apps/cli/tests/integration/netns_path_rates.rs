//! `netaware capacity` and `netaware available` over lab paths of which the truth is arithmetic,
//! both IP versions.
//!
//! Short runs hold what is true in each of them: which figures there are, and that none is wrong
//! without saying so. How near figures are to the truth is held on virtual time
//! (`crates/system/sim/tests/integration/{capacity,available,hostile_paths}.rs`), and in real time
//! by [`accuracy`]. Needs root: `cargo xtask netns`.

mod accuracy;
mod elastic;

use netaware_lab::{Lab, Report, Side};
use netaware_netns::permitted;
use netaware_record::{Direction, IpVersion, PathRate, PathVerdict, Record};
use netaware_testkit::figures::{has_a_busy_host, judge, misleads};
use netaware_testkit::program::{Finished, Program, netaware_path};
use netaware_testkit::{counters, inconclusive, lab};
use netaware_units::Span;

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// A train lasts milliseconds: packets later than this would show in its rate.
const LATE: Span = Span::from_micros(500);

/// 10 Mbit/s, of which constant cross traffic uses 4.
const LOADED: &str = "[[hop]]\nrate = '10Mbit/s'\ndelay = '2ms'\n\
                      [[cross]]\nenter = 0\npattern = 'constant'\nrate = '4Mbit/s'\nsizes = 1000\n";

/// A narrow link of this many Mbit/s between two of 1 Gbit/s.
fn narrow(rate: u32) -> String {
    format!(
        "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '4ms'\n\
         [[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n"
    )
}

fn over(path: &str, arguments: &[&str]) -> (Record, Report) {
    let lab = lab::up(path, 1);
    let responder = lab::responder(&lab, &[]);
    let ended = prober(&lab, arguments).finish_within(Span::from_secs(120));
    drop(responder);
    (recorded(&ended), lab.end().unwrap())
}

/// If nothing could be measured, the program says so and exits with 2.
#[track_caller]
fn recorded(ended: &Finished) -> Record {
    assert!(matches!(ended.code, Some(0 | 2)), "{ended:?}");
    ended.record()
}

fn prober(lab: &Lab, arguments: &[&str]) -> Program {
    lab::prober(lab, &[arguments, &["b", "--format", "json"]].concat())
}

/// The one figure of each version.
#[track_caller]
fn figures(record: &Record) -> [&PathRate; 2] {
    VERSIONS.map(|version| {
        let found = record.versions.iter().find(|it| it.version == version);
        let rates = found.map(|it| &it.path_rates[..]).unwrap_or_default();
        let [rate] = rates else { panic!("no figure of {}: {record:#?}", version.name()) };
        rate
    })
}

/// Whether nothing was said at all, which only a busy host excuses.
#[track_caller]
fn is_silent(found: &[&PathRate]) -> bool {
    let is_silent = found.iter().all(|it| it.rate.is_none());
    assert!(!is_silent || found.iter().all(|it| has_a_busy_host(it)), "nothing was said: {found:#?}");
    is_silent
}

fn misleading(found: &[&PathRate], truth: f64) -> Vec<String> {
    let mut misleading = Vec::new();
    for found in found {
        println!("{}: {:?} {:?} {:?}", found.pedigree.version.name(), found.rate, found.bound, found.flags);
        let why = found.rate.as_ref().and_then(|rate| misleads(rate, found.bound, &found.flags, truth));
        misleading.extend(
            why.map(|why| format!("{} by {}: {why}", found.pedigree.version.name(), found.pedigree.method)),
        );
    }
    misleading
}

#[test]
fn no_capacity_misleads_in_either_direction() {
    if !permitted() {
        return;
    }
    for (rate, way, direction) in [(100, None, Direction::Forward), (37, Some("-R"), Direction::Reverse)] {
        let arguments: Vec<&str> = ["capacity", "-t", "3s"].into_iter().chain(way).collect();
        let (record, report) = over(&narrow(rate), &arguments);
        let found = figures(&record);
        assert!(found.iter().all(|it| it.pedigree.direction == direction), "{found:#?}");
        if is_silent(&found) {
            inconclusive("the host was too busy for a figure");
            continue;
        }
        judge(&misleading(&found, f64::from(rate) * 1e6), &report, LATE);
    }
}

#[test]
fn no_available_bandwidth_beside_cross_traffic_misleads() {
    if !permitted() {
        return;
    }
    let (record, report) = over(LOADED, &["available", "-t", "5s"]);
    let found = figures(&record);
    if is_silent(&found) {
        return inconclusive("the host was too busy for a figure");
    }
    judge(&misleading(&found, 6e6), &report, LATE);
}

#[test]
fn a_test_with_its_path_never_tells_a_wrong_share() {
    if !permitted() {
        return;
    }
    // Of one version: each takes some 15 s whatever the time asked for.
    let arguments = ["test", "-4", "--path", "-t", "3s", "--rounds", "1", "--no-tcp", "-b", "1M"];
    let (record, report) = over(LOADED, &arguments);
    assert_eq!(record.versions.len(), 1, "{record:#?}");
    let mut off = Vec::new();
    for version in &record.versions {
        let of = |direction| version.path_use.iter().find(|it| it.direction == direction);
        let [up, down] = [Direction::Forward, Direction::Reverse]
            .map(|way| of(way).unwrap_or_else(|| panic!("no {}: {version:#?}", way.name())));
        // The way back is idle.
        off.extend(share_is_off(up, 0.4).then(|| format!("{}: {up:?}", version.version.name())));
        off.extend(
            (down.verdict == PathVerdict::Shared).then(|| format!("{}: {down:?}", version.version.name())),
        );
    }
    judge(&off, &report, LATE);
}

/// A share that is told and does not allow the truth. That none could be shown, or that the hosts
/// are to blame, is honest.
fn share_is_off(found: &netaware_record::PathUse, truth: f64) -> bool {
    let allows = found.used.as_ref().is_some_and(|share| {
        let half = (share.hi - share.lo) / 2.0;
        (share.estimate - truth).abs() <= 0.1 || (share.lo - half..=share.hi + half).contains(&truth)
    });
    found.verdict == PathVerdict::Shared && !allows
}

#[test]
fn a_path_is_followed_and_no_point_misleads() {
    if !permitted() {
        return;
    }
    let (record, report) = over(LOADED, &["available", "--watch", "-i", "2s", "-t", "13s"]);
    let mut off = Vec::new();
    for found in figures(&record) {
        let points = &found.over_time;
        assert!(points.len() >= 2, "{found:#?}");
        assert!(points.is_sorted_by(|one, other| one.at < other.at), "{points:#?}");
        // The 2 % of the capacity that chirps take, as much again for how they come near the rate
        // at first, and the first trains of 3, 12 and 48 packets of 1500 B, which are sent once,
        // before the path's rate is known (docs/methods/first-trains.md).
        let allowed = 0.04 * 10e6 / 8.0 * found.took.secs_f64() + 63.0 * 1500.0;
        assert!(found.bytes.0 as f64 <= allowed, "it loads the path with {}: {found:#?}", found.load);
        for point in points {
            let why = point.rate.as_ref().and_then(|rate| misleads(rate, point.bound, &point.flags, 6e6));
            off.extend(why.map(|why| format!("{} at {}: {why}", found.pedigree.version.name(), point.at)));
        }
    }
    judge(&off, &report, LATE);
}

#[test]
fn packets_that_do_not_fit_are_made_smaller_and_that_is_said() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '10Mbit/s'\ndelay = '2ms'\nmtu = 1400\n";
    let (record, report) = over(path, &["capacity", "-t", "2s", "--packet", "1500"]);
    let said = record.warnings.iter().filter(|it| it.contains("its MTU is 1400")).count();
    assert_eq!(said, 2, "once for each version: {:?}", record.warnings);
    let found = figures(&record);
    assert_eq!(found.map(|it| it.packet), [1400, 1400], "{found:#?}");
    judge(&misleading(&found, 10e6), &report, LATE);
}

#[test]
fn an_mtu_behind_the_first_hop_costs_no_packets_and_cuts_none_in_pieces() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '1Gbit/s'\ndelay = '200us'\n\
                [[hop]]\nrate = '10Mbit/s'\ndelay = '2ms'\nv6 = { mtu = 1480 }\n";
    let (record, report) = over(path, &["capacity", "-t", "2s"]);
    let found = figures(&record);
    assert_eq!(found.map(|it| it.packet), [1500, 1480], "{found:#?}");
    let lossy = found.iter().filter(|it| it.flags.iter().any(|flag| flag == "lossy")).count();
    assert_eq!(lossy, 0, "{found:#?}");
    judge(&misleading(&found, 10e6), &report, LATE);
}

#[test]
fn a_responder_that_dies_in_the_middle_is_named_and_the_time_is_kept() {
    if !permitted() {
        return;
    }
    for (command, truth) in [("available", 6e6), ("capacity", 10e6)] {
        let lab = lab::up(LOADED, 1);
        let responder = lab::responder(&lab, &[]);
        let before = counters::udp(&lab, Side::B, IpVersion::V4).received;
        let running = prober(&lab, &[command, "-t", "10s"]);
        arrived(&lab, before + 20);
        drop(responder);
        let ended = running.finish_within(Span::from_secs(60)).exits_with(2);
        let report = lab.end().unwrap();
        assert!(ended.took < Span::from_secs(20), "{ended:#?}");
        let record = ended.record();
        assert_eq!(record.versions.len(), 2, "{record:#?}");
        for version in &record.versions {
            let why = version.unreachable.as_ref().unwrap_or_else(|| panic!("{command}: {record:#?}"));
            // It may die before the other version's session is open; the host is named all the
            // same.
            assert!(["10.77.0.2", "fd77::2"].iter().any(|host| why.reason.contains(host)), "{why:?}");
        }
        // What was found until then is told, and still does not mislead.
        let found: Vec<&PathRate> = record.versions.iter().flat_map(|it| &it.path_rates).collect();
        judge(&misleading(&found, truth), &report, LATE);
    }
}

/// Waits until a program on host B was given so many datagrams of IPv4.
fn arrived(lab: &Lab, datagrams: u64) {
    let due = netaware_io::clock::now() + Span::from_secs(10);
    while counters::udp(lab, Side::B, IpVersion::V4).received < datagrams {
        assert!(netaware_io::clock::now() < due, "trains do not flow");
        netaware_io::clock::sleep(Span::from_millis(10));
    }
}

/// The prober shares one core with two programs that compute, and nothing else of the machine is
/// touched.
#[test]
fn hogs_on_the_core_are_told_and_make_no_figure_of_their_own() {
    if !permitted() {
        return;
    }
    let lab = lab::up(LOADED, 1);
    let _responder = lab::responder(&lab, &[]);
    let _hogs = [hog(), hog()];
    for (command, truth) in [("capacity", 10e6), ("available", 6e6)] {
        let mut prober = lab.command(Side::A, "taskset");
        prober.args(["-c", CORE]).arg(netaware_path());
        prober.args([command, "b", "-t", "4s", "--format", "json"]);
        let record = recorded(&Program::start(prober).finish_within(Span::from_secs(60)));
        let found = figures(&record);
        // Nothing may be said, as long as it is said why.
        is_silent(&found);
        for each in &found {
            let is_told = each.flags.iter().any(|flag| flag == "host_busy");
            assert!(is_told || each.rate.is_none(), "{command}: {each:#?}");
        }
        assert_eq!(misleading(&found, truth), [""; 0]);
    }
    lab.end().unwrap();
}

const CORE: &str = "0";

/// A program that computes until dropped.
fn hog() -> Program {
    let mut hog = std::process::Command::new("taskset");
    hog.args(["-c", CORE, "sh", "-c", "while :; do :; done"]);
    Program::start(hog)
}
