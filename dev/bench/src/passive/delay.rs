//! One-way delay of real traffic between two probes, and active one-way delay of the same packets,
//! against what the lab says of every packet.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use netaware_lab::{Lab, LabOptions, RecordedPackets, RecordedSum, Side, TruthDetail, TruthFile, scenarios};
use netaware_netns::{Running, Transport, wait_until_bound};
use netaware_record::IpVersion;
use serde_json::Value;

use super::published::DelayErrors;
use super::traffic::{self, Pace, Traffic};
use super::{Bench, OURS};
use crate::clock::{Stopwatch, pause};
use crate::contest::{Bound, Claim, Contender, Contest, Reading};
use crate::session::finish;
use crate::shell::{command, output};

/// As slow as the published path in the mean, with losses that fall anywhere.
const LOSSY: &str = "about = \"one-way delay\"
[[hop]]
forward = { rate = '100Mbit/s', delay = '40ms', loss = 0.05 }
reverse = { rate = '100Mbit/s', delay = '5ms' }
[[hop]]
rate = '200Mbit/s'
delay = '1ms'
";
/// Of it a tenth comes through when the link before is full, behind a queue that is full as well.
const FULL: &str = "about = \"one-way delay through a full queue\"
[[hop]]
rate = '1Gbit/s'
delay = '1ms'
[[hop]]
forward = { rate = '10Mbit/s', delay = '5ms', queue = { packets = 200 } }
reverse = { rate = '100Mbit/s', delay = '5ms' }
";
/// Of the collector.
const PORT: u16 = 14_234;
/// Of the reflector; the port that is not in the file takes the packets of [`traffic`].
const STAMP: u16 = 8620;
/// Of a frame, what is not IP.
const LINK: u32 = 14 + 4;

const USUAL: &[&str] = &["digest"];
const MORE: &[&str] = &["digest", "volume", "traffic", "rtt", "capacity"];

/// One line of a published table: bytes of a frame, packets per second, errors of mean, min and max
/// in us, and of the share that was lost in per cent.
type Known = (u32, f64, f64, Option<f64>, f64, f64);

/// Five times the same: what the first table of precision has.
pub(crate) fn repeated<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known: [Known; 5] = [
        (84, 3_005.0, 376.31, Some(387.1), 377.3, 7.61),
        (84, 3_005.0, 46.67, Some(48.6), 46.9, 7.27),
        (84, 3_005.0, 13.03, Some(23.5), 22.0, 7.59),
        (84, 3_005.0, 70.57, Some(99.7), 34.4, 6.92),
        (84, 3_005.0, 16.91, Some(1.5), 31.9, 6.8),
    ];
    let numbered = known.into_iter().zip(1..);
    numbered
        .map(|(line, number)| passive(bench, LOSSY, &format!(", test {number}"), line, USUAL, bench.seconds))
        .collect()
}

/// Frames of all sizes at 40 % of 100 Mbit/s.
pub(crate) fn frame_sizes<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known: [Known; 6] = [
        (84, 48_077.0, 44.75, None, 425.0, 0.33),
        (300, 15_625.0, 82.94, None, 831.0, 0.01),
        (600, 8_065.0, 39.57, None, 32.0, 0.01),
        (900, 5_435.0, 117.14, None, 110.0, 0.0),
        (1200, 4_098.0, 128.01, None, 122.0, 0.0),
        (1500, 3_289.0, 110.86, None, 101.0, 0.01),
    ];
    let full: [Known; 6] = [
        (84, 120_192.0, 802.18, None, 564.15, 58.31),
        (300, 39_063.0, 533.12, None, 1_033.3, 0.34),
        (600, 20_161.0, 863.07, None, 1_463.75, 0.02),
        (900, 13_587.0, 779.84, None, 1_313.55, 0.21),
        (1200, 10_246.0, 651.19, None, 1_262.25, 0.28),
        (1500, 8_224.0, 981.87, None, 1_621.9, 0.59),
    ];
    let known = known.map(|line| passive(bench, LOSSY, "", line, USUAL, bench.seconds));
    let full = full.map(|line| passive(bench, FULL, ", a full queue", line, USUAL, bench.seconds));
    known.into_iter().chain(full).collect()
}

