//! Sites around a router, a collector beside them, every program the one that is shipped:
//!
//! ```text
//!   bern: probe, serve ── veth ──┐
//!   oslo: probe, serve ── veth ──┤ hub: collector, a probe on both its links, nft that drops what is to be lost
//!   rome: probe, serve ── veth ──┘
//! ```

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use netaware_collector::Client;
use netaware_io::clock;
use netaware_netns::{Side, Star, Transport, permitted, wait_until_bound};
use netaware_record::passive::DelayRow;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;
use serde_json::Value;

const PORT: u16 = 14_234;
pub(crate) const FLOW: u16 = 5006;
/// UDP payloads of these bytes are dropped on the way.
const DOOMED: usize = 333;
const OTHERS: usize = 200;
/// The collector's folder, beside its file.
const STATE: &str = "netaware-collect";

/// Whether the router drops the packet of this number, counted from 0.
fn is_doomed(number: u64) -> bool {
    number % 20 == 7
}

pub(crate) struct Sites {
    pub(crate) star: Star,
    /// Where the collector runs.
    at: Place,
    collector: Program,
    probes: Vec<Program>,
    folder: tempfile::TempDir,
}

/// One of the hosts.
pub(crate) type Place = fn(&Star) -> &Side;

impl Sites {
    /// A collector in the hub with this file, behind which keys of all named probes are written.
    fn start(names: &[&str], probes: &[&str], file: &str) -> Self {
        Self::start_at(Star::hub, names, probes, file)
    }

    /// The same with the collector elsewhere.
    pub(crate) fn start_at(at: Place, names: &[&str], probes: &[&str], file: &str) -> Self {
        Self::begin(at, None, names, probes, file)
    }

    /// The same in the hub, with so much room for the store and what lies beside it.
    pub(crate) fn start_on_a_disk_of(size: &str, names: &[&str], probes: &[&str], file: &str) -> Self {
        Self::begin(Star::hub, Some(size), names, probes, file)
    }

