//! `netaware hops` over lab paths of five hops of which the truth is arithmetic, both IP versions.
//!
//! Short runs hold what is true in each of them: which hops there are, what they are flagged with,
//! and that no rate is wrong without saying so. How near rates are to the truth is held on virtual
//! time (`crates/system/sim/tests/integration/hops.rs`), and in real time by [`accuracy`]. Needs
//! root: `cargo xtask netns`.

mod accuracy;

use netaware_lab::{Report, Side};
use netaware_netns::permitted;
use netaware_record::{Hop, HopsResult, IpVersion, Record};
use netaware_testkit::figures::{judge, misleads};
use netaware_testkit::program::{Finished, Program, netaware_path};
use netaware_testkit::{inconclusive, lab};
use netaware_units::Span;

/// Packets later than this would show in a link's rate.
const LATE: Span = Span::from_micros(500);
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// Mbit/s, as read: the second link is two segments of 100 Mbit/s.
const RATES: [f64; 5] = [100.0, 50.0, 20.0, 10.0, 50.0];
/// Flags that say why a hop's rate may be wrong; others describe the hop.
const DOUBTS: [&str; 5] =
    ["fits_disagree", "assumes_symmetry", "answers_in_the_way", "fell_behind", "host_limited"];
/// Flags that say why a hop has no rate.
const NO_RATE: [&str; 4] = ["silent", "rate_limited", "too_few_answers", "slope_falls"];

fn path(change: impl Fn(usize) -> &'static str) -> String {
    let links =
        [("100", ""), ("100", "switches = [{ rate = '100Mbit/s' }]"), ("20", ""), ("10", ""), ("50", "")];
    let hop = |(n, (rate, switch)): (usize, &(&str, &str))| {
        format!("[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '1ms'\n{switch}\n{}\n", change(n))
    };
    links.iter().enumerate().map(hop).collect()
}

fn in_lab(path: &str, arguments: &[&str], exit: i32) -> (Finished, Report) {
    let lab = lab::up(path, 1);
    let prober = lab::prober(&lab, &[arguments, &["--no-save", "--format", "json"]].concat());
    let ended = prober.finish_within(Span::from_secs(120)).exits_with(exit);
    (ended, lab.end().unwrap())
}

/// What was found over one version, which has to be the whole path.
#[track_caller]
fn over(record: &Record, version: IpVersion) -> &HopsResult {
    let found = record.versions.iter().find(|it| it.version == version);
    let found = found.and_then(|it| it.hops.as_ref());
    let found = found.unwrap_or_else(|| panic!("no {}: {record:#?}", version.name()));
    assert!(found.reached, "{}: {found:#?}", version.name());
    assert_eq!(found.hops.len(), RATES.len(), "{}: {found:#?}", version.name());
    found
}

fn has(hop: &Hop, flag: &str) -> bool {
    hop.flags.iter().any(|it| it == flag)
}

/// Rates that are wrong and do not say so. A hop without a rate has to say why it has none.
#[track_caller]
fn misleading(record: &Record) -> Vec<String> {
    let mut misleading = Vec::new();
    for version in VERSIONS {
        let found = over(record, version);
        let path_says_why = found.flags.iter().any(|flag| flag == "host_busy" || flag == "cut_short");
        for (hop, truth) in found.hops.iter().zip(RATES) {
            let Some(capacity) = &hop.capacity else {
                let says_why = path_says_why || NO_RATE.iter().any(|flag| has(hop, flag));
                assert!(says_why, "no rate over {} and no reason: {hop:#?}", version.name());
                continue;
            };
            // A figure that covers several hops is one of all their links together.
            let links = &RATES[usize::from(capacity.from) - 1..usize::from(hop.ttl)];
            let truth =
                if links.len() > 1 { 1.0 / links.iter().map(|rate| 1.0 / rate).sum::<f64>() } else { truth };
            let of_hop = hop.flags.iter().filter(|flag| DOUBTS.contains(&flag.as_str()));
            let of_path = found.flags.iter().filter(|flag| *flag == "host_busy");
            let doubts: Vec<String> = of_hop.chain(of_path).cloned().collect();
            let why = misleads(&capacity.rate, capacity.bound, &doubts, truth * 1e6);
            misleading.extend(why.map(|why| format!("{} hop {}: {why}", version.name(), hop.ttl)));
        }
    }
    misleading
}

/// A limit is told by the answers to the last twelve questions.
const ENOUGH_TO_SHOW_RATIONING: u32 = 14;

#[test]
fn silent_rationing_and_narrow_hops_are_named_and_no_rate_misleads() {
    if !permitted() {
        return;
    }
    let mixed = path(|n| match n {
        1 => "answers = { rate = 0.2, burst = 2 }",
        2 => "answers = { silent = true }",
        4 => "mtu = 1400",
        _ => "",
    });
    let (ended, report) = in_lab(&mixed, &["hops", "b", "-t", "14s"], 0);
    let record = ended.record();
    for version in VERSIONS {
        let found = over(&record, version);
        let name = version.name();
        let rationing = &found.hops[1];
        println!("{name}: the rationing hop was asked {} times: {:?}", rationing.asked, rationing.flags);
        if !has(rationing, "rate_limited") {
            assert!(rationing.asked < ENOUGH_TO_SHOW_RATIONING, "{name}: {rationing:#?}");
            inconclusive("the host had no time to ask the rationing hop more often than it answers");
        }
        assert!(rationing.answered < rationing.asked, "{name}: {rationing:#?}");
        assert!(
            has(&found.hops[2], "silent") && found.hops[2].addresses.is_empty(),
            "{name}: {:#?}",
            found.hops[2]
        );
        for hop in [0, 1, 3, 4] {
            assert_eq!(found.hops[hop].addresses.len(), 1, "{name}: {:#?}", found.hops[hop]);
            assert!(!has(&found.hops[hop], "silent"), "{name}: {:#?}", found.hops[hop]);
        }
        for hop in [0, 2, 3] {
            assert!(!has(&found.hops[hop], "rate_limited"), "{name}: {:#?}", found.hops[hop]);
        }
        assert!(found.flags.iter().any(|flag| flag == "mtu"), "{name}: {:?}", found.flags);
        assert_eq!(found.packet, 1400, "{name}");
    }
    judge(&misleading(&record), &report, LATE);
}

#[test]
fn a_path_that_swallows_everything_ends_in_time_with_exit_code_2() {
    if !permitted() {
        return;
    }
    let (ended, _) = in_lab(&path(|n| if n == 0 { "loss = 1.0" } else { "" }), &["hops", "b", "-t", "4s"], 2);
    assert!(ended.took < Span::from_secs(8), "{}", ended.took);
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
    prober.arg(netaware_path()).args(["hops", "b", "-t", "8s", "--no-save", "--format", "json"]);
    let record = Program::start(prober).finish_within(Span::from_secs(60)).exits_with(0).record();
    let report = lab.end().unwrap();
    assert!(record.warnings.iter().any(|it| it.contains("CAP_NET_RAW")), "{:?}", record.warnings);
    for version in VERSIONS {
        for hop in &over(&record, version).hops[..3] {
            assert!(hop.answered > 0, "{hop:#?}");
        }
    }
    judge(&misleading(&record), &report, LATE);
}