/// Five tasks at a time.
pub(crate) fn tasks<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known: [Known; 6] = [
        (84, 24_038.0, 65.2, None, 30.0, 0.17),
        (300, 7_813.0, 15.8, None, 3.0, 0.06),
        (600, 4_032.0, 109.5, None, 89.0, 1.31),
        (900, 2_717.0, 51.9, None, 77.0, 0.89),
        (1200, 2_049.0, 185.5, None, 413.0, 0.01),
        (1500, 1_645.0, 132.0, None, 138.0, 0.01),
    ];
    known.map(|line| passive(bench, LOSSY, ", tasks: 5", line, MORE, bench.seconds)).into_iter().collect()
}

/// Once, three, five and ten times as long.
pub(crate) fn durations<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known = [
        (1.0, 82.94, 831.0, 0.01),
        (3.0, 56.1, 292.0, 0.01),
        (5.0, 58.9, 272.0, 0.07),
        (10.0, 94.1, 364.0, 0.1),
    ];
    let contest = |(times, mean, max, loss)| {
        let line = (300, 15_625.0, mean, None, max, loss);
        let what = format!(", {times} times as long");
        passive(bench, LOSSY, &what, line, USUAL, bench.long_seconds * times)
    };
    known.map(contest).into_iter().collect()
}

fn passive<'a>(
    bench: &'a Bench<'a>,
    path: &'static str,
    what: &str,
    (frame, rate, mean, min, max, loss): Known,
    tasks: &'static [&'static str],
    seconds: f64,
) -> Contest<'a> {
    let traffic = Traffic { frame, pace: Pace::Rate(rate), seconds };
    let run = move || {
        let fleet = Fleet::start(bench.netaware, path, tasks, &format!("ip6 and {}", traffic::FILTER))?;
        let sent = fleet.lab.within(Side::A, || {
            let socket = std::net::UdpSocket::bind("[::]:0")?;
            let to = (fleet.lab.address(Side::B, IpVersion::V6), traffic::PORT);
            let sink = fleet.lab.within(Side::B, || std::net::UdpSocket::bind(to))?;
            socket.connect(to)?;
            let sent = traffic::stream(&socket, traffic);
            // An answer that nobody is there would be a packet as well.
            pause(Duration::from_millis(500));
            drop(sink);
            sent
        })?;
        let (found, truth) = fleet.end(frame - LINK, sent.packets)?;
        Ok(against(&found, &truth))
    };
    Contest {
        title: format!("{frame} B, {rate} packets/s{what}"),
        contenders: vec![
            Contender { name: OURS, run: Box::new(run) },
            DelayErrors { mean, min, max, loss: Some(loss) }.contender(),
        ],
        claims: claims(OURS),
    }
}

fn claims(ours: &'static str) -> Vec<Claim> {
    let limits = [("mean off us", 20.0), ("min off us", 100.0), ("max off us", 100.0), ("lost off", 0.0)];
    let claim = |(figure, limit)| Claim { ours, figure, bound: Bound::Limit(limit) };
    limits.map(claim).to_vec()
}

const ACTIVE: &str = "netaware owd";
const PASSIVE: &str = "netaware probes";