    fn begin(at: Place, disk: Option<&str>, names: &[&str], probes: &[&str], file: &str) -> Self {
        let star = Star::new("sites", names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut text = format!("listen = [\"[::]:{PORT}\"]\nperiod = \"500ms\"\n{file}");
        for name in probes {
            std::fs::write(folder.path().join(format!("{name}.key")), format!("the key of {name}\n"))
                .unwrap();
            let address = names.iter().position(|site| site == name).map(|at| star.sites()[at].v4());
            let address = address.map_or(String::new(), |address| format!("address = \"{address}\"\n"));
            let probe = format!("[probes.{name}]\nkey_file = \"{name}.key\"\n{address}");
            text.push_str(&probe);
        }
        std::fs::write(folder.path().join("collect.toml"), text).unwrap();
        let mut collect = match disk {
            None => at(&star).command(netaware_path()),
            // A mount of this process alone, which goes with it.
            Some(size) => {
                let disk = folder.path().join(STATE);
                std::fs::create_dir(&disk).unwrap();
                let mount = format!("mount -t tmpfs -o size={size} tmpfs \"$0\" && exec \"$@\"");
                let mut alone = at(&star).command("unshare");
                alone.args(["--mount", "sh", "-c", &mount]).arg(disk).arg(netaware_path());
                alone
            }
        };
        collect.args(["collect", "run", "--config"]).arg(folder.path().join("collect.toml"));
        let collector = Program::start(collect);
        wait_until_bound(collector.id(), Transport::Tcp, PORT)
            .unwrap_or_else(|error| panic!("{error}: {}", collector.complained()));
        Self { star, at, collector, probes: Vec::new(), folder }
    }

    /// Store and state of the collector as it sees them itself.
    pub(crate) fn disk(&self) -> PathBuf {
        let seen = self.folder.path().join(STATE);
        let root = format!("/proc/{}/root", self.collector.id());
        std::path::Path::new(&root).join(seen.strip_prefix("/").unwrap())
    }

    /// As people start it: root, which becomes nobody.
    pub(crate) fn probe(&mut self, name: &str, side: Place) {
        self.probe_to(self.star.hub().v4().into(), name, side);
    }

    /// The same with the collector at this address.
    pub(crate) fn probe_to(&mut self, to: IpAddr, name: &str, side: Place) {
        let at = SocketAddr::new(to, PORT).to_string();
        let mut probe = side(&self.star).command(netaware_path());
        probe.args(["probe", "--collector", &at, "--name", name, "--key-file"]);
        probe.arg(self.folder.path().join(format!("{name}.key")));
        // A folder that nobody can reach, so that privileges are given up.
        let state = std::env::temp_dir().join(format!("netaware-sites-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&state));
        probe.arg("--state").arg(state);
        self.probes.push(Program::start(probe));
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.ask(path)).unwrap()
    }

    pub(crate) fn ask(&self, path: &str) -> String {
        self.answer("GET", path, "")
    }

    /// Goes on with more in its file; what the collector says to it.
    pub(crate) fn apply(&self, more: &str) -> Value {
        let file = std::fs::read_to_string(self.folder.path().join("collect.toml")).unwrap();
        let answer = self.answer("PUT", "/api/v1/config", &format!("{file}\n{more}"));
        serde_json::from_str(&answer).unwrap()
    }

    fn answer(&self, method: &str, path: &str, body: &str) -> String {
        let token = std::fs::read_to_string(self.disk().join("admin-token")).ok();
        let asked = (self.at)(&self.star).within(|| {
            let client = Client::new(&format!("http://127.0.0.1:{PORT}"), token, None);
            client.map_err(std::io::Error::other)?.ask(method, path, body).map_err(std::io::Error::other)
        });
        let answer = asked.unwrap_or_else(|why| panic!("{path}: {why}; {}", self.collector.complained()));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// What each probe has complained of so far.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.probes.iter().map(Program::complained).collect()
    }

    pub(crate) fn until(&self, what: &str, within: Span, mut holds: impl FnMut(&Self) -> bool) {
        let due = clock::now() + within;
        while !holds(self) {
            let probes = self.complaints();
            assert!(
                clock::now() < due,
                "not within {within}: {what}; {}; {probes:#?}; {}",
                self.collector.complained(),
                self.ask("/api/v1/probes")
            );
            clock::sleep(Span::from_millis(200));
        }
    }

    /// So many probes have watched for some periods.
    pub(crate) fn watch(&self, probes: usize) {
        self.until("probes watch", Span::from_secs(30), |it| {
            let all = it.json("/api/v1/probes");
            let all = all.as_array().unwrap();
            all.len() == probes && all.iter().all(|probe| probe["counts"]["batches"].as_u64() >= Some(4))
        });
    }

    /// The packets of the only pair that were joined so far, lost ones included.
    pub(crate) fn joined(&self) -> u64 {
        let found = self.json("/api/v1/delays?from=-1h&resolution=36500d");
        found["items"][0]["row"]["packets"].as_u64().unwrap_or_default()
    }

    /// Whether everything that was seen is settled, so that no count rises any more.
    pub(crate) fn is_settled(&self) -> bool {
        super::is_all_settled(&self.json("/api/v1/joins"), &self.json("/api/v1/probes"))
    }

    /// Ends a run that is inconclusive because captures lost packets. What has to hold of a pair
    /// all the same is asserted; `[sent, delivered]` is what became of the packets.
    pub(crate) fn end_without_captures(&self, from: &str, to: &str, truth: [u64; 2]) {
        self.rows(from, to).iter().for_each(|row| super::claims_no_more_than(truth, row));
        netaware_testkit::inconclusive("a capture lost packets");
    }

    pub(crate) fn captures_lost(&self) -> bool {
        let probes = self.json("/api/v1/probes");
        probes.as_array().unwrap().iter().any(|probe| probe["counts"]["lost"].as_u64() != Some(0))
    }

    /// The router drops datagrams of one length.
    pub(crate) fn drop_doomed(&self) {
        let rule = format!("add rule ip t f udp dport {FLOW} udp length {} drop", DOOMED + 8);
        let chain = "add chain ip t f { type filter hook forward priority 0; policy accept; }";
        for words in ["add table ip t", chain, &rule] {
            let done = self.star.hub().command("nft").arg(words).status().unwrap();
            assert!(done.success(), "nft {words}");
        }
    }

    /// A datagram each 2 ms from bern to oslo, every 20th doomed; `before` is told the socket
    /// before each.
    pub(crate) fn flow(&self, packets: usize, before: impl Fn(&UdpSocket) + Send + Sync) {
        let to = (self.star.sites()[1].v4(), FLOW);
        let _sink = self.star.sites()[1].within(|| UdpSocket::bind(to)).unwrap();
        self.star.sites()[0]
            .within(|| {
                let socket = UdpSocket::bind("0.0.0.0:0")?;
                socket.connect(to)?;
                let mut due = clock::now();
                for n in 0..packets as u64 {
                    before(&socket);
                    let mut bytes = vec![0; if is_doomed(n) { DOOMED } else { OTHERS }];
                    bytes[..8].copy_from_slice(&super::unused_content().to_be_bytes());
                    socket.send(&bytes)?;
                    due += Span::from_millis(2);
                    clock::sleep_until(due);
                }
                Ok(())
            })
            .unwrap();
    }

    /// The row of a pair, of all times together.
    pub(crate) fn delay(&self, from: &str, to: &str) -> DelayRow {
        let rows = self.rows(from, to);
        let [row] = &rows[..] else { panic!("{rows:#?}") };
        row.clone()
    }

    /// The same; none if no packet of the pair is settled yet.
    fn rows(&self, from: &str, to: &str) -> Vec<DelayRow> {
        let pair = format!("{from},{to}").replace('/', "%2F");
        let found = self.json(&format!("/api/v1/delays?from=-1h&resolution=36500d&pair={pair}"));
        let items = found["items"].as_array().unwrap();
        items.iter().map(|item| serde_json::from_value(item["row"].clone()).unwrap()).collect()
    }

    /// What the command prints of a store.
    fn results(&self, words: &[&str]) -> String {
        let mut command = Command::new(netaware_path());
        command.arg("results").args(words).arg("--store");
        command.arg(self.folder.path().join("netaware-collect/fleet.db"));
        Program::start(command).finish_within(Span::from_secs(20)).exits_with(0).stdout
    }
}

#[test]
fn hops_and_reach_of_a_mesh_have_figures_of_every_pair() {
    if !permitted() {
        return;
    }
    let names = ["bern", "oslo", "rome"];
    let meshes = "[meshes.way]
members = [\"all\"]
method = \"hops\"
every = \"4s\"
spread = \"1s\"
options = { time = \"1s\" }
[meshes.there]
members = [\"all\"]
method = \"reach\"
every = \"4s\"
spread = \"1s\"
options = { count = \"3\", time = \"1s\" }
";
    let mut sites = Sites::start(&names, &names, meshes);
    // As systemd sets it; elsewhere it is as the kernel begins, and nobody may send echoes.
    let range = || std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
    sites.star.sites()[0].within(range).unwrap();
    sites.probe("bern", |star| &star.sites()[0]);
    sites.probe("oslo", |star| &star.sites()[1]);
    sites.probe("rome", |star| &star.sites()[2]);
    let pairs: BTreeSet<(String, String)> = names
        .iter()
        .flat_map(|probe| names.iter().filter(move |to| *to != probe).map(move |to| (probe, to)))
        .flat_map(|(probe, to)| ["way", "there"].map(|mesh| ((*probe).to_owned(), format!("{mesh}.{to}"))))
        .collect();
    let found = |it: &Sites| -> BTreeSet<(String, String)> {
        let latest = it.json("/api/v1/latest");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        latest.as_array().unwrap().iter().map(|one| (text(&one["probe"]), text(&one["task"]))).collect()
    };
    sites.until("results of all pairs", Span::from_secs(20), |it| found(it) == pairs);
    let latest = sites.json("/api/v1/latest");
    println!("{}", latest[0]);
    // A measurement of a second on a busy host may hear no answer; a later one of the same pair
    // then has a figure.
    let mut without = pairs.clone();
    sites.until("figures of all pairs", Span::from_secs(30), |it| {
        let metrics = it.ask("/metrics");
        without.retain(|(probe, task)| {
            !metrics.lines().any(|line| {
                line.starts_with("netaware_active_seconds")
                    && line.contains(&format!("probe=\"{probe}\""))
                    && line.contains(&format!("task=\"{task}\""))
            })
        });
        without.is_empty()
    });
    // `/metrics` shows what was found last, so a figure may be gone from there by now. It stays in
    // the store, which is told of a report after `/metrics` is.
    let stored = |it: &Sites| -> BTreeSet<(String, String)> {
        let all: Value = serde_json::from_str(&it.results(&["active", "--format", "json"])).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = all.as_array().unwrap().iter();
        let with_figures = all.filter(|one| !one["figures"].as_array().unwrap().is_empty());
        with_figures.map(|one| (text(&one["probe"]), text(&one["task"]))).collect()
    };
    sites.until("figures of all pairs in the store", Span::from_secs(10), |it| stored(it) == pairs);
    let shown = sites.results(&["active", "--task", "way.oslo"]);
    println!("{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    // What was found is on the line below that of the probe and its task.
    let is_figure =
        |pair: &[&str]| pair[0].contains("bern  way.oslo") && !pair[1].contains("nothing was found");
    assert!(lines.windows(2).any(is_figure), "{shown}");
    // Who may send echoes does, and who may not says so.
    for (probe, task, may) in [("bern", "there.oslo", true), ("oslo", "there.bern", false)] {
        let found = sites.results(&["active", "--task", task, "--probe", probe, "--format", "json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        assert!(found[0]["record"].is_object(), "{probe}: {found:#}");
        let warned = found[0]["record"]["warnings"].to_string().contains("no ICMP echo");
        assert_eq!(warned, !may, "{probe}: {found:#}");
    }
    // The router is the one hop between two sites.
    let records: Value =
        serde_json::from_str(&sites.results(&["active", "--task", "way.oslo", "--format", "json"])).unwrap();
    let names_its_router = |one: &Value| {
        let router = if one["probe"] == "bern" { "10.80.1.1" } else { "10.80.3.1" };
        one["record"].to_string().contains(router)
    };
    assert!(records.as_array().unwrap().iter().any(names_its_router), "{records:#}");
}

#[test]
fn two_interfaces_of_one_probe_are_two_points_of_a_path() {
    if !permitted() {
        return;
    }
    let join = format!(
        "[tasks.delay]
on = [\"wall\"]
kind = \"digest\"
filter = \"ip and udp port {FLOW}\"
[joins.through]
task = \"delay\"
points = [\"wall/site1\", \"wall/site2\"]
patience = \"500ms\"
clocks_apart = \"100ms\"
"
    );
    let mut sites = Sites::start(&["bern", "oslo"], &["wall"], &join);
    sites.drop_doomed();
    sites.probe("wall", Star::hub);
    sites.watch(1);
    sites.flow(500, |_| {});
    sites.until("all is joined", Span::from_secs(30), |it| {
        it.captures_lost() || (it.is_settled() && it.joined() == 500)
    });
    if sites.captures_lost() {
        return sites.end_without_captures("wall/site1", "wall/site2", [500, 475]);
    }
    let row = sites.delay("wall/site1", "wall/site2");
    println!("{row:?}");
    assert_eq!((row.packets, row.matched, row.lost, row.unobserved), (500, 475, 25, 0));
    assert_eq!((row.clock_method.as_str(), row.clock_bound), ("same_host", Some(Span::ZERO)));
    assert_eq!((row.delay.count, row.below_bound), (475, 0), "no delay below zero");
    let shown = sites.results(&["delays", "--pair", "wall/site1,wall/site2"]);
    assert!(shown.contains("wall/site1 -> wall/site2  (passive, IPv4, through)"), "{shown}");
    // The quickest of so many met no other program on its way; how long the others take is the
    // machine's doing.
    assert!(row.delay.min < Span::from_millis(1), "{row:?}");
}

#[test]
fn marked_blocks_of_two_sites_are_loss_and_delay() {
    if !permitted() {
        return;
    }
    let join = format!(
        "[tasks.marked]
on = [\"all\"]
kind = \"marking\"
filter = \"ip and udp port {FLOW}\"
colour_bit = 0
delay_bit = 1
block_ms = 500
[joins.marks]
task = \"marked\"
points = [\"bern\", \"oslo\"]
pairs = [[\"bern\", \"oslo\"]]
"
    );
    let mut sites = Sites::start(&["bern", "oslo"], &["bern", "oslo"], &join);
    sites.drop_doomed();
    sites.probe("bern", |star| &star.sites()[0]);
    sites.probe("oslo", |star| &star.sites()[1]);
    sites.watch(2);
    // The marker: the colour of the present block; every tenth packet is marked for its delay, and
    // one of each block at least, as a block without a mark has the delay of its mean.
    let [count, marked, marked_block] = [(); 3].map(|()| AtomicU64::new(0));
    sites.flow(1000, |socket| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let block = (clock::wall().0 / 500_000_000).unsigned_abs();
        let lacks_mark = marked_block.load(Ordering::Relaxed) != block;
        let is_marked = !is_doomed(n) && (n % 10 == 2 || lacks_mark);
        if is_marked {
            marked.fetch_add(1, Ordering::Relaxed);
            marked_block.store(block, Ordering::Relaxed);
        }
        let bits = (block % 2) as u32 | u32::from(is_marked) << 1;
        socket2::SockRef::from(socket).set_tos_v4(bits << 2).unwrap();
    });
    sites.until("all blocks are joined", Span::from_secs(30), |it| it.joined() == 1000 || it.captures_lost());
    if sites.captures_lost() {
        return netaware_testkit::inconclusive("a capture lost packets");
    }
    let row = sites.delay("bern", "oslo");
    println!("{row:?}");
    assert_eq!((row.method.as_str(), row.version), ("alternate_marking", None));
    assert_eq!((row.packets, row.matched, row.lost, row.unobserved), (1000, 950, 50, 0));
    assert_eq!((row.delay.count, row.below_bound), (marked.into_inner(), 0));
    let shown = sites.results(&["delays"]);
    println!("{shown}");
    assert!(shown.contains("bern -> oslo  (alternate_marking, marks)"), "{shown}");
    assert!(shown.contains("5.00%"), "{shown}");
    let metrics = sites.ask("/metrics");
    let lost = metrics.lines().find(|line| line.starts_with("netaware_path_lost_total"));
    assert!(lost.is_some_and(|line| line.contains("alternate_marking") && line.ends_with(" 50")), "{lost:?}");
    assert!(row.delay.min < Span::from_millis(1), "{row:?}");
}
