//! `netaware probe` as people run it, between two namespaces:
//!
//! ```text
//!   right ── sends datagrams ── veth ── left: netaware probe -i lan volume …
//! ```
//!
//! Every datagram is counted, over both IP versions, and none is lost, with one ring and with two;
//! a longer MTU is followed; and root is given back by every kind of probe. Needs root: `cargo
//! xtask netns`.

use std::fs::{File, Permissions};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use netaware_collector::Client;
use netaware_io::clock;
use netaware_netns::{IpVersion, Pair, Running, Transport, permitted, wait_until_bound};
use netaware_record::passive::{DigestRow, ProbeReport, Row, TrafficRow};
use netaware_testkit::program::{Program, Responder, netaware_path, signal};
use netaware_units::{Span, Wall};
use netaware_wire::packet::LinkType;
use netaware_wire::pcap::{Record, Writer};

const PORT: u16 = 9099;

fn send(pair: &Pair, version: IpVersion, count: usize) {
    let to = pair.left().address(version);
    let sent = pair.right().within(|| {
        let any = if version == IpVersion::V4 { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        for _ in 0..count {
            // Nobody listens there: an answer by ICMP may be told at the next call, and counts as
            // sent.
            drop(socket.send_to(&[7; 100], (to, PORT)));
        }
        Ok(())
    });
    sent.unwrap();
}

fn counted(reports: &[ProbeReport], six: bool) -> u64 {
    let rows = reports.iter().flat_map(|report| &report.rows);
    let packets = rows.filter_map(|row| match &row.row {
        Row::Volume(volume) => {
            let ours = volume.key.destination_port == Some(PORT) && volume.key.protocol == Some(17);
            (ours && volume.key.destination.is_some_and(|to| to.is_ipv6() == six)).then_some(volume.packets)
        }
        _ => None,
    });
    packets.sum()
}

/// Whether any of the users of a process is root.
fn is_root(process: u32) -> bool {
    status(process, "Uid:").split_whitespace().any(|word| word == "0")
}

fn status(process: u32, line: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find_map(|found| found.strip_prefix(line)).unwrap().trim().to_owned()
}

/// A probe on the left and what it has reported since its first report.
struct Watch {
    probe: Running,
    lines: Receiver<String>,
    reports: Vec<ProbeReport>,
}

impl Watch {
    /// Starts a probe with these tasks, and waits for its first report, which shows that they run.
    fn start(pair: &Pair, arguments: &[&str]) -> Self {
        let mut command = pair.left().command(netaware_path());
        command.args(["probe", "-i", pair.left().device(), "--format", "ndjson", "--period", "250ms"]);
        let mut probe =
            Running::start(command.arg("--quiet").args(arguments).stdout(Stdio::piped())).unwrap();
        let output = BufReader::new(probe.child().stdout.take().unwrap());
        let (sender, lines) = channel();
        // Ends with the probe, whose output it reads.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        let mut watch = Self { probe, lines, reports: Vec::new() };
        watch.next();
        watch.reports.clear();
        watch
    }

    /// Waits for the next report.
    fn next(&mut self) {
        let line = self.lines.recv_timeout(std::time::Duration::from_secs(10));
        let line = line.unwrap_or_else(|why| panic!("no report: {why}; so far {:#?}", self.reports));
        self.reports.push(serde_json::from_str(&line).unwrap());
    }

    /// Reads on until the reports so far are as wanted.
    fn until(&mut self, what: &str, holds: impl Fn(&[ProbeReport]) -> bool) {
        let due = clock::now() + Span::from_secs(10);
        while !holds(&self.reports) {
            assert!(clock::now() < due, "not within 10 s: {what}: {:#?}", self.reports);
            self.next();
        }
    }

    /// Asks it to end, and returns all its reports, the last of which it makes then.
    fn end(mut self) -> Vec<ProbeReport> {
        self.next();
        signal("INT", self.probe.id());
        let due = clock::now() + Span::from_secs(10);
        let status = loop {
            if let Some(status) = self.probe.child().try_wait().unwrap() {
                break status;
            }
            assert!(clock::now() < due, "it does not end");
            clock::sleep(Span::from_millis(10));
        };
        assert!(status.success(), "{status}");
        while let Ok(line) = self.lines.recv_timeout(std::time::Duration::from_secs(10)) {
            self.reports.push(serde_json::from_str(&line).unwrap());
        }
        self.reports
    }
}

/// The packets that tasks of volumes have counted.
fn volume(reports: &[ProbeReport]) -> u64 {
    let rows = reports.iter().flat_map(|report| &report.rows);
    let packets = rows.map(|row| if let Row::Volume(row) = &row.row { row.packets } else { 0 });
    packets.sum()
}

fn digests(reports: &[ProbeReport]) -> Vec<&DigestRow> {
    let rows = reports.iter().flat_map(|report| &report.rows);
    rows.filter_map(|row| if let Row::Digests(row) = &row.row { Some(row) } else { None }).collect()
}

fn traffic(reports: &[ProbeReport]) -> Vec<&TrafficRow> {
    let rows = reports.iter().flat_map(|report| &report.rows);
    rows.filter_map(|row| if let Row::Traffic(row) = &row.row { Some(row) } else { None }).collect()
}

/// Sends over many flows, each of which is answered packet by packet.
fn converse(pair: &Pair, flows: u16, packets: u32) {
    let server = pair.left().within(|| UdpSocket::bind((pair.left().v4(), PORT))).unwrap();
    let client = |flow| SocketAddr::from((pair.right().v4(), 20_000 + flow));
    pair.right()
        .within(|| {
            for flow in 0..flows {
                let socket = UdpSocket::bind(client(flow))?;
                socket.connect((pair.left().v4(), PORT))?;
                for _ in 0..packets {
                    socket.send(&[7; 100])?;
                    let mut bytes = [0; 100];
                    let (_, from) = server.recv_from(&mut bytes)?;
                    server.send_to(&bytes, from)?;
                    socket.recv(&mut bytes)?;
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn two_rings_together_count_what_one_would() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("rings").unwrap();
    let tasks = ["volume", "traffic", "digest", "--by", "protocol", "--rings", "2", "-f", "udp port 9099"];
    let mut watch = Watch::start(&pair, &tasks);
    converse(&pair, 40, 25);
    watch.until("2000 packets", |reports| volume(reports) >= 2000);
    let reports = watch.end();
    assert!(reports.iter().all(|report| report.captures.len() == 1 && report.captures[0].health.lost() == 0));
    let seen: u64 = reports.iter().map(|report| report.captures[0].health.seen).sum();
    let volumes: Vec<u64> = reports
        .iter()
        .flat_map(|report| &report.rows)
        .filter_map(|row| if let Row::Volume(row) = &row.row { Some(row.packets) } else { None })
        .collect();
    assert_eq!((seen, volumes.iter().sum()), (2000, 2000));
    let traffic = traffic(&reports);
    assert!(volumes.len() <= reports.len() && traffic.len() == reports.len(), "rows of rings are one");
    assert_eq!(traffic.iter().map(|row| row.packets).sum::<u64>(), 2000);
    let (all, sent): (u64, u64) = traffic
        .iter()
        .fold((0, 0), |(all, sent), row| (all + row.link_bytes.0, sent + row.sent_link_bytes.0));
    assert_eq!((all, sent), (2000 * (142 + 24), 1000 * (142 + 24)));
    assert_eq!(digests(&reports).iter().map(|row| row.selected).sum::<u64>(), 2000);

    let mut refused = pair.left().command(netaware_path());
    refused.args(["probe", "-i", pair.left().device(), "--rings", "2", "capacity", "--keys", "1000"]);
    let refused = Program::start(refused).finish_within(Span::from_secs(20)).exits_with(2);
    assert!(refused.stderr.contains("use --rings 1"), "{}", refused.stderr);
}

#[test]
fn each_ring_of_a_probe_stays_on_a_core_of_its_own() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("cores").unwrap();
    let watch = Watch::start(&pair, &["--rings", "2", "volume"]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", watch.probe.id())).unwrap();
    let read = |file: &Path| std::fs::read_to_string(file).unwrap();
    let rings = tasks.map(|task| task.unwrap().path());
    let rings = rings.filter(|task| read(&task.join("comm")).trim() == "probe-capture");
    let mut cores: Vec<String> = rings
        .map(|task| {
            let status = read(&task.join("status"));
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            line.unwrap().trim().to_owned()
        })
        .collect();
    cores.sort();
    let allowed = netaware_io::thread::allowed_cores();
    // On a host with one core both have that one.
    let mut expected = [allowed[0], allowed[1.min(allowed.len() - 1)]].map(|core| core.to_string());
    expected.sort();
    assert_eq!(cores, expected);
}

#[test]
fn a_link_that_was_down_is_told_in_the_reports_of_that_time_and_what_comes_then_is_counted() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("wentdown").unwrap();
    let mut watch = Watch::start(&pair, &["volume", "--by", "protocol", "-f", "udp dst port 9099"]);
    send(&pair, IpVersion::V4, 10);
    watch.until("10 packets", |reports| volume(reports) == 10);
    for state in ["down", "up"] {
        pair.left().ip(&["link", "set", pair.left().device(), state]).unwrap();
        // Both ends of the link take a moment to know of it. LOWER_UP is there at once; the kernel
        // goes on to drop what is sent until a worker of its own has made the state UP as well.
        let far = || pair.right().ip(&["link", "show", pair.right().device()]).unwrap();
        let is_up = |shown: &str| shown.contains("LOWER_UP") && shown.contains("state UP");
        let knows = || is_up(&far()) == (state == "up");
        until(Span::from_secs(10), knows, "the other end does not know of it");
        if state == "down" {
            watch.until("it was down", |reports| reports.iter().any(link_was_down));
        }
    }
    send(&pair, IpVersion::V4, 10);
    watch.until("20 packets", |reports| volume(reports) >= 20);
    let reports = watch.end();
    let down: Vec<bool> = reports.iter().map(link_was_down).collect();
    assert!(down.contains(&true), "{reports:?}");
    assert_eq!(down.last(), Some(&false), "it was up again: {down:?}");
    assert_eq!(volume(&reports), 20);
    // What hosts send by themselves meets an interface that is down, which counts it.
    let while_up = reports.iter().filter(|report| !link_was_down(report));
    let health = while_up.flat_map(|report| &report.captures).map(|one| &one.health);
    let lost: u64 = health.map(|it| it.lost_ring + it.lost_kernel).sum();
    assert_eq!(lost, 0, "of what came while the link was up: {reports:?}");
}

fn link_was_down(report: &ProbeReport) -> bool {
    report.captures.iter().any(|one| one.health.link_was_down)
}

#[test]
fn packets_of_a_longer_mtu_are_packets_and_not_merged_frames() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("longer").unwrap();
    let mut watch = Watch::start(&pair, &["digest", "-f", "udp dst port 9099"]);
    for side in [pair.left(), pair.right()] {
        side.ip(&["link", "set", side.device(), "mtu", "9000"]).unwrap();
    }
    let socket = pair.right().within(|| UdpSocket::bind((pair.right().v4(), 0))).unwrap();
    for _ in 0..100 {
        drop(socket.send_to(&[7; 8000], (pair.left().v4(), PORT)));
    }
    let observed = |reports: &[ProbeReport]| digests(reports).iter().map(|row| row.observed).sum::<u64>();
    watch.until("100 packets", |reports| observed(reports) >= 100);
    let reports = watch.end();
    let sum = |of: fn(&DigestRow) -> u64| digests(&reports).into_iter().map(of).sum::<u64>();
    assert_eq!((sum(|row| row.observed), sum(|row| row.selected), sum(|row| row.unusable)), (100, 100, 0));
    let healths = || reports.iter().flat_map(|report| &report.captures).map(|capture| &capture.health);
    assert!(healths().any(|health| health.mtu_changed), "{reports:?}");
    assert_eq!(healths().map(|health| health.merged).sum::<u64>(), 0);
}

#[test]
fn a_card_that_does_not_stamp_is_refused_with_what_to_do() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("nic").unwrap();
    let mut command = pair.left().command(netaware_path());
    command.args(["probe", "-i", pair.left().device(), "--stamps", "nic"]);
    let ended = Program::start(command).finish_within(Span::from_secs(20)).exits_with(2);
    assert!(ended.stderr.contains("lan does not stamp packets itself"), "{}", ended.stderr);
    assert!(ended.stderr.contains("take the kernel's stamps"), "{}", ended.stderr);
}

#[test]
fn a_file_that_only_root_can_read_is_parsed_by_nobody() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets");
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap();
    assert!(made.success());
    let mut command = Command::new(netaware_path());
    command.args(["probe", "--format", "ndjson", "-f", "udp", "--read"]).arg(&path);
    let probe = Program::start(command);
    let mut writer = Writer::pcap(File::create(&path).unwrap(), LinkType::Raw, 256).unwrap();
    // It has opened the file, and waits for packets.
    until(Span::from_secs(10), || !is_root(probe.id()), "it is still root");
    until(Span::from_secs(10), || status(probe.id(), "CapPrm:") == "0000000000000000", "it can do more");
    let mut bytes = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    bytes.extend([0, 53, 0, 53, 0, 8, 0, 0]);
    let record =
        Record { at: Wall(5), wire_length: 28, bytes: &bytes, link: 101, interface: 0, outgoing: None };
    writer.write(&record).unwrap();
    drop(writer.finish().unwrap());
    let ended = probe.finish_within(Span::from_secs(20)).exits_with(0);
    let report: ProbeReport = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report.captures[0].health.seen, 1);
}

