//! iperf (version 2).

use anyhow::{Context as _, Result};
use netaware_netns::{IpVersion, Transport};

use super::cpu_percent;
use crate::contest::Reading;
use crate::place::Place;
use crate::session::Session;

const PORT: u16 = 5001;

/// As fast as it goes: it knows no "unlimited", so a rate far above any is asked for.
pub(crate) fn udp(place: Place<'_>, payload: u32, seconds: u32) -> Result<Reading> {
    let (port, payload, seconds_text) = (PORT.to_string(), payload.to_string(), seconds.to_string());
    let family: &[&str] = if place.version == IpVersion::V6 { &["-V"] } else { &[] };
    let mut server = place.server("iperf");
    server.args(["-s", "-u", "-p", &port, "-l", &payload]).args(family);
    let mut client = place.client("iperf", seconds);
    client.args(["-c", &place.address().to_string(), "-u", "-p", &port, "-l", &payload]);
    client.args(["-b", "1000g", "-t", &seconds_text]).args(family);
    let finished = Session { server, ready: (Transport::Udp, PORT), client }.run()?;
    parse(&finished.stdout, finished.cpu_seconds)
}

/// `[  1] 0.0000-1.9992 sec  19.2 MBytes  80.4 Mbits/sec   0.000 ms 133355/447339 (30%)` below "Server Report".
fn parse(text: &str, cpu_seconds: f64) -> Result<Reading> {
    let report = text.split_once("Server Report").map(|(_, report)| report);
    let report = report.context("iperf got no report from its server")?;
    let words: Vec<&str> = report.split_whitespace().collect();
    let counts = words.iter().find_map(|word| {
        let (lost, sent) = word.split_once('/')?;
        Some((lost.parse::<f64>().ok()?, sent.parse::<f64>().ok()?))
    });
    let seconds = words.windows(2).find_map(|pair| match pair {
        [interval, "sec"] => interval.split_once('-')?.1.parse::<f64>().ok(),
        _ => None,
    });
    let (lost, sent) = counts.context("no lost/total in iperf's server report")?;
    let seconds = seconds.context("no interval in iperf's server report")?;
    Ok(vec![
        ("packets/s", (sent - lost) / seconds),
        ("loss %", 100.0 * lost / sent),
        ("sender CPU %", cpu_percent(cpu_seconds, seconds)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// iperf 2.1.8.
    const CLIENT: &str = "\
[  1] local 127.0.0.1 port 34981 connected with 127.0.0.1 port 5500
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-1.0001 sec  12.8 MBytes   107 Mbits/sec
[  1] Sent 208954 datagrams
[  1] Server Report:
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  1] 0.0000-1.0000 sec  9.72 MBytes  81.6 Mbits/sec   0.000 ms 49623/208953 (24%)
";

    #[test]
    fn figures_are_the_servers() {
        let reading = parse(CLIENT, 0.5).unwrap();
        assert_eq!(reading[0], ("packets/s", 159_330.0));
        assert!((reading[1].1 - 23.748).abs() < 1e-3, "{reading:?}");
    }

    #[test]
    fn without_the_servers_report_there_is_no_figure() {
        assert!(parse(&CLIENT[..CLIENT.find("Server").unwrap()], 0.5).is_err());
    }
}
