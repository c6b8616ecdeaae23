//! A fleet end to end, every program the one that is shipped: a collector and two probes beside a
//! lossy path over which real programs send.
//!
//! ```text
//!   host a: probe, iperf3, a video's packets ── 2 routers' path, loss and delay by way ── host b: probe, collector, iperf3 -s
//! ```
//!
//! What the page (drawn by a browser), the API and `netaware results delays` say is compared with
//! the lab's own record of every packet: packets and losses must agree to the last one, delays to
//! some milliseconds. How close delays are on a machine with a core to spare is in [`accuracy`].
//! Probes and collector talk over IPv6, on the same path; everything else over IPv4 is traffic.
//! Needs root: `cargo xtask netns`.

mod accuracy;
mod full;
mod nat;
mod shards;
mod sites;
mod stamped;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use netaware_collector::Client;
use netaware_io::clock;
use netaware_lab::{Lab, LabOptions, RecordedPackets, Report, Side, TruthDetail, TruthFile};
use netaware_netns::{Transport, permitted, wait_until_bound};
use netaware_record::IpVersion;
use netaware_record::passive::DelayRow;
use netaware_testkit::drawn::Drawn;
use netaware_testkit::figures::{is_exact, judge};
use netaware_testkit::lab;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;
use serde_json::Value;

const PORT: u16 = 14_234;
const VIDEO: u16 = 5004;
/// Bytes of an IPv6 packet of the video: no other has as many.
const VIDEO_LENGTH: u32 = 40 + 8 + VIDEO_BYTES as u32;
const VIDEO_BYTES: usize = 1111;
/// Packets of a picture of the video, over each version.
const PER_PICTURE: u64 = 6;

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
period = "500ms"
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
patience = "500ms"
clocks_apart = "100ms"
"#;

struct Fleet {
    lab: Lab,
    collector: Program,
    probes: [Program; 2],
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
    Fleet { lab, collector, probes, folder }
}

/// Why the counts are not those of the path: the machine had no time for the captures, which then
/// lost packets. What can be claimed all the same is in [`claims_no_more_than`].
fn why_captures_lack(probes: &Value) -> Option<String> {
    let probes = probes.as_array().unwrap();
    let lost: Vec<u64> = probes.iter().map(|probe| probe["counts"]["lost"].as_u64().unwrap()).collect();
    lost.iter().any(|lost| *lost > 0).then(|| format!("captures lost {lost:?} packets"))
}

/// Asserts what holds of a row whatever captures lost. A packet that a capture lost may be missing
/// from the row, or be taken for one that nobody watched for. It is never matched, and it is never
/// counted as lost on the network. `[sent, delivered]` is what became of the packets.
///
/// `packets` alone has no bound: a packet that the capture at its beginning lost, and that at its
/// end did not, counts as an unobserved packet of the other way.
fn claims_no_more_than([sent, delivered]: [u64; 2], row: &DelayRow) {
    let DelayRow { packets, matched, lost, unobserved, .. } = *row;
    assert!(matched <= delivered, "{matched} matched of {delivered} that came: {row:?}");
    assert!(lost <= sent - delivered, "{lost} lost of {}: {row:?}", sent - delivered);
    assert!(packets - unobserved <= sent, "{packets} packets less {unobserved}, of {sent} sent: {row:?}");
}

