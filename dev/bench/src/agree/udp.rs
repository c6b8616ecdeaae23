//! A paced UDP stream: what arrives, what is lost, and how unevenly.

use std::path::Path;

use netaware_netns::IpVersion;

use super::VERSIONS;
use super::compare::{Comparison, Figure, Told};
use super::path::{EmulatedPath, LOSS, MEAN_JITTER_US, Paths};
use crate::contest::{Contest, Reading};
use crate::peers::{iperf3, netaware, nuttcp};
use crate::place::Place;

const PAYLOAD: u32 = 1400;
const SPACING_US: u32 = 560;
/// Payload of the above: 20 Mbit/s.
const BITS_PER_SECOND: u64 = PAYLOAD as u64 * 8 * 1_000_000 / SPACING_US as u64;
/// Its pacing wakes up each millisecond by default, and then sends what is due.
const IPERF3_FINE: &str = "iperf3 --pacing-timer 10";

pub(super) fn comparisons<'a>(paths: &'a Paths, ours: &'a Path, seconds: u32) -> Vec<Comparison<'a>> {
    let truths =
        [(&paths.plain, 0.0, 0.0), (&paths.lossy, LOSS, 0.0), (&paths.uneven, 0.0, even_jitter_us())];
    let both = |(path, loss, jitter_us)| {
        VERSIONS.map(|version| comparison(path, Truth { loss, jitter_us }, ours, version, seconds))
    };
    truths.into_iter().flat_map(both).collect()
}

/// The jitter of RFC 3550 tends to the mean of |D|; of delays drawn evenly from 0 to 2m that is
/// 2m/3.
fn even_jitter_us() -> f64 {
    2.0 * MEAN_JITTER_US / 3.0
}

#[derive(Debug, Clone, Copy)]
struct Truth {
    loss: f64,
    jitter_us: f64,
}

fn comparison<'a>(
    path: &'a EmulatedPath,
    truth: Truth,
    ours: &'a Path,
    version: IpVersion,
    seconds: u32,
) -> Comparison<'a> {
    let iperf3 = move |extra: &'static [&'static str]| {
        move |at: Place<'_>| {
            let told = iperf3::paced("iperf3".as_ref(), at, PAYLOAD, BITS_PER_SECOND, seconds, extra)?;
            iperf3::arrived(&told, PAYLOAD)
        }
    };
    let netaware = move |at: Place<'_>| -> anyhow::Result<Reading> {
        netaware::arrived(&netaware::paced(ours, at, PAYLOAD, SPACING_US, seconds)?)
    };
    let nuttcp = move |at: Place<'_>| nuttcp::arrived(&nuttcp::paced(at, PAYLOAD, BITS_PER_SECOND, seconds)?);
    let contenders = vec![
        path.contender("netaware", version, netaware),
        path.contender("iperf3", version, iperf3(&[])),
        path.contender(IPERF3_FINE, version, iperf3(&["--pacing-timer", "10"])),
        path.contender("nuttcp", version, nuttcp),
    ];
    let rate = BITS_PER_SECOND as f64 / 1e6 * (1.0 - truth.loss);
    // One datagram more or less is the least that anybody can tell.
    let datagram = 1.0 / (f64::from(seconds) * 1e6 / f64::from(SPACING_US));
    let figures = vec![
        figure("Mbit/s", 3, rate, rate * datagram, &["iperf3", IPERF3_FINE, "nuttcp"]),
        figure("loss %", 3, 100.0 * truth.loss, 100.0 * datagram, &["iperf3", IPERF3_FINE, "nuttcp"]),
        figure("jitter us", 1, truth.jitter_us, IPERF3_JITTER_DIGIT_US, &["iperf3", IPERF3_FINE]),
    ];
    let title = format!("{}, {}", path.name, super::name(version));
    Comparison { contest: Contest { title, contenders, claims: Vec::new() }, figures }
}

/// Both ends' stamps are microseconds in its datagrams.
const IPERF3_JITTER_DIGIT_US: f64 = 1.0;

fn figure(
    name: &'static str,
    decimals: usize,
    truth: f64,
    resolution: f64,
    peers: &[&'static str],
) -> Figure {
    let ours = Told::by("netaware", name).to(if name == "jitter us" { 0.0 } else { resolution });
    let pairings = peers.iter().map(|peer| [Told::by(peer, name).to(resolution), ours]);
    Figure { name, decimals, truth: Some(truth), pairings: pairings.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_is_a_whole_rate() {
        assert_eq!(BITS_PER_SECOND, 20_000_000);
    }

    /// By summing |x - y| over a fine grid.
    #[test]
    fn jitter_of_even_delays_is_a_third_of_their_range() {
        let delays: Vec<f64> =
            (0..500).map(|k| (f64::from(k) + 0.5) / 500.0 * 2.0 * MEAN_JITTER_US).collect();
        let sum: f64 = delays.iter().flat_map(|x| delays.iter().map(move |y| (x - y).abs())).sum();
        let mean = sum / (500.0 * 500.0);
        assert!((mean - even_jitter_us()).abs() < 0.01, "{mean}");
    }
}
