//! Two collectors with half of the digests each, beside one that has them all, each a process and
//! each probe as well:
//!
//! ```text
//!   host a: probe ─► whole                        host b: probe ─► whole       collectors: whole, one (1/2), two (2/2)
//!           probe ─► one, two   ── the path ──            probe ─► one, two
//! ```
//!
//! What `netaware results delays` says of the two stores together is what it says of the one: every
//! count, every delay and its histogram, IPDV and reordering too, because the one compares the same
//! neighbours (`lanes = 2`).

use std::path::{Path, PathBuf};

use netaware_collector::Client;
use netaware_io::clock;
use netaware_lab::{Lab, LabOptions, RecordedPackets, Side, TruthDetail, TruthFile};
use netaware_netns::{Transport, permitted, wait_until_bound};
use netaware_record::IpVersion;
use netaware_record::passive::DelayRow;
use netaware_testkit::figures::is_exact;
use netaware_testkit::lab;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::{Span, Wall};
use serde_json::Value;

use super::{ALL, PER_PICTURE, VIDEO_LENGTH, is_row, video};

/// As the collectors' file has it.
const PERIOD: Span = Span::from_millis(500);
const PICTURES: u64 = 75;

/// So much of each that a run in which a version shows none of it does not come by chance: of the
/// delayed packets of a picture two thirds have one of their own lane behind them, that overtakes.
const PATH: &str = "about = \"shards\"
[[hop]]
rate = '100Mbit/s'
delay = '5ms'
loss = 0.03
duplication = 0.04
[hop.reordering]
probability = 0.08
by = '3ms'
[[hop]]
rate = '200Mbit/s'
delay = '1ms'
";

/// Name, part, port, and what is said of its join.
const COLLECTORS: [(&str, &str, u16, &str); 3] =
    [("whole", "1/1", 14_301, "lanes = 2"), ("one", "1/2", 14_302, ""), ("two", "2/2", 14_303, "")];

