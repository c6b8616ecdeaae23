//! ping of iputils: ICMP echoes at even spacing.

use anyhow::{Context as _, Result};

use crate::contest::Reading;
use crate::place::Place;
use crate::session::finish;

/// Needs no server: the other host's kernel answers. Packets are as long as UDP datagrams of that
/// payload, because both headers have 8 bytes.
pub(crate) fn spaced(place: Place<'_>, payload: u32, spacing_ms: u32, seconds: u32) -> Result<Reading> {
    let spacing = f64::from(spacing_ms) / 1e3;
    let count = (seconds * 1000 / spacing_ms).to_string();
    let mut client = place.client("ping", seconds);
    client.args([place.version_flag(), "-n", "-s", &payload.to_string(), "-i", &spacing.to_string()]);
    client.args(["-c", &count, &place.address().to_string()]);
    parse(&finish(&mut client)?.stdout)
}

/// `64 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=20.4 ms`, three significant digits from 1 ms
/// on; its mean has more: `rtt min/avg/max/mdev = 20.384/20.431/20.482/0.040 ms`.
fn parse(text: &str) -> Result<Reading> {
    let times =
        text.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse::<f64>().ok());
    let mut all: Vec<f64> = times.map(|ms| ms * 1e3).collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * all.len() as f64).ceil() as usize;
        all.get(rank.saturating_sub(1)).copied().context("ping got no answer")
    };
    let mean = text.split_once("mdev = ").and_then(|(_, rest)| rest.split('/').nth(1)?.parse::<f64>().ok());
    let mean = mean.context("ping told no mean")? * 1e3;
    Ok(vec![("mean us", mean), ("p50 us", at(0.5)?), ("p99 us", at(0.99)?), ("max us", at(1.0)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// iputils 20221126.
    const PING: &str = "\
PING 10.77.0.2 (10.77.0.2) 64(92) bytes of data.
72 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=20.4 ms
72 bytes from 10.77.0.2: icmp_seq=2 ttl=64 time=20.1 ms
72 bytes from 10.77.0.2: icmp_seq=3 ttl=64 time=20.2 ms

--- 10.77.0.2 ping statistics ---
3 packets transmitted, 3 received, 0% packet loss, time 20ms
rtt min/avg/max/mdev = 20.084/20.231/20.382/0.040 ms
";

    #[test]
    fn quantiles_are_of_the_lines_and_the_mean_is_its_own() {
        let expected =
            [("mean us", 20_231.0), ("p50 us", 20_200.0), ("p99 us", 20_400.0), ("max us", 20_400.0)];
        assert_eq!(parse(PING).unwrap(), expected);
    }

    #[test]
    fn silence_is_no_figure() {
        let silent = "2 packets transmitted, 0 received, 100% packet loss, time 10ms\n";
        assert!(parse(silent).is_err());
    }
}
