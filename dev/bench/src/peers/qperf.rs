//! qperf.

use anyhow::{Context as _, Result};
use netaware_netns::Transport;

use super::cpu_percent;
use crate::contest::Reading;
use crate::place::Place;
use crate::session::{Finished, Session};

const PORT: u16 = 19765;
/// Significant digits; its default of three is coarser than what its runs differ by.
const PRECISION: &str = "7";

pub(crate) fn tcp(place: Place<'_>, seconds: u32) -> Result<Reading> {
    let finished = run(place, seconds, &["tcp_bw"])?;
    let cpu = cpu_percent(finished.cpu_seconds, f64::from(seconds));
    Ok(vec![("Gbit/s", parse(&finished.stdout, "bw")? * 8.0 / 1e9), ("sender CPU %", cpu)])
}

/// It tells half the mean round trip, and no distribution.
pub(crate) fn udp_latency(place: Place<'_>, payload: u32, seconds: u32) -> Result<Reading> {
    let finished = run(place, seconds, &["-m", &payload.to_string(), "udp_lat"])?;
    Ok(vec![("mean us", 2.0 * parse(&finished.stdout, "latency")? * 1e6)])
}

fn run(place: Place<'_>, seconds: u32, test: &[&str]) -> Result<Finished> {
    let mut server = place.server("qperf");
    server.args(["-lp", &PORT.to_string()]);
    let mut client = place.client("qperf", seconds);
    client
        .args([&place.address().to_string(), "-lp", &PORT.to_string(), "-t", &seconds.to_string()])
        .args(["--precision", PRECISION])
        .args(test);
    Session { server, ready: (Transport::Tcp, PORT), client }.run()
}

/// `bw  =  3.31 GB/sec` in bytes per second, `latency  =  5.01 us` in seconds.
fn parse(text: &str, name: &str) -> Result<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = words.windows(4).find(|four| four[0] == name && four[1] == "=");
    let found = found.and_then(|four| Some((four[2].parse::<f64>().ok()?, scale(four[3])?)));
    let (number, scale) = found.with_context(|| format!("qperf told no {name}: {text}"))?;
    Ok(number * scale)
}

fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "GB/sec" => 1e9,
        "MB/sec" => 1e6,
        "KB/sec" => 1e3,
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "sec" => 1.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// qperf 0.4.11.
    #[test]
    fn units_are_obeyed() {
        let rate = parse("tcp_bw:\n    bw  =  4.2 GB/sec\n", "bw").unwrap();
        assert!((rate - 4.2e9).abs() < 1.0);
        let latency = parse("udp_lat:\n    latency  =  5.01 us\n", "latency").unwrap();
        assert!((latency - 5.01e-6).abs() < 1e-12);
        assert!(parse("udp_lat:\n    latency  =  5.01 parsecs\n", "latency").is_err());
    }
}