fn until(within: Span, holds: impl Fn() -> bool, otherwise: &str) {
    let due = clock::now() + within;
    while !holds() {
        assert!(clock::now() < due, "{otherwise}");
        clock::sleep(Span::from_millis(50));
    }
}

const FLEET: &str = r#"
listen = ["[::]:14234"]
[probes.a]
key_file = "a.key"
[tasks.count]
on = ["all"]
kind = "volume"
by = ["protocol"]
interface = "late"
[tasks.wait]
on = ["all"]
kind = "measure"
command = "latency"
target = "TARGET"
options = { time = "500ms" }
every = "1s"
"#;

/// A collector on the right, and the probe of the fleet on the left whose reports are kept in
/// `state`.
struct Fleet<'a> {
    pair: &'a Pair,
    collector: Program,
    probe: Program,
}

impl<'a> Fleet<'a> {
    fn start(pair: &'a Pair, folder: &Path, target: &str, state: &Path) -> Self {
        std::fs::write(folder.join("collect.toml"), FLEET.replace("TARGET", target)).unwrap();
        std::fs::write(folder.join("a.key"), "the key of a\n").unwrap();
        std::fs::set_permissions(folder.join("a.key"), Permissions::from_mode(0o600)).unwrap();
        let mut collect = pair.right().command(netaware_path());
        collect.args(["collect", "run", "--config"]).arg(folder.join("collect.toml"));
        let collector = Program::start(collect);
        wait_until_bound(collector.id(), Transport::Tcp, 14_234)
            .unwrap_or_else(|error| panic!("{error}: {}", collector.complained()));
        let mut probe = pair.left().command(netaware_path());
        let at = SocketAddr::from((pair.right().v4(), 14_234)).to_string();
        probe.args(["probe", "--collector", &at, "--name", "a", "--key-file"]).arg(folder.join("a.key"));
        let probe = Program::start({
            probe.arg("--state").arg(state);
            probe
        });
        Self { pair, collector, probe }
    }