/// What `netaware owd` says of its own packets, what probes say of the same ones, and what is true.
///
/// The published errors are those of the active figures against the passive ones.
pub(crate) fn active<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let contest = |(min, max, mean, number): (f64, f64, f64, u32)| {
        let both = std::rc::Rc::new(std::cell::RefCell::new(None::<Reading>));
        let kept = std::rc::Rc::clone(&both);
        let first = move || {
            let (active, passive) = same_packets(bench)?;
            *kept.borrow_mut() = Some(passive);
            Ok(active)
        };
        // Both are figures of one run: whichever comes first makes it.
        let second = move || match both.borrow_mut().take() {
            Some(passive) => Ok(passive),
            None => same_packets(bench).map(|(_, passive)| passive),
        };
        let mut claims_of_both = claims(ACTIVE);
        claims_of_both.extend(claims(PASSIVE));
        Contest {
            title: format!("600 B, 4,167 packets/s, test {number}"),
            contenders: vec![
                Contender { name: ACTIVE, run: Box::new(first) },
                Contender { name: PASSIVE, run: Box::new(second) },
                DelayErrors { mean: mean * 1e3, min: Some(min * 1e3), max: max * 1e3, loss: None }
                    .contender(),
            ],
            claims: claims_of_both,
        }
    };
    let known = [
        (113.313, 11.44, 46.38, 1),
        (569.786, 9.14, 1.81, 2),
        (186.279, 8.89, 0.84, 3),
        (259.958, 10.77, 2.5, 4),
        (28.78, 9.19, 9.62, 5),
        (103.013, 9.39, 2.02, 6),
        (13.294, 0.81, 1.59, 7),
    ];
    known.map(contest).into_iter().collect()
}

/// Bytes of a frame of the active flow.
const ACTIVE_FRAME: u32 = 600;

fn same_packets(bench: &Bench<'_>) -> Result<(Reading, Reading)> {
    let fleet = Fleet::start(bench.netaware, LOSSY, USUAL, &format!("ip6 and udp and dst port {STAMP}"))?;
    let mut reflector = fleet.lab.command(Side::B, bench.netaware);
    reflector.args(["serve", "--port", "0", &format!("--stamp={STAMP}")]);
    let reflector = quietly(reflector)?;
    wait_until_bound(reflector.id(), Transport::Udp, STAMP)?;
    let mut owd = fleet.lab.command(Side::A, bench.netaware);
    let payload = format!("{}B", ACTIVE_FRAME - LINK - 40 - 8);
    let (time, port) = (format!("{}s", bench.seconds), STAMP.to_string());
    owd.args(["owd", "b", "-6", "--port", &port, "--no-save", "--format", "json"]);
    owd.args(["-i", "240us", "-t", &time, "-l", &payload]);
    let record: Value = serde_json::from_str(&finish(&mut owd)?.stdout).context("owd printed no record")?;
    drop(reflector);
    let way = forward(&record).with_context(|| format!("no forward way in {record}"))?;
    let sent = way["sent"].as_u64().context("not said how many were sent")?;
    let (found, truth) = fleet.end(ACTIVE_FRAME - LINK, sent)?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let delay = &way["forward"]["delay"];
    let active = Found {
        unobserved: 0,
        lost: way["forward"]["lost"].as_u64().unwrap_or(0),
        mean: number(&delay["mean"]),
        min: number(&delay["min"]),
        max: number(&delay["max"]),
    };
    Ok((against(&active, &truth), against(&found, &truth)))
}

/// The object that tells of the way there, wherever the record has it.
fn forward(value: &Value) -> Option<&Value> {
    match value {
        Value::Object(fields) if fields.contains_key("forward") && fields.contains_key("reverse") => {
            Some(value)
        }
        Value::Object(fields) => fields.values().find_map(forward),
        Value::Array(items) => items.iter().find_map(forward),
        _ => None,
    }
}

/// Delays in ns.
#[derive(Debug)]
struct Found {
    lost: u64,
    /// Packets of which nobody can say whether they came: a capture lost some then.
    unobserved: u64,
    mean: f64,
    min: f64,
    max: f64,
}

