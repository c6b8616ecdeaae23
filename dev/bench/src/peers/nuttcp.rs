//! nuttcp.

use anyhow::{Context as _, Result};
use netaware_netns::{IpVersion, Transport};

use super::cpu_percent;
use crate::contest::Reading;
use crate::place::Place;
use crate::session::{Finished, Session};

const CONTROL_PORT: u16 = 5000;

pub(crate) fn tcp(place: Place<'_>, streams: u32, seconds: u32) -> Result<Reading> {
    let streams = format!("-N{streams}");
    let several: &[&str] = if streams == "-N1" { &[] } else { &[&streams] };
    parse_tcp(&run(place, seconds, several)?)
}

/// As fast as it goes, with the largest socket buffers it can have, which its default is far below.
pub(crate) fn udp(place: Place<'_>, payload: u32, seconds: u32) -> Result<Reading> {
    parse_udp(&run(place, seconds, &["-u", "-Ru", "-w4m", &format!("-l{payload}")])?)
}

/// At so many bits per second of payload. Its receiver's counts are in what it said.
pub(crate) fn paced(place: Place<'_>, payload: u32, bits: u64, seconds: u32) -> Result<Finished> {
    run(place, seconds, &["-u", &format!("-R{}k", bits / 1000), &format!("-l{payload}")])
}

/// What arrived of a paced stream: payload rate and loss. It tells no jitter.
pub(crate) fn arrived(finished: &Finished) -> Result<Reading> {
    let line = &finished.stdout;
    let loss = 100.0 * value(line, "drop")? / value(line, "pkt")?;
    Ok(vec![("Mbit/s", value(line, "rate_Mbps")?), ("loss %", loss)])
}

fn run(place: Place<'_>, seconds: u32, options: &[&str]) -> Result<Finished> {
    let mut server = place.server("nuttcp");
    server.args(["-S", "--nofork"]).args(family(place));
    let mut client = place.client("nuttcp", seconds);
    client.args(family(place)).args(["-fparse", &format!("-T{seconds}")]).args(options);
    client.arg(place.address().to_string());
    Session { server, ready: (Transport::Tcp, CONTROL_PORT), client }.run()
}

fn family(place: Place<'_>) -> &'static [&'static str] {
    if place.version == IpVersion::V6 { &["-6"] } else { &[] }
}

fn parse_tcp(finished: &Finished) -> Result<Reading> {
    let seconds = value(&finished.stdout, "real_seconds")?;
    let cpu = cpu_percent(finished.cpu_seconds, seconds);
    Ok(vec![("Gbit/s", value(&finished.stdout, "rate_Mbps")? / 1e3), ("sender CPU %", cpu)])
}

/// `pkt` counts what was sent, `drop` what of it did not arrive.
fn parse_udp(finished: &Finished) -> Result<Reading> {
    let line = &finished.stdout;
    let (sent, lost, seconds) = (value(line, "pkt")?, value(line, "drop")?, value(line, "real_seconds")?);
    Ok(vec![
        ("packets/s", (sent - lost) / seconds),
        ("loss %", 100.0 * lost / sent),
        ("sender CPU %", cpu_percent(finished.cpu_seconds, seconds)),
    ])
}

fn value(line: &str, name: &str) -> Result<f64> {
    let text = line.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    text.and_then(|text| text.parse().ok()).with_context(|| format!("nuttcp told no {name}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(line: &str) -> Finished {
        Finished { stdout: line.to_owned(), cpu_seconds: 1.0 }
    }

    /// nuttcp 6.1.2.
    #[test]
    fn parsable_lines_are_parsed() {
        let tcp = "megabytes=5689.9343 real_seconds=2.00 rate_Mbps=23861.8424 tx_cpu=46 rx_cpu=55 retrans=0 rtt_ms=0.42\n";
        assert_eq!(parse_tcp(&finished(tcp)).unwrap(), [("Gbit/s", 23.861_842_4), ("sender CPU %", 50.0)]);
        let udp = "megabytes=15.4348 real_seconds=2.00 rate_Mbps=64.7344 tx_cpu=69 rx_cpu=32 drop=128146 pkt=381030 data_loss=33.63146\n";
        let reading = parse_udp(&finished(udp)).unwrap();
        assert_eq!(reading[0], ("packets/s", 126_442.0));
        assert!((reading[1].1 - 33.631_46).abs() < 1e-4, "{reading:?}");
        let reading = arrived(&finished(udp)).unwrap();
        assert_eq!(reading[0], ("Mbit/s", 64.7344));
        assert!((reading[1].1 - 33.631_46).abs() < 1e-4, "{reading:?}");
    }

    #[test]
    fn refusal_is_an_error() {
        assert!(parse_tcp(&finished("nuttcp-t: v6.1.2: Error: connect: Connection refused\n")).is_err());
    }
}
