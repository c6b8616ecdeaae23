//! Datagrams of a real browser over a path that loses: what the page says was sent, received and
//! lost is what the emulator had, to the last datagram, both ways and over both IP versions. Needs
//! root, Chromium, and `npm ci` in `web`: `cargo xtask netns`.
//!
//! ```text
//!   host a: Chromium with the page ── 20 Mbit/s, 10 ms, 2 % and 3 % of independent loss ── host b: netaware serve
//! ```
//!
//! Everything is lost at random, acknowledgements and handshakes too. Datagrams are found by their
//! length: no other packet of these runs has it, as nothing fills the path.

use std::path::{Path, PathBuf};

use netaware_lab::{LabOptions, Report, Side, TruthDetail, TruthFile};
use netaware_netns::permitted;
use netaware_record::{Direction, IpVersion, MatrixProtocol, MatrixRun, Record};
use netaware_testkit::figures::is_exact;
use netaware_testkit::lab;
use netaware_testkit::program::Program;
use netaware_units::Span;
use serde_json::Value;

const PATH: &str = "about = \"web datagrams\"
[[hop]]
forward = { rate = '20Mbit/s', delay = '10ms', loss = 0.02 }
reverse = { rate = '20Mbit/s', delay = '10ms', loss = 0.03 }
";
const BLOCKS: u64 = 400;
const BLOCK: u64 = 777;
/// Of the quick test's streams.
const PAYLOAD: u64 = 200;
const PLANNED: u64 = 200;
/// UDP 8, DTLS 37, SCTP 12, its DATA chunk 16.
const OVER_IP: u64 = 8 + 37 + 12 + 16;
/// A browser puts it before the data: what it has given up (RFC 3758 §3.2).
const FORWARD_TSN: u64 = 8;

#[test]
fn streams_of_the_quick_test_are_counted_as_the_emulator_had_them() {
    if !permitted() || !has_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.ndjson");
    let (record, report) = measured(&["streams"], &truth);
    if !is_exact(&report) {
        return;
    }
    let mut lost_in_all = 0;
    for version in [IpVersion::V4, IpVersion::V6] {
        let result = record.versions.iter().find(|it| it.version == version).unwrap();
        assert_eq!(result.udp.len(), 2, "{result:?}");
        for stream in &result.udp {
            let from = if stream.pedigree.direction == Direction::Reverse { "b" } else { "a" };
            let found = Truth::read(&truth, from, version, PAYLOAD);
            let what = format!("{} from {from}: {found:?}", version.name());
            assert_eq!(stream.sent, found.offered, "sent, {what}");
            assert_eq!(stream.loss.lost, found.lost, "lost, {what}");
            assert_eq!(stream.received, found.offered - found.lost, "received, {what}");
            assert_eq!(stream.sent + stream.not_sent.unwrap(), PLANNED, "planned, {what}");
            lost_in_all += found.lost;
        }
    }
    assert!(lost_in_all > 5, "this path took nothing: {lost_in_all}");
}

#[test]
fn blocks_down_are_counted_as_the_emulator_had_them() {
    if !permitted() || !has_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.ndjson");
    let (total, block) = ((BLOCKS * BLOCK).to_string(), BLOCK.to_string());
    let (record, report) = measured(&["matrix", "down", &total, &block], &truth);
    if !is_exact(&report) {
        return;
    }
    let mut lost_in_all = 0;
    for version in [IpVersion::V4, IpVersion::V6] {
        let run = run_of(&record, version);
        // Padded to four bytes.
        let found = Truth::read(&truth, "b", version, BLOCK.next_multiple_of(4));
        let what = format!("{}: {run:?}, {found:?}", version.name());
        let server = run.server.as_ref().unwrap_or_else(|| panic!("no server's end: {what}"));
        assert_eq!(server.bytes.0, found.offered * BLOCK, "sent, {what}");
        assert_eq!(run.client.unwrap().bytes.0, (found.offered - found.lost) * BLOCK, "received, {what}");
        assert_eq!(run.lost.0, found.lost * BLOCK, "lost, {what}");
        assert!(found.offered > BLOCKS * 9 / 10, "nearly all left: {what}");
        lost_in_all += found.lost;
    }
    assert!(lost_in_all > 5, "this path took nothing: {lost_in_all}");
}

/// In CI all of it is there, so that a skip hides nothing.
fn has_browser() -> bool {
    let there = web().join("node_modules/playwright-core").exists();
    let in_ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(there || !in_ci, "`npm ci` in web comes before this test");
    if !there {
        eprintln!("SKIPPED: needs `npm ci` in web, and Chromium");
    }
    there
}

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../web").canonicalize().unwrap()
}

fn measured(arguments: &[&str], truth: &Path) -> (Record, Report) {
    let options = LabOptions {
        truth: Some(TruthFile { path: truth.to_owned(), detail: TruthDetail::Packets }),
        ..lab::options()
    };
    let lab = lab::start(&lab::scenario(PATH), &options);
    let printed = {
        let _responder = lab::responder(&lab, &[]);
        let url = format!("http://{}:{}/", lab.address(Side::B, IpVersion::V4), lab::PORT);
        let mut browser = lab.command(Side::A, "node");
        browser.arg(web().join("tests/inLab.mjs")).arg(&url).args(arguments);
        Program::start(browser).finish_within(Span::from_secs(180)).exits_with(0).stdout
    };
    let report = lab.end().unwrap();
    let record =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("no record: {error}: {printed}"));
    (record, report)
}

fn run_of(record: &Record, version: IpVersion) -> &MatrixRun {
    let found = record.versions.iter().find(|it| it.version == version);
    let matrix = found.and_then(|it| it.matrix.iter().find(|it| it.protocol == MatrixProtocol::Udp));
    let run = matrix.and_then(|matrix| matrix.cells.first()?.runs.first());
    run.unwrap_or_else(|| panic!("no run over {}: {record:?}", version.name()))
}

/// What the emulator did with the datagrams that one host sent.
#[derive(Debug, Default)]
struct Truth {
    offered: u64,
    lost: u64,
}

impl Truth {
    fn read(path: &Path, from: &str, version: IpVersion, payload: u64) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut truth = Self::default();
        for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let length = payload + OVER_IP + u64::from(version.header_len());
            let is_ours =
                line["type"] == "packet" && line["from"] == from && line["version"] == version.name();
            if is_ours && (line["length"] == length || line["length"] == length + FORWARD_TSN) {
                truth.offered += 1;
                truth.lost += u64::from(line["fate"] != "delivered");
            }
        }
        truth
    }
}
