//! A fleet end to end, every program the one that is shipped: a collector and two probes beside a lossy path over which real
//! programs send.
//!
//! ```text
//!   host a: probe, iperf3, a video's packets ── 2 routers' path, loss and delay by way ── host b: probe, collector, iperf3 -s
//! ```
//!
//! What the page (drawn by a browser), the API and `netaware results delays` say is held against the lab's own record of every packet: packets and losses to the
//! last one, delays to microseconds in one of some runs, as a machine whose cores are taken away spoils those. Probes and collector
//! talk over IPv6, on the same path; everything else over IPv4 is traffic. Needs root: `cargo xtask netns`.

mod full;
mod nat;
mod shards;
mod sites;
mod stamped;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use netaware_collector::Client;
use netaware_io::clock;
use netaware_lab::{Lab, LabOptions, RecordedPackets, Side, TruthDetail, TruthFile};
use netaware_netns::{Transport, in_one_of, permitted, wait_until_bound};
use netaware_record::IpVersion;
use netaware_testkit::drawn::Drawn;
use netaware_testkit::lab;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;
use serde_json::Value;

const RUNS: usize = 4;
const PORT: u16 = 14_234;
const VIDEO: u16 = 5004;
/// Bytes of an IPv6 packet of the video: no other has as many.
const VIDEO_LENGTH: u32 = 40 + 8 + VIDEO_BYTES as u32;
const VIDEO_BYTES: usize = 1111;

const PATH: &str = "about = \"fleet\"
[[hop]]
forward = { rate = '100Mbit/s', delay = '5ms', loss = 0.02 }
reverse = { rate = '100Mbit/s', delay = '12ms', loss = 0.01 }
[[hop]]
rate = '200Mbit/s'
delay = '1ms'
";

const FLEET: &str = r#"
listen = ["[::]:14234"]
period = "1s"
[probes.a]
key_file = "a.key"
[probes.b]
key_file = "b.key"
[tasks.delay]
on = ["all"]
kind = "digest"
filter = "ip or (ip6 and udp port 5004)"
share = 1.0
[joins.path]
task = "delay"
points = ["a", "b"]
patience = "1s"
"#;

struct Fleet {
    lab: Lab,
    collector: Program,
    _probes: [Program; 2],
    folder: tempfile::TempDir,
}

fn start(seed: u64, folder: tempfile::TempDir) -> Fleet {
    let truth = TruthFile { path: folder.path().join("truth.ndjson"), detail: TruthDetail::Packets };
    let options = LabOptions { seed, truth: Some(truth), ..lab::options() };
    let lab = lab::start(&lab::scenario(PATH), &options);
    std::fs::write(folder.path().join("collect.toml"), FLEET).unwrap();
    for name in ["a", "b"] {
        std::fs::write(folder.path().join(format!("{name}.key")), format!("the key of {name}\n")).unwrap();
    }
    let mut collect = lab.command(Side::B, netaware_path());
    collect.args(["collect", "run", "--config"]).arg(folder.path().join("collect.toml"));
    let collector = Program::start(collect);
    wait_until_bound(collector.id(), Transport::Tcp, PORT)
        .unwrap_or_else(|error| panic!("{error}: {}", collector.complained()));
    let at = SocketAddr::new(lab.address(Side::B, IpVersion::V6), PORT).to_string();
    let probes = [("a", Side::A), ("b", Side::B)].map(|(name, side)| {
        let mut probe = lab.command(side, netaware_path());
        probe.args(["probe", "--collector", &at, "--name", name, "-i", "lab", "--key-file"]);
        probe.arg(folder.path().join(format!("{name}.key")));
        probe.arg("--state").arg(folder.path().join(format!("state-{name}")));
        Program::start(probe)
    });
    Fleet { lab, collector, _probes: probes, folder }
}

/// A machine that had no time for its captures says nothing of the joins.
fn captured_all(probes: &Value) -> Result<(), String> {
    let lost: Vec<_> = probes.as_array().unwrap().iter().map(|probe| &probe["counts"]["lost"]).collect();
    if lost == [0, 0] { Ok(()) } else { Err(format!("captures lost {lost:?} packets")) }
}

