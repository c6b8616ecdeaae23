//! `netaware capacity` and `netaware available` over lab paths of which the truth is arithmetic, both IP versions.
//!
//! A run that the emulator spoiled says nothing about the method and is repeated; the figure of each version must hold in one of
//! four runs, since this host may lose its cores for milliseconds, and a wrong method is wrong in each. Needs root: `cargo xtask netns`.

mod elastic;

use netaware_lab::Lab;
use netaware_netns::{in_one_of, permitted};
use netaware_record::{IpVersion, PathRate, PathVerdict, RateBound, Record};
use netaware_testkit::lab;
use netaware_testkit::program::Program;
use netaware_units::Span;

const RUNS: usize = 4;
/// How far off a figure may be that is flagged as doubtful.
const DOUBTED: f64 = 0.05;
/// A train lasts milliseconds: packets later than this would show in its rate.
const LATE: Span = Span::from_micros(500);

fn over(path: &str, arguments: &[&str], mut holds: impl FnMut(&Record) -> Result<(), String>) {
    let mut seeds = 0..;
    in_one_of(RUNS, || {
        let lab = lab::up(path, seeds.next().unwrap_or_default());
        let responder = lab::responder(&lab, &[]);
        let record = prober(&lab, arguments).finish_within(Span::from_secs(120)).exits_with(0).record();
        drop(responder);
        let report = lab.end().unwrap();
        holds(&record).map_err(|why| format!("{why} ({:?}; {report})", report.why_invalid(LATE)))
    });
}

fn prober(lab: &Lab, arguments: &[&str]) -> Program {
    lab::prober(lab, &[arguments, &["b", "--format", "json"]].concat())
}

fn rate(record: &Record, version: IpVersion) -> Result<&PathRate, String> {
    let found = record.versions.iter().find(|it| it.version == version);
    found.and_then(|it| it.path_rates.first()).ok_or_else(|| format!("no {}: {record:#?}", version.name()))
}

/// Within `tolerance` of the truth, bit/s, and no bound; in one run or another for each version. On a host that keeps a program
/// waiting the quick method doubts, and the modal one may not end in time: what is flagged so has to hold the truth in its interval.
fn near(truth: f64, tolerance: f64) -> impl FnMut(&Record) -> Result<(), String> {
    let mut missing = vec![IpVersion::V4, IpVersion::V6];
    move |record| {
        let mut failed = Vec::new();
        missing.retain(|version| {
            one_near(record, *version, truth, tolerance).map_err(|why| failed.push(why)).is_err()
        });
        if missing.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    }
}

fn one_near(record: &Record, version: IpVersion, truth: f64, tolerance: f64) -> Result<(), String> {
    let found = rate(record, version)?;
    let interval = found.rate.as_ref().ok_or_else(|| format!("nothing was said: {found:?}"))?;
    let error = interval.estimate / truth - 1.0;
    let doubts = found.flags.iter().any(|flag| flag == "cut_short" || flag == "ambiguous");
    let holds = doubts && error.abs() < DOUBTED && (interval.lo..=interval.hi).contains(&truth);
    if (error.abs() > tolerance && !holds) || found.bound != RateBound::None {
        return Err(format!(
            "{}: {:.3} Mbit/s [{:.3} .. {:.3}] {:?} is {:+.2} % off {:.3}; {} {:?}",
            version.name(),
            interval.estimate / 1e6,
            interval.lo / 1e6,
            interval.hi / 1e6,
            found.bound,
            error * 100.0,
            truth / 1e6,
            found.pedigree.method,
            found.flags
        ));
    }
    println!(
        "{} {:.3} Mbit/s, {:+.2} %, {} in {} {:?}",
        version.name(),
        interval.estimate / 1e6,
        error * 100.0,
        found.bytes,
        found.took,
        found.flags
    );
    Ok(())
}

#[test]
fn capacity_of_slow_and_fast_links_is_read_over_both_versions() {
    if !permitted() {
        return;
    }
    for (rate, tolerance) in [(10, 0.01), (37, 0.01), (100, 0.02)] {
        let path = format!(
            "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '4ms'\n\
             [[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n"
        );
        let truth = f64::from(rate) * 1e6;
        over(&path, &["capacity", "-t", "10s"], near(truth, tolerance));
        over(&path, &["capacity", "-t", "10s", "-R"], near(truth, tolerance));
    }
}

#[test]
fn what_cross_traffic_leaves_is_read_over_both_versions() {
    if !permitted() {
        return;
    }
    for rate in [10, 37, 100] {
        let cross = f64::from(rate) * 0.4;
        let path = format!(
            "[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '4ms'\n\
             [[cross]]\nenter = 0\npattern = 'constant'\nrate = '{cross}Mbit/s'\nsizes = 1000\n"
        );
        over(&path, &["available", "-t", "20s"], near(f64::from(rate) * 0.6e6, 0.05));
    }
}

/// 10 Mbit/s, of which constant cross traffic uses 4.
const LOADED: &str = "[[hop]]\nrate = '10Mbit/s'\ndelay = '2ms'\n\
                      [[cross]]\nenter = 0\npattern = 'constant'\nrate = '4Mbit/s'\nsizes = 1000\n";

