//! Delays to a collector of somebody else's.

use std::sync::{Arc, Mutex};

use netaware_ipfix::{Listener, Options, Over, Sink};
use netaware_units::Span;
use netaware_wire::ipfix::Found;
use netaware_wire::ipfix::meaning::DelayReport;

use super::foreign::wait;
use super::joined::periods;
use super::probe::{Probe, seen};
use super::{TWO, start};

#[test]
fn delays_that_the_collector_makes_are_told_to_others_over_each_transport() {
    let heard: Arc<Mutex<Vec<(Over, DelayReport)>>> = Arc::default();
    let into = heard.clone();
    let sink: Sink = Arc::new(move |origin, found| {
        if let Found::Delay(delay) = found {
            into.lock().unwrap().push((origin.over, delay));
        }
    });
    let any = ([127, 0, 0, 1], 0).into();
    let options = Options { tcp: Some(any), udp: Some(any), ..Options::default() };
    let listener = Listener::open(&options, &sink).unwrap();
    let [tcp, udp] = [Over::Tcp, Over::Udp].map(|over| listener.address(over).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), &format!("export = [\"tcp://{tcp}\", \"udp://{udp}\"]{TWO}"));
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    for (place, period) in periods(5).into_iter().enumerate() {
        let packets = |delay: i64, ttl| -> Vec<_> {
            let at = |n: u64| period.from.0 + 100_000_000 + n as i64 * 1_000_000 + delay;
            (0..100).map(|n| seen(place as u64 * 1000 + n, at(n), ttl)).collect()
        };
        let sequence = place as u64 + 1;
        a.batch(sequence, period, &packets(0, 64));
        b.batch(sequence, period, &packets(376_000, 63));
        a.until_taken(sequence);
        b.until_taken(sequence);
    }
    let matched = |over| -> u64 {
        let heard = heard.lock().unwrap();
        heard
            .iter()
            .filter(|(of, delay)| *of == over && delay.from == "a")
            .map(|(_, delay)| delay.matched)
            .sum()
    };
    wait("all packets of all periods", || matched(Over::Tcp) == 500 && matched(Over::Udp) == 500);
    for (_, delay) in heard.lock().unwrap().iter().filter(|(_, delay)| delay.from == "a") {
        assert_eq!((delay.to.as_str(), delay.version, delay.packets, delay.lost), ("b", 4, 100, 0));
        assert_eq!(delay.delay_us, Some([376, 376, 376, 37_600]));
        assert_eq!((delay.until.since(delay.since), delay.below_bound), (Span::from_secs(1), Some(0)));
    }
    let metrics = collector.client().ask("GET", "/metrics", "").unwrap().body;
    assert!(
        metrics.contains(&format!("netaware_collector_export_lost_total{{target=\"tcp://{tcp}\"}} 0")),
        "{metrics}"
    );
}