impl Fleet {
    /// Ends the lab; what became of every packet.
    fn truth(self) -> RecordedPackets {
        let Self { lab, folder, .. } = self;
        lab.end().unwrap();
        RecordedPackets::read(&folder.path().join("truth.ndjson")).unwrap()
    }

    fn ask(&self, path: &str) -> String {
        self.tell("GET", path, "")
    }

    fn tell(&self, method: &str, path: &str, body: &str) -> String {
        let asked = self.lab.within(Side::B, || {
            let client =
                Client::new(&format!("http://[::1]:{PORT}"), None, None).map_err(std::io::Error::other)?;
            client.ask(method, path, body).map_err(std::io::Error::other)
        });
        let answer = asked.unwrap_or_else(|why| panic!("{path}: {why}; {}", self.collector.complained()));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask(path)).unwrap()
    }

    fn until(&self, what: &str, within: Span, holds: impl Fn(&Self) -> bool) {
        let due = clock::now() + within;
        while !holds(self) {
            assert!(clock::now() < due, "not within {within}: {what}; {}", self.collector.complained());
            clock::sleep(Span::from_millis(100));
        }
    }

    /// Both probes have run their task for three periods or more: who may have passed a point before the other first is lost only
    /// if that point watched for its patience and twice what clocks may be apart before.
    fn watches(&self) -> bool {
        let probes = self.json("/api/v1/probes");
        let probes = probes.as_array().unwrap();
        probes.len() == 2 && probes.iter().all(|probe| probe["counts"]["batches"].as_u64() >= Some(4))
    }

    /// Nothing more is to come of what was sent up to now: two periods of silence have been joined.
    fn has_all(&self) -> bool {
        let joins = self.json("/api/v1/joins");
        let view = &joins[0];
        (view["held"].as_u64(), view["taken"].as_u64() > Some(0)) == (Some(0), true)
    }

    /// The page, with the path of the video from a to b chosen.
    fn drawn(&self) -> Drawn {
        let chosen = "pair=a%2Cb&task=path&method=passive&version=6";
        Drawn::of(self.lab.command(Side::B, "chromium"), &format!("http://[::1]:{PORT}/#{chosen}"))
    }

    fn row(points: &Value, from: &str, to: &str, version: IpVersion) -> Value {
        let is_it = |item: &&Value| {
            let row = &item["row"];
            (row["from"].as_str(), row["to"].as_str(), row["version"].as_str())
                == (Some(from), Some(to), Some(version.name()))
        };
        points
            .as_array()
            .unwrap()
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no {from} {to}: {points:#}"))
            .clone()
    }
}

/// A picture of six packets each 40 ms, over both versions.
fn video(lab: &Lab) {
    let addresses = [IpVersion::V4, IpVersion::V6].map(|version| lab.address(Side::B, version));
    // Somebody has to be there: an answer that nobody is would be a packet as well.
    let sinks = addresses.map(|to| lab.within(Side::B, || UdpSocket::bind((to, VIDEO))).unwrap());
    let mut due = clock::now();
    lab.within(Side::A, || {
        let sources = [UdpSocket::bind("0.0.0.0:0")?, UdpSocket::bind("[::]:0")?];
        for picture in 0..100_u32 {
            for packet in 0..6_u32 {
                let mut bytes = vec![0; VIDEO_BYTES];
                bytes[..8].copy_from_slice(&(u64::from(picture) << 32 | u64::from(packet)).to_be_bytes());
                for (source, to) in sources.iter().zip(addresses) {
                    source.send_to(&bytes, (to, VIDEO))?;
                }
            }
            due += Span::from_millis(40);
            clock::sleep_until(due);
        }
        Ok(())
    })
    .unwrap();
    drop(sinks);
}

/// Real programs over IPv4: a bulk transfer over TCP, and datagrams at a rate.
fn iperf3(lab: &Lab) {
    for options in [&["-t", "3"][..], &["-u", "-b", "4M", "-l", "1000", "-t", "3"]] {
        // Datagrams begin with one each way that is not repeated when the path loses it: then both ends wait in vain.
        let begun = (0..5).any(|_| iperf3_once(lab, options));
        assert!(begun, "iperf3 {options:?} never came to its end");
    }
}

