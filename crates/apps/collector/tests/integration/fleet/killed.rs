//! A collector in a process of its own, killed with signal 9 while packets wait to be joined.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use netaware_collector::Config;

use super::joined::{awaited, periods};
use super::probe::{Probe, seen};
use super::{TWO, config, start};

const FOLDER: &str = "NETAWARE_TEST_SERVES";

const TEST: &str = "fleet::killed::packets_that_a_killed_collector_held_are_unobserved_and_none_is_lost";

/// Serves until it is killed, if this process is one that [`serve`] started; returns at once
/// otherwise. A test that starts such a process calls this first.
pub(crate) fn serve_if_told() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let path = std::path::Path::new(&folder).join("collect.toml");
    let collector = netaware_collector::Collector::start(Config::load(&path).unwrap()).unwrap();
    println!("\nlistening {}", collector.addresses()[0]);
    collector.run().unwrap();
}

/// A collector in a process of its own, and where it listens. `test` is the path of the calling
/// test, which that process begins to run as well, and gets no further than [`serve_if_told`].
pub(crate) fn serve(test: &str, folder: &std::path::Path, text: &str) -> (Child, std::net::SocketAddr) {
    config(folder, text);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines.find_map(|line| line.unwrap().strip_prefix("listening ")?.parse().ok());
    (child, address.unwrap())
}

#[test]
fn packets_that_a_killed_collector_held_are_unobserved_and_none_is_lost() {
    serve_if_told();
    let folder = tempfile::tempdir().unwrap();
    let (mut child, address) = serve(TEST, folder.path(), TWO);
    let periods = periods(3);
    let at = |place: usize, n: u64| periods[place].from.0 + 100_000_000 + n as i64 * 100_000;
    let packets = |place: usize, delay: i64, ttl| -> Vec<_> {
        (0..500).map(|n| seen(place as u64 * 1000 + n, at(place, n) + delay, ttl)).collect()
    };
    // The first point's packets are taken, the second's are still on its disk when the process
    // dies.
    let mut a = Probe::join(address, "a");
    a.batch(1, periods[0], &packets(0, 0, 64));
    a.batch(2, periods[1], &packets(1, 0, 64));
    a.until_taken(2);
    child.kill().unwrap();
    child.wait().unwrap();

    let collector = start(folder.path(), TWO);
    let (mut a, mut b) = (Probe::join(collector.address, "a"), Probe::join(collector.address, "b"));
    assert_eq!((a.taken, b.taken), (2, 0));
    a.batch(3, periods[2], &packets(2, 0, 64));
    for (place, period) in periods.iter().enumerate() {
        b.batch(place as u64 + 1, *period, &packets(place, 250_000, 63));
    }
    a.until_taken(3);
    b.until_taken(3);
    let sums = awaited(&collector, [1500, 500, 0, 1000]);
    assert_eq!(sums, [1500, 500, 0, 1000], "packets, matched, lost, unobserved");
}
