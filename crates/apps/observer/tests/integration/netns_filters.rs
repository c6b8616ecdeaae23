//! What a task's filter lets through does not depend on what other tasks there are, for packets
//! with a VLAN tag as well:
//!
//! ```text
//!   left ── datagrams, plain and tagged ── veth ── right: a probe with one task, then with two
//! ```
//!
//! With one filter the kernel runs it, with two each task runs its own. Needs root: `cargo xtask
//! netns`.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use netaware_capture::Options;
use netaware_io::clock;
use netaware_netns::{Pair, Side, permitted};
use netaware_observer::ground::Host;
use netaware_observer::probe::{Ground, Probe, ProbeSettings};
use netaware_observer::watch::report::Outlet;
use netaware_observer::watch::run::Pace;
use netaware_observer::watch::source::Source;
use netaware_observer::watch::station::Matcher;
use netaware_passive::Link;
use netaware_record::passive::{ClockState, PacketSighting, ProbeReport, Row};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::{Instruction, Task, What};
use netaware_wire::packet::Tunnels;

/// The interface inside: what lists interfaces shows those of the whole host.
struct Lan(Host);

impl Ground for Lan {
    fn interfaces(&self) -> Vec<String> {
        vec!["lan".to_owned()]
    }

    fn open(&mut self, interface: &str) -> Result<Vec<Box<dyn Source>>, String> {
        self.0.open(interface)
    }

    fn link(&self, _: &str) -> Link {
        Link::default()
    }

    fn compile(&self, text: &str, interface: &str) -> Result<Matcher, String> {
        self.0.compile(text, interface)
    }

    fn pace(&self) -> Pace {
        Pace::Live
    }
}

struct Told(Sender<ProbeReport>);

impl Outlet for Told {
    fn sightings(&mut self, _: &str, _: &str, _: &[PacketSighting]) {}

    fn report(&mut self, report: ProbeReport) {
        let _ = self.0.send(report);
    }
}

/// The time that each report is about.
const PERIOD_MS: u64 = 200;
const PERIOD: Span = Span::from_millis(PERIOD_MS as i64);

/// Each with a filter of its own.
fn instruction(number: u64, filters: &[&str]) -> Instruction {
    let task = |filter: &&str| {
        let what = What::Volume { by: Vec::new(), prefix: None, keys: 1 };
        let task = Task { interface: None, filter: Some((*filter).to_owned()), what, schedule: None };
        ((*filter).replace(' ', "-"), task)
    };
    let tasks = filters.iter().map(task).collect();
    Instruction { number, tasks, suppression: None, seed: "0".repeat(32), period_ms: PERIOD_MS as u32 }
}

/// A broadcast frame with an empty UDP datagram behind these tags.
fn datagram(tags: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1];
    bytes.extend(tags);
    bytes.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 255]);
    bytes.extend([0, 9, 0x23, 0x28, 0, 8, 0, 0]);
    bytes
}

/// Packets that each task counted in the period of a report.
fn volumes(report: &ProbeReport) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in &report.rows {
        if let Row::Volume(volume) = &row.row {
            *sums.entry(row.task.clone()).or_default() += volume.packets;
        }
    }
    sums
}

/// The next report that meets a condition; those before it are given to `seen`.
fn next(
    reports: &Receiver<ProbeReport>,
    is_wanted: impl Fn(&ProbeReport) -> bool,
    mut seen: impl FnMut(&ProbeReport),
) {
    let until = clock::now() + Span::from_secs(10);
    loop {
        let report = reports.recv_timeout((until - clock::now()).to_std()).expect("a report in time");
        if is_wanted(&report) {
            return;
        }
        seen(&report);
    }
}

/// Sends one packet of each kind; returns what every task counted until the periods of that are
/// over.
fn counted(from: &Side, reports: &Receiver<ProbeReport>, tasks: usize) -> BTreeMap<String, u64> {
    // In a period that began after the instruction was given, with all of its tasks and no other.
    let given_at = clock::wall();
    next(reports, |report| report.period.from > given_at && volumes(report).len() == tasks, |_| {});
    for tags in [&[][..], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 5]] {
        from.inject(&datagram(tags)).unwrap();
    }
    // A packet may be read a period after it came.
    let over_at = Wall(clock::wall().0 + (PERIOD * 2).0);
    let mut sums = BTreeMap::new();
    let add = |report: &ProbeReport| {
        for (task, packets) in volumes(report) {
            *sums.entry(task).or_default() += packets;
        }
    };
    next(reports, |report| report.period.from > over_at, add);
    sums
}

#[test]
fn a_tagged_packet_passes_the_same_filter_beside_another_task() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("filters").unwrap();
    let (alone, beside) = pair
        .right()
        .within(|| {
            let (sender, reports) = channel();
            let settings = ProbeSettings {
                name: "here".to_owned(),
                tunnels: Tunnels::default(),
                clock: Box::new(ClockState::default),
                stamp: std::sync::Arc::new(|_, _, _, _| panic!("no task sends")),
                random: 1,
                said: std::sync::Arc::default(),
            };
            let rings = std::num::NonZeroUsize::MIN;
            let host = Host { options: Options::new("lan"), rings, only: Vec::new() };
            let (mut probe, _reporting) = Probe::new(Lan(host), settings, Told(sender), PERIOD)?;
            probe.follow(instruction(1, &["udp port 9000"]));
            assert!(probe.refused().is_empty(), "{:?}", probe.refused());
            let alone = counted(pair.left(), &reports, 1);
            probe.follow(instruction(2, &["udp port 9000", "tcp", "vlan 5 and udp"]));
            let beside = counted(pair.left(), &reports, 3);
            probe.end();
            Ok((alone, beside))
        })
        .unwrap();
    // Behind two tags is what neither finds: the kernel takes out the outer one only.
    assert_eq!(alone["udp-port-9000"], 2, "{alone:?}");
    assert_eq!(beside["udp-port-9000"], 2, "{beside:?}");
    assert_eq!((beside["tcp"], beside["vlan-5-and-udp"]), (0, 1), "{beside:?}");
}
