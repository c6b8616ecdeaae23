//! `netaware hops` over lab paths of five hops of which the truth is arithmetic, both IP versions.
//!
//! A run that the emulator spoiled says nothing about the method and is repeated; a figure must hold in one of four runs, since
//! this host may lose its cores for milliseconds, and a wrong method is wrong in each. Needs root: `cargo xtask netns`.

use netaware_lab::Side;
use netaware_netns::{in_one_of, permitted};
use netaware_record::{Hop, HopsResult, IpVersion, RateBound, Record};
use netaware_testkit::lab;
use netaware_testkit::program::{Finished, Program, netaware_path};
use netaware_units::Span;

const RUNS: usize = 4;
const LATE: Span = Span::from_micros(500);
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// Mbit/s, as read: the second link is two segments of 100 Mbit/s.
const RATES: [f64; 5] = [100.0, 50.0, 20.0, 10.0, 50.0];

fn path(change: impl Fn(usize) -> &'static str) -> String {
    let links =
        [("100", ""), ("100", "switches = [{ rate = '100Mbit/s' }]"), ("20", ""), ("10", ""), ("50", "")];
    let hop = |(n, (rate, switch)): (usize, &(&str, &str))| {
        format!("[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '1ms'\n{switch}\n{}\n", change(n))
    };
    links.iter().enumerate().map(hop).collect()
}

fn in_lab(path: &str, seed: u64, arguments: &[&str], exit: i32) -> (Finished, String) {
    let lab = lab::up(path, seed);
    let prober = lab::prober(&lab, &[arguments, &["--no-save", "--format", "json"]].concat());
    let ended = prober.finish_within(Span::from_secs(120)).exits_with(exit);
    let report = lab.end().unwrap();
    (ended, format!("{:?}; {report}", report.why_invalid(LATE)))
}

fn over(record: &Record, version: IpVersion) -> Result<&HopsResult, String> {
    let found = record.versions.iter().find(|it| it.version == version);
    found.and_then(|it| it.hops.as_ref()).ok_or_else(|| format!("no {}: {record:#?}", version.name()))
}

/// Repeats while it does not hold.
fn holds(path: &str, arguments: &[&str], judge: impl Fn(&Record) -> Result<(), String>) {
    let mut seeds = 0..;
    in_one_of(RUNS, || {
        let (ended, report) = in_lab(path, seeds.next().unwrap_or_default(), arguments, 0);
        judge(&ended.record()).map_err(|why| format!("{why} ({report})"))
    });
}

fn near(hop: &Hop, truth: f64, tolerance: f64) -> Result<(), String> {
    let capacity =
        hop.capacity.as_ref().ok_or_else(|| format!("hop {} has no capacity: {hop:#?}", hop.ttl))?;
    let error = capacity.rate.estimate / (truth * 1e6) - 1.0;
    let told = format!(
        "hop {} by {}: {:.3} Mbit/s [{:.3} .. {:.3}], {:+.2} % off {truth}, {} samples, {:?}",
        hop.ttl,
        capacity.way,
        capacity.rate.estimate / 1e6,
        capacity.rate.lo / 1e6,
        capacity.rate.hi / 1e6,
        error * 100.0,
        capacity.samples,
        hop.flags
    );
    println!("{told}");
    if error.abs() <= tolerance && capacity.bound == RateBound::None { Ok(()) } else { Err(told) }
}

#[test]
fn every_link_and_the_hidden_switch_are_found_over_both_versions() {
    if !permitted() {
        return;
    }
    holds(&path(|_| ""), &["hops", "b", "-t", "40s"], |record| {
        for version in VERSIONS {
            let found = over(record, version)?;
            println!("{}: {} packets, {} in {}", version.name(), found.packets, found.bytes, found.took);
            if !found.reached || found.hops.len() != RATES.len() {
                return Err(format!("{found:#?}"));
            }
            for (hop, truth) in found.hops.iter().zip(RATES) {
                near(hop, truth, 0.05)?;
            }
            let segments = found.hops[1].capacity.as_ref().map(|it| it.segments.clone());
            if segments != Some(vec![1e8, 1e8]) {
                return Err(format!("{}: segments {segments:?}", version.name()));
            }
            if found.choke_point != Some(4) {
                return Err(format!("{}: choke point {:?}", version.name(), found.choke_point));
            }
        }
        Ok(())
    });
}

#[test]
fn silent_and_rationing_routers_are_told_and_gone_around() {
    if !permitted() {
        return;
    }
    let quiet = |n: usize| match n {
        1 => "answers = { rate = 1.0, burst = 6 }",
        2 => "answers = { silent = true }",
        _ => "",
    };
    holds(&path(quiet), &["hops", "b", "-t", "40s"], |record| {
        for version in VERSIONS {
            let found = over(record, version)?;
            let flags = |hop: usize| found.hops[hop].flags.join(" ");
            if !flags(1).contains("rate_limited") || !found.hops[2].addresses.is_empty() {
                return Err(format!("{}: '{}' and {:?}", version.name(), flags(1), found.hops[2].addresses));
            }
            for (hop, truth) in found.hops.iter().zip(RATES) {
                near(hop, truth, 0.1)?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_smaller_mtu_is_said_and_lived_with() {
    if !permitted() {
        return;
    }
    let narrow = |n: usize| if n == 3 { "mtu = 1400" } else { "" };
    holds(&path(narrow), &["hops", "b", "-t", "30s", "--no-trains"], |record| {
        for version in VERSIONS {
            let found = over(record, version)?;
            if !found.flags.contains(&"mtu".to_owned()) || found.packet != 1400 {
                return Err(format!("{}: {:?} {}", version.name(), found.flags, found.packet));
            }
            for (hop, truth) in found.hops.iter().zip(RATES) {
                near(hop, truth, 0.1)?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_path_that_swallows_everything_ends_in_time_with_exit_code_2() {
    if !permitted() {
        return;
    }
    let (ended, _) =
        in_lab(&path(|n| if n == 0 { "loss = 1.0" } else { "" }), 0, &["hops", "b", "-t", "8s"], 2);
    assert!(ended.took < Span::from_secs(10), "{}", ended.took);
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("no hop towards"), "{}", ended.stderr);
}

#[test]
fn without_privilege_hops_are_found_all_the_same() {
    if !permitted() {
        return;
    }
    let lab = lab::up(&path(|_| ""), 1);
    // Nobody's user and group, without any capability.
    let mut prober = lab.command(Side::A, "setpriv");
    prober.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]);
    prober.arg(netaware_path()).args(["hops", "b", "-t", "24s", "--no-save", "--format", "json"]);
    let record = Program::start(prober).finish_within(Span::from_secs(60)).exits_with(0).record();
    lab.end().unwrap();
    assert!(record.warnings.iter().any(|it| it.contains("CAP_NET_RAW")), "{:?}", record.warnings);
    for version in VERSIONS {
        let found = over(&record, version).unwrap();
        assert!(found.reached && found.hops.len() == RATES.len(), "{found:#?}");
        for hop in &found.hops[..3] {
            assert!(hop.answered > 50, "{hop:#?}");
        }
    }
}
