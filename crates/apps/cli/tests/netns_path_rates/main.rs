//! `netaware capacity` and `netaware available` over lab paths of which the truth is arithmetic, both IP versions.
//!
//! A run that the emulator spoiled says nothing about the method and is repeated; a figure must hold in one of four runs, since
//! this host may lose its cores for milliseconds, and a wrong method is wrong in each. Needs root: `cargo xtask netns`.

#[path = "../harness/program.rs"]
#[expect(dead_code, reason = "shared with tests on loopback")]
mod program;

use netaware_lab::{Lab, LabOptions, Side, scenarios};
use netaware_netns::permitted;
use netaware_record::{IpVersion, PathRate, RateBound, Record};
use netaware_units::Span;

use crate::program::{NETAWARE, Program, Responder};

const PORT: u16 = 14_233;
const RUNS: usize = 4;
/// A train lasts milliseconds: packets later than this would show in its rate.
const LATE: Span = Span::from_micros(500);

fn over(path: &str, arguments: &[&str], holds: impl Fn(&Record) -> Result<(), String>) {
    let text = format!("about = \"a path rate\"\n{path}");
    let scenario = scenarios::parse("a path rate", text).unwrap_or_else(|error| panic!("{error}")).scenario;
    let mut failures = Vec::new();
    for seed in 0..RUNS as u64 {
        let options = LabOptions { prefix: "rates".to_owned(), seed, ..LabOptions::default() };
        let lab = Lab::up(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
        let mut serve = lab.command(Side::B, NETAWARE);
        serve.args(["serve", "--port", &PORT.to_string()]);
        let responder = Responder::launch(serve, &[], PORT);
        let mut prober = lab.command(Side::A, NETAWARE);
        prober.args(arguments).args(["b", "--format", "json"]);
        let record = Program::start(prober).finish_within(Span::from_secs(120)).exits_with(0).record();
        drop(responder);
        let report = lab.end().unwrap();
        match holds(&record) {
            Ok(()) => return,
            Err(why) => failures.push(format!("{why} ({:?}; {report})", report.why_invalid(LATE))),
        }
    }
    panic!("in none of {RUNS} runs:\n{}", failures.join("\n"))
}

fn rate(record: &Record, version: IpVersion) -> Result<&PathRate, String> {
    let found = record.versions.iter().find(|it| it.version == version);
    found.and_then(|it| it.path_rates.first()).ok_or_else(|| format!("no {}: {record:#?}", version.name()))
}

/// Within `tolerance` of the truth, and no bound.
fn near(record: &Record, truth: impl Fn(IpVersion) -> f64, tolerance: f64) -> Result<(), String> {
    for version in [IpVersion::V4, IpVersion::V6] {
        let found = rate(record, version)?;
        let truth = truth(version);
        let interval = found.rate.as_ref().ok_or_else(|| format!("nothing was said: {found:?}"))?;
        let error = interval.estimate / truth - 1.0;
        if error.abs() > tolerance || found.bound != RateBound::None {
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
            "{} {:.3} Mbit/s, {:+.2} %, {} in {}",
            version.name(),
            interval.estimate / 1e6,
            error * 100.0,
            found.bytes,
            found.took
        );
    }
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
        over(&path, &["capacity", "-t", "10s"], |record| near(record, |_| f64::from(rate) * 1e6, tolerance));
        over(&path, &["capacity", "-t", "10s", "-R"], |record| {
            near(record, |_| f64::from(rate) * 1e6, tolerance)
        });
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
             [[cross]]\npattern = 'constant'\nrate = '{cross}Mbit/s'\nsize = 1000\n"
        );
        over(&path, &["available", "-t", "20s"], |record| near(record, |_| f64::from(rate) * 0.6e6, 0.05));
    }
}
