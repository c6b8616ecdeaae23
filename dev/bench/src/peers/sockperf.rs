//! sockperf, ping-pong over UDP. Its IPv6 did not work in the version that Debian 12 ships.

use anyhow::{Context as _, Result};
use netaware_netns::Transport;

use crate::contest::Reading;
use crate::place::Place;
use crate::session::Session;

const PORT: u16 = 11111;

/// How the client waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// In the system call, as by default.
    Asleep,
    /// Asking again and again (`--nonblocked`).
    Awake,
}

/// Of what it tells the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Of half the round trip, as by default; readings are twice that.
    Half,
    /// Of the round trip (`--full-rtt`).
    Whole,
}

/// The server sleeps in either case, as netaware's responder does.
pub(crate) fn ping_pong(
    place: Place<'_>,
    payload: u32,
    seconds: u32,
    waits: Waits,
    tells: Tells,
) -> Result<Reading> {
    let (address, port) = (place.address().to_string(), PORT.to_string());
    let mut server = place.server("sockperf");
    server.args(["server", "-i", &address, "-p", &port]);
    let mut client = place.client("sockperf", seconds);
    client.args(["ping-pong", "-i", &address, "-p", &port]);
    client.args(["-m", &payload.to_string(), "-t", &seconds.to_string()]);
    if waits == Waits::Awake {
        client.arg("--nonblocked");
    }
    if tells == Tells::Whole {
        client.arg("--full-rtt");
    }
    parse(&Session { server, ready: (Transport::Udp, PORT), client }.run()?.stdout, tells)
}

fn parse(text: &str, tells: Tells) -> Result<Reading> {
    let (mean_label, times) = match tells {
        Tells::Half => ("avg-latency=", 2.0),
        Tells::Whole => ("avg-rtt=", 1.0),
    };
    let percentile = |name: &'static str, label: &str| {
        let line = text.lines().find(|line| line.contains(label));
        let value = line.and_then(|line| line.rsplit('=').next()?.trim().parse().ok());
        value.map(|value: f64| (name, times * value)).with_context(|| format!("sockperf told no {label}"))
    };
    let mean = text.split_once(mean_label).and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    let mean: f64 = mean.with_context(|| format!("sockperf told no {mean_label}"))?;
    Ok(vec![
        ("mean us", times * mean),
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
        let reading = parse(PING_PONG, Tells::Whole).unwrap();
        let expected = [
            ("mean us", 9.928),
            ("p50 us", 9.614),
            ("p99 us", 11.957),
            ("p99.9 us", 33.129),
            ("max us", 3113.586),
        ];
        assert_eq!(reading, expected);
    }

    #[test]
    fn halves_are_doubled_and_not_taken_for_round_trips() {
        let halves = PING_PONG.replace("avg-rtt", "avg-latency");
        let reading = parse(&halves, Tells::Half).unwrap();
        assert_eq!(reading[..2], [("mean us", 19.856), ("p50 us", 19.228)]);
        assert!(parse(&halves, Tells::Whole).is_err());
    }
}