fn against(found: &Found, truth: &RecordedSum) -> Reading {
    let off = |found: f64, truth: f64| (found - truth).abs() / 1e3;
    vec![
        ("mean off us", off(found.mean, truth.mean)),
        ("min off us", off(found.min, truth.min)),
        ("max off us", off(found.max, truth.max)),
        ("lost off", found.lost.abs_diff(truth.sent - truth.delivered) as f64),
        (
            "loss off %",
            100.0 * found.lost.abs_diff(truth.sent - truth.delivered) as f64 / truth.sent.max(1) as f64,
        ),
        ("unobserved", found.unobserved as f64),
        ("true mean ms", truth.mean / 1e6),
        ("true loss %", 100.0 * (truth.sent - truth.delivered) as f64 / truth.sent as f64),
        ("device's queue us", truth.waited_mean / 1e3),
        ("longest there us", truth.waited_max / 1e3),
        ("not stamped", truth.unstamped as f64),
    ]
}

/// A collector and two probes at both ends of a path.
struct Fleet {
    lab: Lab,
    folder: tempfile::TempDir,
    netaware: std::path::PathBuf,
    _programs: Vec<Running>,
}

impl Fleet {
    fn start(netaware: &Path, path: &str, tasks: &[&str], filter: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let scenario = scenarios::parse("bench", path.to_owned())?;
        let truth = TruthFile { path: folder.path().join("truth.ndjson"), detail: TruthDetail::Packets };
        let options = LabOptions { prefix: "bench".to_owned(), truth: Some(truth), ..LabOptions::default() };
        let lab = Lab::up(&scenario.scenario, &options)?;
        join_for_management(&lab)?;
        fs::write(folder.path().join("collect.toml"), plan(tasks, filter))?;
        for name in ["a", "b"] {
            fs::write(folder.path().join(format!("{name}.key")), format!("the key of {name}\n"))?;
        }
        let mut collect = lab.command(Side::B, netaware);
        collect.args(["collect", "run", "--config"]).arg(folder.path().join("collect.toml"));
        let mut programs = vec![quietly(collect)?];
        wait_until_bound(programs[0].id(), Transport::Tcp, PORT)?;
        let at = format!("[{MANAGEMENT}2]:{PORT}");
        for (name, side) in [("a", Side::A), ("b", Side::B)] {
            let mut probe = lab.command(side, netaware);
            probe.args(["probe", "--collector", &at, "--name", name, "-i", "lab", "--key-file"]);
            probe.arg(folder.path().join(format!("{name}.key")));
            probe.arg("--state").arg(folder.path().join(format!("state-{name}")));
            programs.push(quietly(probe)?);
        }
        // They connect, get their tasks and watch for longer than the join waits: only then is a
        // loss known to be one.
        pause(Duration::from_secs(6));
        Ok(Self { lab, folder, netaware: netaware.to_owned(), _programs: programs })
    }

    /// What the collector stored of packets from a to b once it has all of them, and what is true
    /// of them.
    fn end(self, length: u32, sent: u64) -> Result<(Found, RecordedSum)> {
        let waiting = Stopwatch::start();
        let row = loop {
            let row = self.stored()?;
            if row["packets"].as_u64() >= Some(sent) {
                break row;
            }
            ensure!(waiting.elapsed() < JOINED_WITHIN, "of {sent} packets the collector has: {row}");
            pause(Duration::from_millis(500));
        };
        let delay = &row["delay"];
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let found = Found {
            lost: row["lost"].as_u64().context("a row without losses")?,
            unobserved: row["unobserved"].as_u64().unwrap_or(0),
            mean: number(&delay["sum_ns"]) / number(&delay["count"]),
            min: number(&delay["min"]),
            max: number(&delay["max"]),
        };
        self.lab.end()?;
        let packets = RecordedPackets::read(&self.folder.path().join("truth.ndjson"))?;
        let truth = packets.sum(|packet| (packet.from, packet.length) == (Some(Side::A), Some(length)));
        ensure!(truth.sent <= sent, "{sent} were sent, and the lab saw {}", truth.sent);
        // What the device behind the first probe dropped is lost as well.
        Ok((found, RecordedSum { sent, ..truth }))
    }