    fn rows(&self, kind: &str) -> usize {
        let asked = self.pair.right().within(|| {
            let client = Client::new("http://[::1]:14234", None, None).map_err(std::io::Error::other)?;
            let path = format!("/api/v1/rows/{kind}?from=-1h");
            client.ask("GET", &path, "").map_err(std::io::Error::other)
        });
        let answer = asked.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        let page: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        page["items"].as_array().unwrap_or_else(|| panic!("{page:#}")).len()
    }
}

#[test]
fn a_probe_of_a_fleet_that_root_started_does_all_its_tasks_as_nobody() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("fleetuser").unwrap();
    let mut serve = pair.right().command(netaware_path());
    serve.args(["serve", "--port", "14233"]);
    let _responder = Responder::launch(serve, &[], 14_233);
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let state = folder.path().join("state");
    let fleet = Fleet::start(&pair, folder.path(), &format!("{}:14233", pair.right().v4()), &state);
    let told = || format!("{}{}", fleet.probe.complained(), fleet.collector.complained());
    until(Span::from_secs(20), || fleet.rows("active") > 0, &format!("no measurement: {}", told()));
    assert!(!is_root(fleet.probe.id()), "{}", told());
    assert_eq!(status(fleet.probe.id(), "CapEff:"), "0000000000002000", "CAP_NET_RAW and no other");
    assert_eq!(status(fleet.probe.id(), "NoNewPrivs:"), "1");
    let own = std::fs::read_dir(&state).unwrap().next().unwrap().unwrap();
    assert_ne!(own.metadata().unwrap().uid(), 0, "its reports are its own");
    // An interface that was not there when it was root.
    pair.left().ip(&["link", "add", "late", "type", "veth", "peer", "name", "far"]).unwrap();
    for device in ["late", "far"] {
        pair.left().ip(&["link", "set", device, "up"]).unwrap();
    }
    until(Span::from_secs(20), || fleet.rows("volume") > 0, &format!("nothing is counted: {}", told()));
}

