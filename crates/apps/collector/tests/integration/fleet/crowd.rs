//! A thousand probes at one collector that is killed under them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use netaware_io::clock;
use netaware_record::passive::{PacketSighting, Period};
use netaware_units::Span;

use super::joined::{periods, sums};
use super::killed::{serve, serve_if_told};
use super::probe::{Probe, seen};
use super::{Running, TWO, start};

const COUNT: usize = 1000;
/// Packets that each sees in each period.
const PACKETS: u64 = 20;

fn name(n: usize) -> String {
    match n {
        0 => "a".to_owned(),
        1 => "b".to_owned(),
        _ => format!("p{n}"),
    }
}

/// A file in which a thousand probes are known, and all their keys.
fn known(folder: &std::path::Path) -> String {
    let mut text = TWO.to_owned();
    for name in (2..COUNT).map(name) {
        std::fs::write(folder.join(format!("{name}.key")), format!("key of {name}")).unwrap();
        text.extend(["[probes.", &name, "]\nkey_file = \"", &name, ".key\"\n"]);
    }
    text
}

/// What a probe has on its disk: one batch for each period. Of what `a` saw `b` sees all, 0.2 ms
/// later.
struct Disk {
    name: String,
    batches: Vec<(u64, Period, Vec<PacketSighting>)>,
}

impl Disk {
    fn filled(n: usize, periods: &[Period]) -> Self {
        let (delay, ttl) = if n == 1 { (200_000, 63) } else { (0, 64) };
        let first = n.saturating_sub(1) as u64 * 1000;
        let of = |(place, period): (usize, &Period)| {
            let at = |k: u64| period.from.0 + 100_000_000 + k as i64 * 1_000_000 + delay;
            let packet = |k: u64| seen(first + place as u64 * PACKETS + k, at(k), ttl);
            (place as u64 + 1, *period, (0..PACKETS).map(packet).collect())
        };
        Self { name: name(n), batches: periods.iter().enumerate().map(of).collect() }
    }

    /// Connects, and sends what was not taken up to a number.
    fn bring(&self, to: SocketAddr, until: u64) -> Probe {
        let mut probe = Probe::join(to, &self.name);
        let taken = probe.taken;
        for (sequence, period, packets) in
            self.batches.iter().filter(|(n, ..)| (taken + 1..=until).contains(n))
        {
            probe.batch(*sequence, *period, packets);
        }
        probe
    }
}

/// All of them at once, eight at a time.
fn bring_all(disks: &[Disk], to: SocketAddr, until: u64) -> Vec<Probe> {
    std::thread::scope(|scope| {
        let parts = disks.chunks(COUNT / 8);
        let bring = |part: &'_ [Disk]| part.iter().map(|disk| disk.bring(to, until)).collect::<Vec<_>>();
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || bring(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// By probe and period: what the stored reports say was selected.
fn stored(collector: &Running) -> BTreeMap<(String, i64), u64> {
    let mut all = BTreeMap::new();
    let mut after = String::new();
    for _ in 0..100 {
        let page = collector.ask(&format!("/api/v1/rows/digests?from=0&limit=1000{after}"));
        for item in page["items"].as_array().unwrap() {
            let at = (item["probe"].as_str().unwrap().to_owned(), item["period"]["from"].as_i64().unwrap());
            let selected = item["row"]["selected"].as_u64().unwrap();
            assert!(all.insert(at.clone(), selected).is_none(), "{at:?} is there twice");
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
    panic!("there is always another page");
}

const TEST: &str =
    "fleet::crowd::a_thousand_probes_lose_nothing_and_count_nothing_twice_when_their_collector_is_killed";

#[test]
fn a_thousand_probes_lose_nothing_and_count_nothing_twice_when_their_collector_is_killed() {
    serve_if_told();
    // Both ends are here.
    let limit = netaware_host::raise_open_files(8192);
    assert!(limit.is_some_and(|limit| limit > 2 * COUNT as u64 + 200), "open files: {limit:?}");
    let folder = tempfile::tempdir().unwrap();
    let text = known(folder.path());
    let (periods, mut taken_before) = (periods(3), 0);
    let disks: Vec<Disk> = (0..COUNT).map(|n| Disk::filled(n, &periods)).collect();
    let (mut child, address) = serve(TEST, folder.path(), &text);
    let mut probes = bring_all(&disks, address, 2);
    // Half of them have heard that all is taken; of the others some of it is on the way, some in
    // the store.
    for probe in probes.iter_mut().take(COUNT / 2) {
        probe.until_taken(2);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(probes);

    let collector = start(folder.path(), &text);
    let mut probes = bring_all(&disks, collector.address, 3);
    for probe in &mut probes {
        taken_before += probe.taken;
        probe.until_taken(3);
    }
    assert!(taken_before >= COUNT as u64, "what was said to be taken was kept: {taken_before}");
    let views = collector.ask("/api/v1/probes");
    let connected = views.as_array().unwrap().iter().filter(|view| view["connected"] == true).count();
    assert_eq!(connected, COUNT);
    let stored = stored(&collector);
    let places: BTreeSet<(String, i64)> = disks
        .iter()
        .flat_map(|disk| periods.iter().map(|period| (disk.name.clone(), period.from.0)))
        .collect();
    assert_eq!(stored.keys().cloned().collect::<BTreeSet<_>>(), places);
    assert!(stored.values().all(|selected| *selected == PACKETS));
    // What the joins of the killed one held is unobserved; none is lost and none is there twice.
    let until = clock::now() + Span::from_secs(15);
    let settled = |[packets, matched, lost, unobserved]: [u64; 4]| {
        packets == 3 * PACKETS && matched + unobserved == packets && matched >= PACKETS && lost == 0
    };
    while !settled(sums(&collector)) {
        assert!(clock::now() < until, "packets, matched, lost, unobserved: {:?}", sums(&collector));
        clock::sleep(Span::from_millis(50));
    }
}