#[test]
fn a_test_with_its_path_says_what_others_use() {
    if !permitted() {
        return;
    }
    let arguments = ["test", "--path", "-t", "6s", "--rounds", "1", "--no-tcp", "-b", "1M"];
    over(LOADED, &arguments, |record| {
        for version in &record.versions {
            let up = version.path_use.iter().find(|it| it.direction == netaware_record::Direction::Forward);
            let up = up.ok_or_else(|| format!("nothing is said: {version:#?}"))?;
            let used = up.used.as_ref().map(|used| used.estimate);
            // The way back is idle.
            let down = version.path_use.iter().find(|it| it.direction == netaware_record::Direction::Reverse);
            let idle = down.is_some_and(|down| down.verdict != PathVerdict::Shared);
            // The lab's emulator is another program on this host: where it fills a core, the verdict says so beside the share.
            let is_told = matches!(up.verdict, PathVerdict::Shared | PathVerdict::HostSuspected);
            if !is_told || used.is_none_or(|used| (used - 0.4).abs() > 0.05) || !idle {
                return Err(format!("{:#?}", version.path_use));
            }
        }
        (record.versions.len() == 2).then_some(()).ok_or_else(|| "not both versions".to_owned())
    });
}

#[test]
fn a_path_is_followed_with_a_figure_for_each_version_and_interval() {
    if !permitted() {
        return;
    }
    over(LOADED, &["available", "--watch", "-i", "4s", "-t", "25s"], |record| {
        for version in [IpVersion::V4, IpVersion::V6] {
            let found = rate(record, version)?;
            let last = found.over_time.last().and_then(|point| point.rate.as_ref());
            let near = last.is_some_and(|rate| {
                (rate.estimate / 6e6 - 1.0).abs() < 0.15 && rate.lo <= 6e6 && rate.hi >= 6e6
            });
            if !near || found.over_time.len() < 3 || found.load.0 > 600_000 {
                return Err(format!("{}: load {}, {:#?}", version.name(), found.load, found.over_time));
            }
        }
        Ok(())
    });
}

#[test]
fn packets_that_do_not_fit_are_made_smaller_and_that_is_said() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '10Mbit/s'\ndelay = '2ms'\nmtu = 1400\n";
    let mut near_ten = near(10e6, 0.02);
    over(path, &["capacity", "-t", "5s", "--packet", "1500"], |record| {
        let said = record.warnings.iter().filter(|it| it.contains("its MTU is 1400")).count();
        let sizes = record.versions.iter().flat_map(|it| &it.path_rates).map(|rate| rate.packet);
        if said < 2 || sizes.max() != Some(1400) {
            return Err(format!("{record:#?}"));
        }
        near_ten(record)
    });
}

#[test]
fn a_responder_that_dies_in_the_middle_is_named_and_the_time_is_kept() {
    if !permitted() {
        return;
    }
    for arguments in [["available", "-t", "20s"], ["capacity", "-t", "20s"]] {
        let lab = lab::up(LOADED, 1);
        let responder = lab::responder(&lab, &[]);
        let running = prober(&lab, &arguments);
        netaware_io::clock::sleep(Span::from_millis(1500));
        drop(responder);
        let ended = running.finish_within(Span::from_secs(60));
        let record = ended.record();
        let told = record.versions.iter().any(|version| version.unreachable.is_some());
        assert!(told && ended.took < Span::from_secs(40), "{ended:#?}");
        for found in record.versions.iter().flat_map(|it| &it.path_rates) {
            let near = found.rate.as_ref().is_none_or(|rate| rate.estimate < 13e6);
            assert!(near || !found.flags.is_empty(), "{found:#?}");
        }
    }
}

#[test]
fn a_hog_on_the_core_makes_no_figure_of_its_own() {
    if !permitted() {
        return;
    }
    let lab = lab::up(LOADED, 1);
    let _responder = lab::responder(&lab, &[]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for number in [1, cores * 2] {
        let mut hogs: Vec<Program> = (0..number).map(|_| hog()).collect();
        for (arguments, truth) in [(["capacity", "-t", "10s"], 10e6), (["available", "-t", "15s"], 6e6)] {
            let record = prober(&lab, &arguments).finish_within(Span::from_secs(120)).record();
            for found in record.versions.iter().flat_map(|it| &it.path_rates) {
                let near = found.rate.as_ref().is_none_or(|rate| (rate.estimate / truth - 1.0).abs() < 0.2);
                let told = found.bound != RateBound::None || !found.flags.is_empty();
                assert!(near || told, "{number} hogs, {arguments:?}: {found:#?}");
                let is_busy = found.flags.iter().any(|flag| flag == "host_busy");
                assert!(number == 1 || found.rate.is_none() || is_busy, "{number} hogs: {found:#?}");
            }
        }
        hogs.clear();
    }
}

/// A program that computes until dropped.
fn hog() -> Program {
    let mut hog = std::process::Command::new("sh");
    hog.args(["-c", "while :; do :; done"]);
    Program::start(hog)
}