#[test]
fn root_that_has_to_stay_keeps_but_one_capability() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("staysroot").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    let fleet = Fleet::start(&pair, folder.path(), "192.0.2.1", &folder.path().join("state"));
    let said = || fleet.probe.complained().contains("this stays root, without its capabilities");
    until(Span::from_secs(10), said, "it did not say that it stays root");
    until(Span::from_secs(10), || status(fleet.probe.id(), "NoNewPrivs:") == "1", "it can gain some");
    assert_eq!(status(fleet.probe.id(), "CapEff:"), "0000000000002000");
}

#[test]
fn every_datagram_is_counted_over_both_versions_and_privileges_are_gone() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("probe").unwrap();
    let mut watch = Watch::start(&pair, &["volume", "--by", "destination,protocol,destination_port"]);
    assert!(!is_root(watch.probe.id()), "still root");
    send(&pair, IpVersion::V4, 1000);
    send(&pair, IpVersion::V6, 700);
    watch.until("1700 packets", |reports| counted(reports, false) + counted(reports, true) >= 1700);
    let reports = watch.end();
    assert!(reports.len() >= 3, "{} reports", reports.len());
    assert_eq!((counted(&reports, false), counted(&reports, true)), (1000, 700));
    for report in &reports {
        assert_eq!(report.captures.len(), 1);
        assert_eq!(report.captures[0].health.lost(), 0);
        assert!(!report.clock.source.is_empty());
    }
    assert!(
        reports.windows(2).all(|pair| pair[0].period.until == pair[1].period.from),
        "periods leave a gap"
    );
}