    /// The row from a to b; nothing as long as there is none.
    fn stored(&self) -> Result<Value> {
        let store = self.folder.path().join("netaware-collect/fleet.db");
        let store = store.to_str().context("a folder whose name is no UTF-8")?;
        let program = self.netaware.to_str().context("a program whose name is no UTF-8")?;
        let arguments = ["results", "delays", "--resolution", ALL, "--format", "json", "--store", store];
        let text = output(&mut command(program, &arguments))?;
        let rows: Value = serde_json::from_str(&text).context("no rows of delays")?;
        let mut found = rows.as_array().into_iter().flatten().map(|item| &item["row"]);
        let ours = |row: &&Value| (row["from"].as_str(), row["to"].as_str()) == (Some("a"), Some("b"));
        Ok(found.find(ours).cloned().unwrap_or_default())
    }
}

/// A hundred years: spans of this length begin in 1970, so that midnight cannot make two of one
/// run.
const ALL: &str = "876000h";

/// A second link between the hosts, so that reports do not travel on what is measured, as in the
/// published tests.
fn join_for_management(lab: &Lab) -> Result<()> {
    let ip = |side, words: &[&str]| output(lab.command(side, "ip").args(words)).map(drop);
    let far = lab.namespace(Side::B);
    ip(Side::A, &["link", "add", "manage", "type", "veth", "peer", "name", "manage", "netns", &far])?;
    for (side, host) in [(Side::A, 1), (Side::B, 2)] {
        ip(side, &["link", "set", "manage", "up"])?;
        ip(side, &["address", "add", &format!("{MANAGEMENT}{host}/64"), "dev", "manage", "nodad"])?;
    }
    Ok(())
}

/// Addresses begin with this.
const MANAGEMENT: &str = "fd00:88::";

const JOINED_WITHIN: Duration = Duration::from_secs(30);

fn quietly(mut command: std::process::Command) -> Result<Running> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Running::start(&mut command)?)
}

/// What the fleet does.
fn plan(tasks: &[&str], filter: &str) -> String {
    let mut plan = format!(
        "listen = [\"[::]:{PORT}\"]\nperiod = \"1s\"\n[probes.a]\nkey_file = \"a.key\"\n[probes.b]\nkey_file = \"b.key\"\n"
    );
    for kind in tasks {
        let share = if *kind == "digest" { "share = 1.0\n" } else { "" };
        // Writing to a string cannot fail.
        let _ =
            write!(plan, "[tasks.{kind}]\non = [\"all\"]\nkind = \"{kind}\"\nfilter = \"{filter}\"\n{share}");
    }
    plan += "[joins.path]\ntask = \"digest\"\npoints = [\"a\", \"b\"]\npatience = \"1s\"\n";
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_there_is_found_wherever_it_stands() {
        let record = serde_json::json!({"a": [{"b": {"forward": 1, "reverse": 2, "sent": 3}}]});
        assert_eq!(forward(&record).unwrap()["sent"], 3);
        assert!(forward(&serde_json::json!({"a": [1, "forward"]})).is_none());
    }

    #[test]
    fn errors_are_distances_from_the_truth() {
        let found = Found { lost: 3, unobserved: 0, mean: 2_000.0, min: 500.0, max: 9_000.0 };
        let truth = RecordedSum {
            sent: 10,
            delivered: 5,
            mean: 1_000.0,
            min: 1_000.0,
            max: 9_000.0,
            ..RecordedSum::default()
        };
        let reading = against(&found, &truth);
        assert_eq!(
            reading[..4],
            [("mean off us", 1.0), ("min off us", 0.5), ("max off us", 0.0), ("lost off", 2.0)]
        );
    }
}
