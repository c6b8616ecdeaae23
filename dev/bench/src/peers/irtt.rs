//! irtt: request-responses at even spacing.

use anyhow::{Context as _, Result};
use netaware_netns::Transport;
use serde_json::Value;

use crate::contest::Reading;
use crate::place::Place;
use crate::session::Session;

const PORT: u16 = 2112;

pub(crate) fn spaced(place: Place<'_>, payload: u32, spacing_ms: u32, seconds: u32) -> Result<Reading> {
    let mut server = place.server("irtt");
    server.arg("server");
    let mut client = place.client("irtt", seconds);
    client.args(["client", "-Q", "-o", "-", "-l", &payload.to_string(), "-i", &format!("{spacing_ms}ms")]);
    client.args([
        "-d",
        &format!("{seconds}s"),
        &std::net::SocketAddr::new(place.address(), PORT).to_string(),
    ]);
    parse(&Session { server, ready: (Transport::Udp, PORT), client }.run()?.stdout)
}

/// Its percentiles are not in its output, its round trips are: `round_trips[].delay.rtt` in ns.
fn parse(json: &str) -> Result<Reading> {
    let result: Value = serde_json::from_str(json).context("irtt printed no JSON")?;
    let trips = result["round_trips"].as_array().context("irtt told no round trips")?;
    let mut delays: Vec<f64> = trips.iter().filter_map(|trip| trip["delay"]["rtt"].as_f64()).collect();
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * delays.len() as f64).ceil() as usize;
        delays.get(rank.saturating_sub(1)).map(|delay| delay / 1e3).context("irtt got no answer")
    };
    let mean = delays.iter().sum::<f64>() / delays.len() as f64 / 1e3;
    Ok(vec![("mean us", mean), ("p50 us", at(0.5)?), ("p99 us", at(0.99)?), ("max us", at(1.0)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut from irtt 0.9.0; the second request was lost.
    const RESULT: &str = r#"{ "round_trips": [
        { "seqno": 0, "lost": "false", "delay": { "receive": 1, "rtt": 30000, "send": 2 } },
        { "seqno": 1, "lost": "true", "delay": {} },
        { "seqno": 2, "lost": "false", "delay": { "receive": 1, "rtt": 50000, "send": 2 } } ] }"#;

    #[test]
    fn quantiles_are_of_what_came_back() {
        let reading = parse(RESULT).unwrap();
        assert_eq!(reading, [("mean us", 40.0), ("p50 us", 30.0), ("p99 us", 50.0), ("max us", 50.0)]);
    }

    #[test]
    fn silence_is_no_figure() {
        assert!(parse(r#"{ "round_trips": [] }"#).is_err());
    }
}