/// Whether iperf3 came to its end.
fn iperf3_once(lab: &Lab, options: &[&str]) -> bool {
    let mut server = lab.command(Side::B, "iperf3");
    server.args(["-4", "-s", "-1"]);
    let server = Program::start(server);
    wait_until_bound(server.id(), Transport::Tcp, 5201).unwrap();
    let mut client = lab.command(Side::A, "timeout");
    client.args(["10", "iperf3", "-4", "-c", &lab.address(Side::B, IpVersion::V4).to_string()]).args(options);
    Program::start(client).finish_within(Span::from_secs(20)).code == Some(0)
}

/// Delays as the rows have them, ns.
fn delay(row: &Value) -> [f64; 3] {
    let of = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{row:#}"));
    [of(&row["mean"]), of(&row["row"]["delay"]["min"]), of(&row["row"]["delay"]["max"])]
}

/// The page has this row once, with the figures that the API gives, to its last digit.
fn page_says(page: &Drawn, row: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names =
        [text(&row["row"]["from"]), text(&row["row"]["to"]), text(&row["row"]["version"]).replace("IPv", "")];
    let [from, to, version] = &names;
    let line = page.line("paths", &[("from", from), ("to", to), ("IP", version)]);
    let [mean, min, max] = delay(row).map(|ns| format!("{:.3} ms", ns / 1e6));
    let loss = format!("{:.3} %", row["loss"].as_f64().unwrap() * 100.0);
    let shown = ["mean", "min", "max", "loss", "unobserved"].map(|name| line[name].as_str());
    assert_eq!(shown, [&*mean, &min, &max, &loss, "0"], "{row:#}");
    let warned = row["row"]["warnings"][0].as_str().unwrap_or("none");
    assert!(line["warnings"].starts_with(warned), "{line:?}: {row:#}");
    let map = page.shapes("map");
    assert!(map.contains(&format!("class=\"middle\">{mean} (v{version})</text>")), "{mean}: {map}");
    assert!(map.contains(&format!("class=\"edge-bad\"><title>{from} → {to}</title>")), "{map}");
    if names == ["a", "b", "6"] {
        let ns = |value: &Value| format!("{:.3} ms", value.as_f64().unwrap() / 1e6);
        assert_eq!(page.figure("PDV p95"), ns(&row["pdv"]["p95"]));
        let ways = page.table("ways");
        assert!(
            ways.iter().any(|way| way["points in order"] == "a → b" && way["share"].ends_with(" %")),
            "{ways:#?}"
        );
        assert_eq!(page.figure("lost"), row["row"]["lost"].to_string());
        let pictures =
            ["delay", "variation", "clock", "loss", "rate", "histogram"].map(|id| page.picture(id));
        assert!(pictures.iter().all(|shapes| *shapes > 0), "{pictures:?}");
        // One clock stamps at both ends of the lab.
        let clock = page.shapes("clock");
        assert!(clock.contains("<title>last: bound 0.00</title>"), "{clock}");
        assert_eq!([page.figure("clocks"), page.figure("± clocks")], ["same host", "0.000 ms"]);
    }
}

/// The page has both probes, their captures and their one task, and none of them lost or missed anything.
fn page_says_all_is_well(page: &Drawn, probes: &Value) {
    let map = page.shapes("map");
    for (name, probe) in ["a", "b"].iter().zip(probes.as_array().unwrap()) {
        assert_eq!(map.matches(&format!("class=\"middle name\">{name}</text>")).count(), 1, "{map}");
        let line = page.line("probes", &[("probe", name)]);
        let shown = ["state", "lost", "given up", "missed", "clock steps", "refused tasks"];
        assert_eq!(shown.map(|column| line[column].as_str()), ["connected", "0", "0", "0", "0", ""]);
        let seen: u64 = line["seen"].replace(',', "").parse().unwrap();
        assert!(seen > 500 && Some(seen) >= probe["counts"]["seen"].as_u64(), "{line:?}: {probe:#}");
        let line = page.line("captures", &[("probe", name), ("interface", "lab")]);
        let shown = ["lost in ring", "lost in kernel", "malformed", "link"];
        assert_eq!(shown.map(|column| line[column].as_str()), ["0", "0", "0", "up"]);
    }
    assert_eq!(map.matches("class=\"probe-up\"").count(), 2, "{map}");
    let task = page.line("tasks", &[("task", "delay")]);
    assert_eq!([&*task["kind"], &*task["on"]], ["digest", "all"]);
    assert!(task["words"].contains("filter=ip or (ip6 and udp port 5004)"), "{task:?}");
    assert!(page.table("runs")[0].values().any(|text| text.starts_with("no task measures throughput")));
}

/// How far mean, minimum and maximum may be from the lab's own.
const CLOSE_NS: [f64; 3] = [20e3, 20e3, 100e3];

/// A hundred years: spans of this length begin in 1970, so that midnight cannot make two of one run.
const ALL: &str = "876000h";

fn stored(store: &Path) -> Value {
    let mut results = std::process::Command::new(netaware_path());
    results.args(["results", "delays", "--resolution", ALL, "--format", "json", "--store"]).arg(store);
    let found = Program::start(results).finish_within(Span::from_secs(20)).exits_with(0);
    serde_json::from_str(&found.stdout).unwrap()
}

#[test]
fn delay_and_loss_of_real_traffic_are_the_paths_own() {
    if !permitted() {
        return;
    }
    let mut seeds = 1..;
    in_one_of(RUNS, || {
        let fleet = start(seeds.next().unwrap_or_default(), tempfile::tempdir().unwrap());
        fleet.until("both probes watch", Span::from_secs(20), Fleet::watches);
        video(&fleet.lab);
        iperf3(&fleet.lab);
        // What is on its way arrives, is reported and joined.
        clock::sleep(Span::from_secs(3));
        fleet.until("all is joined", Span::from_secs(30), Fleet::has_all);
        clock::sleep(Span::from_millis(500));

        let probes = fleet.json("/api/v1/probes");
        captured_all(&probes)?;
        let page = fleet.drawn();
        page_says_all_is_well(&page, &probes);
        let api = fleet.json("/api/v1/delays?from=-1h&resolution=36500d")["items"].clone();
        let results = stored(&fleet.folder.path().join("netaware-collect/fleet.db"));
        let truth = fleet.truth();
        let (four, six) = (IpVersion::V4, IpVersion::V6);
        let (to_b, to_a) = (("a", Side::A, "b"), ("b", Side::B, "a"));
        // Counts and what the page says are right in each run, delays in one at least.
        let mut far = None;
        for ((from, side, to), version, length) in
            [(to_b, four, None), (to_a, four, None), (to_b, six, Some(VIDEO_LENGTH))]
        {
            let row = Fleet::row(&api, from, to, version);
            let count = |name: &str| row["row"][name].as_u64().unwrap();
            let true_one = truth.sum(|packet| {
                (packet.from, packet.version) == (Some(side), Some(version))
                    && length.is_none_or(|length| packet.length == Some(length))
            });
            println!("{from} to {to}, {}: {true_one:?}", version.name());
            assert!(true_one.sent > 500, "{true_one:?}");
            assert_eq!(
                (count("packets"), count("lost"), count("unobserved")),
                (true_one.sent, true_one.sent - true_one.delivered, 0),
                "{row:#}"
            );
            assert_eq!(
                Fleet::row(&results, from, to, version)["row"],
                row["row"],
                "the command says the same"
            );
            page_says(&page, &row);
            let found = delay(&row);
            let off = [found[0] - true_one.mean, found[1] - true_one.min, found[2] - true_one.max];
            println!("  mean {:.1}, min {:.1}, max {:.1} us off", off[0] / 1e3, off[1] / 1e3, off[2] / 1e3);
            let within = off.iter().zip(CLOSE_NS).all(|(off, close)| off.abs() <= close);
            if !within {
                far.get_or_insert(format!("{from} to {to}: {found:?} against {true_one:?}"));
            }
        }
        far.map_or(Ok(()), Err)
    });
}