fn file(port: u16, more: &str) -> String {
    format!(
        "listen = [\"[::]:{port}\"]
period = \"500ms\"
secret_file = \"../secret\"
[probes.a]
key_file = \"../a.key\"
[probes.b]
key_file = \"../b.key\"
[tasks.delay]
on = [\"all\"]
kind = \"digest\"
filter = \"udp port 5004\"
[joins.path]
task = \"delay\"
points = [\"a\", \"b\"]
patience = \"500ms\"
clocks_apart = \"100ms\"
{more}
"
    )
}

struct Three {
    lab: Lab,
    collectors: Vec<Program>,
    _probes: Vec<Program>,
    folder: tempfile::TempDir,
}

impl Three {
    fn start(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let truth = TruthFile { path: folder.path().join("truth.ndjson"), detail: TruthDetail::Packets };
        let options = LabOptions { seed, truth: Some(truth), ..lab::options() };
        let lab = lab::start(&lab::scenario(PATH), &options);
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(format!("{name}.key")), format!("the key of {name}\n"))
                .unwrap();
        }
        // The same digests everywhere, so that the same packets are neighbours in a lane.
        std::fs::write(folder.path().join("secret"), [7; 32]).unwrap();
        let start = |(name, part, port, more): &(&str, &str, u16, &str)| {
            let own = folder.path().join(name);
            std::fs::create_dir(&own).unwrap();
            std::fs::write(own.join("collect.toml"), file(*port, more)).unwrap();
            let mut collect = lab.command(Side::B, netaware_path());
            collect.args(["collect", "run", "--shard", part, "--config"]).arg(own.join("collect.toml"));
            let collector = Program::start(collect);
            wait_until_bound(collector.id(), Transport::Tcp, *port)
                .unwrap_or_else(|error| panic!("{error}: {}", collector.complained()));
            collector
        };
        let collectors: Vec<Program> = COLLECTORS.iter().map(start).collect();
        let mut probes = Vec::new();
        for (name, side) in [("a", Side::A), ("b", Side::B)] {
            for (which, ports) in [("whole", &[14_301][..]), ("both", &[14_302, 14_303])] {
                let mut probe = lab.command(side, netaware_path());
                probe.args(["probe", "--name", name, "-i", "lab", "--key-file"]);
                probe.arg(folder.path().join(format!("{name}.key")));
                probe.arg("--state").arg(folder.path().join(format!("state-{name}-{which}")));
                for port in ports {
                    let at = std::net::SocketAddr::new(lab.address(Side::B, IpVersion::V6), *port);
                    probe.args(["--collector", &at.to_string()]);
                }
                probes.push(Program::start(probe));
            }
        }
        Self { lab, collectors, _probes: probes, folder }
    }

    fn json(&self, at: usize, path: &str) -> Value {
        let port = COLLECTORS[at].2;
        let asked = self.lab.within(Side::B, || {
            let client =
                Client::new(&format!("http://[::1]:{port}"), None, None).map_err(std::io::Error::other)?;
            client.ask("GET", path, "").map_err(std::io::Error::other)
        });
        let answer =
            asked.unwrap_or_else(|why| panic!("{path}: {why}; {}", self.collectors[at].complained()));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    fn until(&self, what: &str, within: Span, holds: impl Fn(&Self, usize) -> bool) {
        let due = clock::now() + within;
        for (at, (name, ..)) in COLLECTORS.iter().enumerate() {
            while !holds(self, at) {
                let complained = self.collectors[at].complained();
                assert!(clock::now() < due, "{name}: not within {within}: {what}; {complained}");
                clock::sleep(Span::from_millis(100));
            }
        }
    }

    fn watches(&self, at: usize) -> bool {
        let probes = self.json(at, "/api/v1/probes");
        let probes = probes.as_array().unwrap();
        probes.len() == 2 && probes.iter().all(|probe| probe["counts"]["batches"].as_u64() >= Some(4))
    }

    /// Packets from a to b that a collector has joined, lost ones included.
    fn packets(&self, at: usize, version: IpVersion) -> u64 {
        let rows = self.json(at, "/api/v1/delays?from=-1h&resolution=36500d")["items"].clone();
        let found = rows.as_array().unwrap().iter().find(|item| is_row(item, "a", "b", version));
        found.and_then(|item| item["row"]["packets"].as_u64()).unwrap_or_default()
    }

    /// Waits until so many packets of each version are joined, or a capture has lost some, so that
    /// they never will be.
    fn joined(&self, by: &str, all: u64, packets: &dyn Fn(&Self, IpVersion) -> u64) {
        let due = clock::now() + Span::from_secs(30);
        loop {
            let found = [IpVersion::V4, IpVersion::V6].map(|version| packets(self, version));
            if found == [all; 2] || self.missed() {
                return;
            }
            assert!(clock::now() < due, "{by}: {found:?} packets of {all} are joined");
            clock::sleep(Span::from_millis(100));
        }
    }

    fn missed(&self) -> bool {
        (0..COLLECTORS.len()).any(|at| {
            let probes = self.json(at, "/api/v1/probes");
            probes.as_array().unwrap().iter().any(|probe| probe["counts"]["lost"].as_u64() != Some(0))
        })
    }

    /// Ends a run that is inconclusive because captures lost packets. Neither the one collector nor
    /// the two may count as lost on the network what the path delivered.
    fn end_without_captures(self, from: Wall) {
        let stores = [0, 1, 2].map(|at| self.store(at));
        let [whole, one, two] = stores.each_ref().map(PathBuf::as_path);
        let found = [results(&[whole], from, ALL), results(&[one, two], from, ALL)];
        let file = self.folder.path().join("truth.ndjson");
        let Self { lab, folder: _folder, .. } = self;
        if !is_exact(&lab.end().unwrap()) {
            return;
        }
        let truth = RecordedPackets::read(&file).unwrap();
        for row in found.iter().flatten().map(row) {
            let sent = truth.sum(|packet| {
                let length =
                    if row.version == Some(IpVersion::V6) { VIDEO_LENGTH } else { VIDEO_LENGTH - 20 };
                let from = if row.from == "a" { Side::A } else { Side::B };
                (packet.from, packet.version, packet.length) == (Some(from), row.version, Some(length))
            });
            assert!(row.lost <= sent.sent - sent.delivered, "{sent:?}: {row:?}");
        }
        netaware_testkit::inconclusive("captures lost packets");
    }

    fn store(&self, at: usize) -> PathBuf {
        self.folder.path().join(COLLECTORS[at].0).join("netaware-collect/fleet.db")
    }
}

/// What the command says of these stores together, of what began at `from` or later.
fn results(stores: &[&Path], from: Wall, resolution: &str) -> Vec<Value> {
    let mut results = std::process::Command::new(netaware_path());
    let from = jiff::Timestamp::from_nanosecond(from.0.into()).unwrap().to_string();
    results.args(["results", "delays", "--from", &from, "--resolution", resolution, "--format", "json"]);
    for store in stores {
        results.arg("--store").arg(store);
    }
    let found = Program::start(results).finish_within(Span::from_secs(20)).exits_with(0);
    serde_json::from_str(&found.stdout).unwrap()
}

/// All but sums of squares, which depend on the order in the last bit.
fn row(point: &Value) -> DelayRow {
    let mut row: DelayRow = serde_json::from_value(point["row"].clone()).unwrap();
    (row.delay.sum_squares, row.ipdv.sum_squares) = (0.0, 0.0);
    row
}

#[test]
fn two_collector_processes_say_together_what_one_says() {
    if !permitted() {
        return;
    }
    let three = Three::start(1);
    three.until("both probes watch", Span::from_secs(30), Three::watches);
    // From the next period on, so that nothing of the probes' beginning is in what is compared.
    let from = Wall((clock::wall().0 / PERIOD.0 + 1) * PERIOD.0);
    clock::sleep_until(clock::now() + from.since(clock::wall()));
    video(&three.lab, PICTURES);
    let all = PICTURES * PER_PICTURE;
    three.joined("the whole", all, &|it, version| it.packets(0, version));
    three.joined("the halves", all, &|it, version| it.packets(1, version) + it.packets(2, version));
    if three.missed() {
        return three.end_without_captures(from);
    }
    let stores = [0, 1, 2].map(|at| three.store(at));
    let [whole, one, two] = stores.each_ref().map(PathBuf::as_path);
    let of_one = results(&[whole], from, ALL);
    let halves = [one, two].map(|store| results(&[store], from, ALL));
    let both = results(&[one, two], from, ALL);
    println!(
        "halves have {:?} packets of {}",
        halves.each_ref().map(|half| half[0]["row"]["packets"].clone()),
        of_one[0]["row"]["packets"]
    );
    assert_eq!((of_one.len(), both.len()), (2, 2), "both versions, one way: {of_one:#?} {both:#?}");
    for (of_one, both) in of_one.iter().zip(&both) {
        let (whole, joint) = (row(of_one), row(both));
        println!(
            "{:?}: {} packets, {} matched, {} lost, {} unobserved, {} duplicates, {} reordered",
            whole.version,
            whole.packets,
            whole.matched,
            whole.lost,
            whole.unobserved,
            whole.duplicates,
            whole.reordered
        );
        assert_eq!(joint, whole);
        for name in ["p50", "p95", "p99", "pdv", "loss", "with_losses"] {
            assert_eq!(both[name], of_one[name], "{name}");
        }
        assert!(whole.lost > 0 && whole.duplicates > 0 && whole.reordered > 0, "there was something to tell");
    }
    // Period by period too.
    let fine = [results(&[whole], from, "0s"), results(&[one, two], from, "0s")];
    assert_eq!(fine[0].iter().map(row).collect::<Vec<_>>(), fine[1].iter().map(row).collect::<Vec<_>>());
    // Each half is a half.
    assert_eq!(halves.each_ref().map(Vec::len), [2, 2]);
    for half in halves.iter().flatten() {
        let packets = half["row"]["packets"].as_u64().unwrap();
        assert!((all / 3..all * 2 / 3).contains(&packets), "{half:#}");
    }
    let six = both.iter().map(row).find(|row| row.version == Some(IpVersion::V6)).unwrap();
    let file = three.folder.path().join("truth.ndjson");
    let Three { lab, folder: _folder, .. } = three;
    lab.end().unwrap();
    let truth = RecordedPackets::read(&file)
        .unwrap()
        .sum(|packet| packet.from == Some(Side::A) && packet.length == Some(VIDEO_LENGTH));
    assert_eq!((six.packets, six.lost, six.unobserved), (truth.sent, truth.sent - truth.delivered, 0));
}
