//! `netaware udp` over paths that lose, double, reorder and corrupt: its log and its counts are
//! those of the emulator, datagram by datagram. Needs root: `cargo xtask netns`.

mod truth;

use std::path::Path;

use netaware_lab::{LabOptions, Report, Side, TruthDetail, TruthFile};
use netaware_netns::permitted;
use netaware_record::{IpVersion, Record, UdpResult};
use netaware_testkit::figures::is_exact;
use netaware_testkit::lab;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;

use self::truth::Truth;

/// All bundled ones whose chance takes or adds datagrams.
const LOSSY: [&str; 7] =
    ["loss-0.1", "loss-1", "loss-5", "loss-bursty", "loss-periodic", "reordering", "copies-and-bit-errors"];
const DATAGRAMS: u64 = 2_000;
/// No other packet of a run is as long.
const PAYLOAD: u32 = 777;

#[test]
fn every_datagram_is_logged_and_counted_as_the_emulator_had_it() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut seen, mut is_complete) = (Seen::default(), true);
    for name in LOSSY {
        let (log, truth) =
            (folder.path().join(format!("{name}.csv")), folder.path().join(format!("{name}.ndjson")));
        let (record, report) = measured(name, &log, &truth);
        if !is_exact(&report) {
            // It has noted why. The other paths are judged all the same.
            is_complete = false;
            continue;
        }
        let truth = Truth::read(&truth, PAYLOAD);
        let log = std::fs::read_to_string(&log).unwrap();
        for version in [IpVersion::V4, IpVersion::V6] {
            let what = format!("{name}, {}", version.name());
            let result = udp_of(&record, version);
            let arrived = truth.arrivals(version);
            assert_eq!(truth.offered(version), result.sent, "{what}: offered");
            assert_eq!(result.sent + result.not_sent.unwrap(), DATAGRAMS, "{what}: planned");
            assert_eq!(logged(&log, version), arrived, "{what}: order of arrival");
            let want = Counts::of(&arrived, result.sent);
            let found = Counts {
                received: result.received,
                lost: result.loss.lost,
                duplicates: result.duplicates.unwrap(),
                reordered: result.reordered.unwrap(),
                runs: result.receiver.as_ref().unwrap().loss_runs.clone(),
            };
            assert_eq!(found, want, "{what}");
            assert_eq!(result.loss.host, Some(0), "{what}: what arrives corrupted was lost on the network");
            seen.note(&want);
        }
    }
    // A path that was not judged may have been the only one that doubles, or reorders.
    let is_shown = seen.lost && seen.doubled && seen.reordered;
    assert!(is_shown || !is_complete, "these paths showed nothing: {seen:?}");
}

/// That the comparison was not one of nothing with nothing.
#[derive(Debug, Default)]
struct Seen {
    lost: bool,
    doubled: bool,
    reordered: bool,
}

impl Seen {
    fn note(&mut self, counts: &Counts) {
        self.lost |= counts.lost > 0;
        self.doubled |= counts.duplicates > 0;
        self.reordered |= counts.reordered > 0;
    }
}

#[derive(Debug, PartialEq)]
struct Counts {
    received: u64,
    lost: u64,
    duplicates: u64,
    /// First copies that came after a higher number (RFC 4737 §3).
    reordered: u64,
    runs: Vec<(u64, u64)>,
}

impl Counts {
    fn of(arrivals: &[u64], sent: u64) -> Self {
        let mut here = vec![false; usize::try_from(sent).unwrap()];
        let (mut duplicates, mut reordered, mut next) = (0, 0, 0);
        for &seq in arrivals {
            let first = !std::mem::replace(&mut here[usize::try_from(seq).unwrap()], true);
            duplicates += u64::from(!first);
            reordered += u64::from(first && seq < next);
            next = next.max(seq + 1);
        }
        let received = here.iter().filter(|here| **here).count() as u64;
        Self { received, lost: sent - received, duplicates, reordered, runs: runs(&here) }
    }
}

/// Lengths of the runs of lost datagrams, and how often each.
fn runs(here: &[bool]) -> Vec<(u64, u64)> {
    let mut counts = std::collections::BTreeMap::new();
    for run in here.split(|here| *here).filter(|run| !run.is_empty()) {
        *counts.entry(run.len() as u64).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

fn measured(name: &str, log: &Path, truth: &Path) -> (Record, Report) {
    let options = LabOptions {
        scenario_name: name.to_owned(),
        truth: Some(TruthFile { path: truth.to_owned(), detail: TruthDetail::Packets }),
        ..lab::options()
    };
    let lab = lab::start(&lab::bundled(name), &options);
    let record = {
        let _responder = lab::responder(&lab, &[]);
        let mut prober = lab.command(Side::A, netaware_path());
        prober
            .args(["udp", "b", "--spacing", "200us", "--format", "json", "--hist", "10us", "--log"])
            .arg(log);
        prober.args(["-n", &DATAGRAMS.to_string(), "-l", &PAYLOAD.to_string()]);
        Program::start(prober).finish_within(Span::from_secs(60)).exits_with(0).record()
    };
    (record, lab.end().unwrap())
}

fn udp_of(record: &Record, version: IpVersion) -> &UdpResult {
    let found = record.versions.iter().find(|it| it.version == version);
    found.and_then(|it| it.udp.first()).unwrap_or_else(|| panic!("no {}", version.name()))
}

/// Sequence numbers in the order of the log.
fn logged(log: &str, version: IpVersion) -> Vec<u64> {
    let lines = log.lines().filter_map(|line| line.strip_prefix(version.name())?.strip_prefix(",up,"));
    lines.map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
}