/// Whether joins have settled every packet that probes have reported so far, so that no count of a
/// period that has a row rises any more.
fn is_all_settled(joins: &Value, probes: &Value) -> bool {
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{joins:#} {probes:#}"));
    let reported: u64 = probes.as_array().unwrap().iter().map(|it| count(&it["counts"]["sightings"])).sum();
    let [join] = &joins.as_array().unwrap()[..] else { panic!("one join: {joins:#}") };
    let taken: u64 =
        ["taken", "came_late", "absurd", "elsewhere"].map(|name| count(&join[name])).iter().sum();
    taken == reported && join["held"] == 0
}

impl Fleet {
    /// Ends a run of which [`why_captures_lack`] says why it is inconclusive; what has to hold all
    /// the same is asserted.
    fn end_without_captures(self, why: &str) {
        let rows = self.delays();
        let Self { lab, folder, .. } = self;
        if !is_exact(&lab.end().unwrap()) {
            return;
        }
        let truth = RecordedPackets::read(&folder.path().join("truth.ndjson")).unwrap();
        let rows = rows.as_array().unwrap().iter().map(|item| item["row"].clone());
        let rows = rows.map(|row| serde_json::from_value::<DelayRow>(row).unwrap());
        for row in rows.filter(|row| row.method == "passive") {
            let from = if row.from == "a" { Side::A } else { Side::B };
            let version = row.version.unwrap_or_else(|| panic!("{row:?}"));
            let sum = truth.sum(|packet| {
                // Of IPv6 the digests are those of the video alone.
                let is_watched = version == IpVersion::V4 || packet.length == Some(VIDEO_LENGTH);
                (packet.from, packet.version) == (Some(from), Some(version)) && is_watched
            });
            claims_no_more_than([sum.sent, sum.delivered], &row);
        }
        netaware_testkit::inconclusive(why);
    }

    /// Ends the lab; what became of every packet, and what the emulator says of itself.
    fn truth(self) -> (RecordedPackets, Report) {
        let Self { lab, folder, .. } = self;
        let report = lab.end().unwrap();
        (RecordedPackets::read(&folder.path().join("truth.ndjson")).unwrap(), report)
    }

    fn ask(&self, path: &str) -> String {
        self.tell("GET", path, "")
    }

    fn tell(&self, method: &str, path: &str, body: &str) -> String {
        let token = std::fs::read_to_string(self.folder.path().join("netaware-collect/admin-token")).ok();
        let asked = self.lab.within(Side::B, || {
            let client =
                Client::new(&format!("http://[::1]:{PORT}"), token, None).map_err(std::io::Error::other)?;
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

    /// Both probes have run their task for three periods or more. A packet that only one point saw
    /// counts as lost only if the other had watched for the patience and twice what clocks may be
    /// apart before.
    fn watches(&self) -> bool {
        let probes = self.json("/api/v1/probes");
        let probes = probes.as_array().unwrap();
        probes.len() == 2 && probes.iter().all(|probe| probe["counts"]["batches"].as_u64() >= Some(4))
    }

    /// Rows of all periods together.
    fn delays(&self) -> Value {
        self.json("/api/v1/delays?from=-1h&resolution=36500d")["items"].clone()
    }

    /// The packets that were joined from one point to the other over a version, lost ones included.
    fn joined(&self, from: &str, to: &str, version: IpVersion) -> u64 {
        let is_it = |item: &&Value| is_row(item, from, to, version);
        let rows = self.delays();
        let packets = rows.as_array().unwrap().iter().find(is_it).map(|item| &item["row"]["packets"]);
        packets.and_then(Value::as_u64).unwrap_or_default()
    }

    /// Waits until all traffic up to now is joined, or a capture has lost some of it. Periods are
    /// settled in their order, so packets that are sent now, and of which nothing else is sent over
    /// IPv6, come last. `before` were sent that way already. Nothing that was seen is left to be
    /// settled then: the counts did not only pass through what is awaited.
    fn all_is_joined(&self, before: u64) {
        video(&self.lab, 1);
        let all = before + PER_PICTURE;
        let are_there = |it: &Self| it.joined("a", "b", IpVersion::V6) == all;
        let captures_lack = |it: &Self| why_captures_lack(&it.json("/api/v1/probes")).is_some();
        let is_settled = |it: &Self| is_all_settled(&it.json("/api/v1/joins"), &it.json("/api/v1/probes"));
        self.until("all is joined", Span::from_secs(30), |it| {
            captures_lack(it) || (is_settled(it) && are_there(it))
        });
    }

    /// Both ends of every TCP connection over IPv4 have ended: none repeats what was lost on its
    /// way.
    fn tcp_has_ended(&self) -> bool {
        let is_over = |line: &str| {
            let state = line.split_whitespace().nth(3);
            // LISTEN and TIME_WAIT.
            matches!(state, Some("0A" | "06"))
        };
        self.probes.iter().all(|probe| {
            let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", probe.id())).unwrap();
            table.lines().skip(1).all(is_over)
        })
    }

    /// The page, with the path of the video from a to b chosen.
    fn drawn(&self) -> Drawn {
        let chosen = "pair=a%2Cb&task=path&method=passive&version=6";
        Drawn::of(self.lab.command(Side::B, "chromium"), &format!("http://[::1]:{PORT}/#{chosen}"))
    }

    fn row(points: &Value, from: &str, to: &str, version: IpVersion) -> Value {
        let rows = points.as_array().unwrap();
        let found = rows.iter().find(|item| is_row(item, from, to, version));
        found.unwrap_or_else(|| panic!("no {from} {to}: {points:#}")).clone()
    }
}

fn is_row(item: &Value, from: &str, to: &str, version: IpVersion) -> bool {
    let row = &item["row"];
    (row["from"].as_str(), row["to"].as_str(), row["version"].as_str())
        == (Some(from), Some(to), Some(version.name()))
}

/// Sends so many pictures of a video, one each 40 ms and of [`PER_PICTURE`] packets, over both
/// versions.
fn video(lab: &Lab, pictures: u64) {
    let addresses = [IpVersion::V4, IpVersion::V6].map(|version| lab.address(Side::B, version));
    // Both ports must be open: a host answers a packet to a closed port, and the answer would be a
    // packet as well.
    let sinks = addresses.map(|to| lab.within(Side::B, || UdpSocket::bind((to, VIDEO))).unwrap());
    let mut due = clock::now();
    lab.within(Side::A, || {
        let sources = [UdpSocket::bind("0.0.0.0:0")?, UdpSocket::bind("[::]:0")?];
        for _ in 0..pictures {
            for _ in 0..PER_PICTURE {
                let mut bytes = vec![0; VIDEO_BYTES];
                bytes[..8].copy_from_slice(&unused_content().to_be_bytes());
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

/// Content that no other packet of this test has: the digests of equal packets are equal.
fn unused_content() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A bulk transfer of iperf3 over TCP and IPv4, with the video beside it. iperf3's datagrams begin
/// with one each way that is never repeated; on a path that loses packets both of its ends may wait
/// for ever, so the video is the traffic over UDP.
fn iperf3_beside_a_video(fleet: &Fleet, pictures: u64) {
    let mut server = fleet.lab.command(Side::B, "iperf3");
    server.args(["-4", "-s", "-1"]);
    let server = Program::start(server);
    wait_until_bound(server.id(), Transport::Tcp, 5201).unwrap();
    let mut client = fleet.lab.command(Side::A, "iperf3");
    client.args(["-4", "-t", "2", "-c", &fleet.lab.address(Side::B, IpVersion::V4).to_string()]);
    let client = Program::start(client);
    video(&fleet.lab, pictures);
    client.finish_within(Span::from_secs(20)).exits_with(0);
    server.finish_within(Span::from_secs(20)).exits_with(0);
    fleet.until("TCP has ended", Span::from_secs(20), Fleet::tcp_has_ended);
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

/// The page has both probes, their captures and their one task, and none of them lost or missed
/// anything.
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

/// A hundred years: spans of this length begin in 1970, so that midnight cannot make two of one
/// run.
const ALL: &str = "876000h";

fn stored(store: &Path) -> Value {
    let mut results = std::process::Command::new(netaware_path());
    results.args(["results", "delays", "--resolution", ALL, "--format", "json", "--store"]).arg(store);
    let found = Program::start(results).finish_within(Span::from_secs(20)).exits_with(0);
    serde_json::from_str(&found.stdout).unwrap()
}

/// How far the mean and the minimum may be from the lab's own where other tests share the cores,
/// ns: a stamp is late by the time that its thread waited for a core. No bound holds for the
/// maximum, which one such wait makes.
const SHARED_CORES_NS: [f64; 3] = [5e6, 5e6, f64::INFINITY];

/// Delays are not judged if the emulator was without a core for longer than this: the captures were
/// without one too.
const LATENESS: Span = Span::from_millis(1);

#[test]
fn packets_and_losses_of_real_traffic_are_the_paths_own_wherever_they_are_shown() {
    if permitted() {
        real_traffic_is_joined_as_the_path_treated_it(SHARED_CORES_NS);
    }
}

/// Counts are exact in every run; mean, minimum and maximum of delays are within `close_ns` of the
/// lab's own.
fn real_traffic_is_joined_as_the_path_treated_it(close_ns: [f64; 3]) {
    const PICTURES: u64 = 50;
    let fleet = start(1, tempfile::tempdir().unwrap());
    fleet.until("both probes watch", Span::from_secs(20), Fleet::watches);
    iperf3_beside_a_video(&fleet, PICTURES);
    fleet.all_is_joined(PICTURES * PER_PICTURE);

    let probes = fleet.json("/api/v1/probes");
    if let Some(why) = why_captures_lack(&probes) {
        return fleet.end_without_captures(&why);
    }
    let page = fleet.drawn();
    page_says_all_is_well(&page, &probes);
    let api = fleet.delays();
    let results = stored(&fleet.folder.path().join("netaware-collect/fleet.db"));
    let (truth, report) = fleet.truth();
    let (four, six) = (IpVersion::V4, IpVersion::V6);
    let (to_b, to_a) = (("a", Side::A, "b"), ("b", Side::B, "a"));
    let mut far = Vec::new();
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
        assert!(true_one.sent >= PICTURES * PER_PICTURE, "{true_one:?}");
        assert_eq!(
            (count("packets"), count("lost"), count("unobserved")),
            (true_one.sent, true_one.sent - true_one.delivered, 0),
            "{row:#}"
        );
        assert_eq!(Fleet::row(&results, from, to, version)["row"], row["row"], "the command says the same");
        page_says(&page, &row);
        let found = delay(&row);
        let off = [found[0] - true_one.mean, found[1] - true_one.min, found[2] - true_one.max];
        println!("  mean {:.1}, min {:.1}, max {:.1} us off", off[0] / 1e3, off[1] / 1e3, off[2] / 1e3);
        if off.iter().zip(close_ns).any(|(off, close)| off.abs() > close) {
            far.push(format!("{from} to {to}: {found:?} against {true_one:?}"));
        }
    }
    judge(&far, &report, LATENESS);
}
