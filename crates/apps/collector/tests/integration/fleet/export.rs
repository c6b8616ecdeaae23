//! Delays to a collector of somebody else's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use netaware_ipfix::{Listener, Options, Over, Sink};
use netaware_tls::pem;
use netaware_units::Span;
use netaware_wire::ipfix::Found;
use netaware_wire::ipfix::meaning::DelayReport;
use rustls::ServerConfig;

use super::foreign::wait;
use super::joined::periods;
use super::probe::{Probe, seen};
use super::secure::certified;
use super::{TWO, start};

/// With this certificate and key, TLS 1.3.
fn server((chain, key): (PathBuf, PathBuf)) -> Arc<ServerConfig> {
    let (chain, key) = (pem::certificates(&chain).unwrap(), pem::secret(&key).unwrap());
    let config = ServerConfig::builder_with_provider(netaware_tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    Arc::new(config.unwrap())
}

#[test]
fn delays_that_the_collector_makes_are_told_to_others_over_each_transport() {
    let heard: Arc<Mutex<Vec<(Over, DelayReport)>>> = Arc::default();
    let into = heard.clone();
    let sink: Sink = Arc::new(move |origin, found| {
        if let Found::Delay(delay) = found {
            into.lock().unwrap().push((origin.over, delay));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let any = ([127, 0, 0, 1], 0).into();
    let encrypted = |name| Some((any, server(certified(folder.path(), name, &["localhost"]))));
    let options = Options { tcp: Some(any), udp: Some(any), tls: encrypted("theirs"), ..Options::default() };
    let listener = Listener::open(&options, &sink).unwrap();
    let [tcp, udp, tls] = [Over::Tcp, Over::Udp, Over::Tls].map(|over| listener.address(over).unwrap());
    // Whose certificate nobody of ours has signed.
    let none: Sink = Arc::new(|_, found| panic!("a stranger hears {found:?}"));
    let stranger = Options { tls: encrypted("stranger"), ..Options::default() };
    let stranger = Listener::open(&stranger, &none).unwrap();
    let strange = format!("tls://localhost:{}", stranger.address(Over::Tls).unwrap().port());
    let tls = format!("tls://localhost:{}", tls.port());
    let export = format!("[\"tcp://{tcp}\", \"udp://{udp}\", \"{tls}\", \"{strange}\"]");
    let collector = start(folder.path(), &format!("export = {export}\nexport_ca = \"theirs.pem\"{TWO}"));
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
    let has_all = |over| matched(over) == 500;
    wait("all packets of all periods", || [Over::Tcp, Over::Udp, Over::Tls].into_iter().all(has_all));
    for (_, delay) in heard.lock().unwrap().iter().filter(|(_, delay)| delay.from == "a") {
        assert_eq!((delay.to.as_str(), delay.version, delay.packets, delay.lost), ("b", 4, 100, 0));
        assert_eq!(delay.delay_us, Some([376, 376, 376, 37_600]));
        assert_eq!((delay.until.since(delay.since), delay.below_bound), (Span::from_secs(1), Some(0)));
    }
    let lost = |target: &str| -> u64 {
        let metrics = collector.client().ask("GET", "/metrics", "").unwrap().body;
        let name = format!("netaware_collector_export_lost_total{{target=\"{target}\"}} ");
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(&name)?.parse().ok())
            .unwrap_or_else(|| panic!("{metrics}"))
    };
    // Each target has a thread of its own: that others have all says nothing of this one.
    wait("the stranger's are lost", || lost(&strange) > 0);
    assert_eq!((lost(&format!("tcp://{tcp}")), lost(&tls)), (0, 0));
}
