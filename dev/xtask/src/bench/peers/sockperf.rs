//! sockperf, ping-pong over UDP. Its IPv6 did not work in the version that Debian 12 ships.

use anyhow::{Context as _, Result};
use netaware_netns::Transport;

use crate::bench::contest::Reading;
use crate::bench::place::Place;
use crate::bench::session::Session;

const PORT: u16 = 11111;

/// How the client waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// In the system call, as by default.
    Asleep,
    /// Asking again and again (`--nonblocked`).
    Awake,
}

/// The server sleeps in either case, as netaware's responder does.
pub(crate) fn ping_pong(place: Place<'_>, payload: u32, seconds: u32, waits: Waits) -> Result<Reading> {
    let (address, port) = (place.address().to_string(), PORT.to_string());
    let mut server = place.server("sockperf");
    server.args(["server", "-i", &address, "-p", &port]);
    let mut client = place.client("sockperf", seconds);
    client.args(["ping-pong", "-i", &address, "-p", &port, "--full-rtt"]);
    client.args(["-m", &payload.to_string(), "-t", &seconds.to_string()]);
    if waits == Waits::Awake {
        client.arg("--nonblocked");
    }
    parse(&Session { server, ready: (Transport::Udp, PORT), client }.run()?.stdout)
}

fn parse(text: &str) -> Result<Reading> {
    let percentile = |name: &'static str, label: &str| {
        let line = text.lines().find(|line| line.contains(label));
        let value = line.and_then(|line| line.rsplit('=').next()?.trim().parse().ok());
        value.map(|value: f64| (name, value)).with_context(|| format!("sockperf told no {label}"))
    };
    let mean = text.split_once("avg-rtt=").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    Ok(vec![
        ("mean us", mean.context("sockperf told no avg-rtt")?),
        percentile("p50 us", "percentile 50.000")?,
        percentile("p99 us", "percentile 99.000")?,
        percentile("p99.9 us", "percentile 99.900")?,
        percentile("max us", "<MAX> observation")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sockperf 3.7, colours included.
    const PING_PONG: &str = "\
sockperf: [Valid Duration] RunTime=1.550 sec; SentMessages=155872; ReceivedMessages=155872
sockperf: \u{1b}[2;35m====> avg-rtt=9.928 (std-dev=10.115)\u{1b}[0m
sockperf: Summary: Round trip is 9.928 usec
sockperf: ---> <MAX> observation = 3113.586
sockperf: ---> percentile 99.999 =  356.479
sockperf: ---> percentile 99.990 =   82.071
sockperf: ---> percentile 99.900 =   33.129
sockperf: ---> percentile 99.000 =   11.957
sockperf: ---> percentile 90.000 =   10.185
sockperf: ---> percentile 50.000 =    9.614
sockperf: ---> <MIN> observation =    9.333
";

    #[test]
    fn percentiles_are_full_round_trips() {
        let reading = parse(PING_PONG).unwrap();
        let expected = [
            ("mean us", 9.928),
            ("p50 us", 9.614),
            ("p99 us", 11.957),
            ("p99.9 us", 33.129),
            ("max us", 3113.586),
        ];
        assert_eq!(reading, expected);
    }
}
