//! iperf3, as Debian ships it or the newest.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use netaware_netns::Transport;
use serde_json::Value;

use super::cpu_percent;
use crate::contest::Reading;
use crate::place::Place;
use crate::session::{Finished, Session};

const PORT: u16 = 5201;

/// `extra` are options of a newer version.
pub(crate) fn tcp(
    program: &Path,
    place: Place<'_>,
    streams: u32,
    seconds: u32,
    extra: &[&str],
) -> Result<Reading> {
    let streams = streams.to_string();
    let finished = run(program, place, seconds, &[&["-P", &streams], extra].concat())?;
    parse_tcp(&finished.stdout, finished.cpu_seconds)
}

/// As fast as it goes.
pub(crate) fn udp(
    program: &Path,
    place: Place<'_>,
    payload: u32,
    seconds: u32,
    extra: &[&str],
) -> Result<Reading> {
    let payload = payload.to_string();
    let finished = run(program, place, seconds, &[&["-u", "-b", "0", "-l", &payload], extra].concat())?;
    parse_udp(&finished.stdout, finished.cpu_seconds)
}

/// At `bits` per second of payload. Returns what it cost and said; what it looked like is for the
/// capture to say.
pub(crate) fn paced(
    program: &Path,
    place: Place<'_>,
    payload: u32,
    bits: u64,
    seconds: u32,
    extra: &[&str],
) -> Result<Finished> {
    let (payload, bits) = (payload.to_string(), bits.to_string());
    run(program, place, seconds, &[&["-u", "-b", &bits, "-l", &payload], extra].concat())
}

/// What arrived of a paced stream: payload rate, loss and jitter. Its own rate counts what was
/// lost, too.
pub(crate) fn arrived(finished: &Finished, payload: u32) -> Result<Reading> {
    let end = parse_end(&finished.stdout)?;
    let sum = &end["sum"];
    let (packets, lost) = (number(sum, "packets")?, number(sum, "lost_packets")?);
    let bits = (packets - lost) * f64::from(payload) * 8.0;
    Ok(vec![
        ("Mbit/s", bits / number(sum, "seconds")? / 1e6),
        ("loss %", 100.0 * lost / packets),
        ("jitter us", number(sum, "jitter_ms")? * 1e3),
    ])
}

fn run(program: &Path, place: Place<'_>, seconds: u32, options: &[&str]) -> Result<Finished> {
    let (port, seconds_text) = (PORT.to_string(), seconds.to_string());
    let mut server = place.server(program);
    server.args(["-s", "-p", &port]);
    let mut client = place.client(program, seconds);
    client.args(["-c", &place.address().to_string(), "-p", &port, "-J", "-t", &seconds_text]).args(options);
    Session { server, ready: (Transport::Tcp, PORT), client }.run()
}

fn parse_tcp(json: &str, cpu_seconds: f64) -> Result<Reading> {
    let end = parse_end(json)?;
    let received = &end["sum_received"];
    let cpu = cpu_percent(cpu_seconds, number(received, "seconds")?);
    Ok(vec![("Gbit/s", number(received, "bits_per_second")? / 1e9), ("sender CPU %", cpu)])
}

/// `sum` counts the packets of the receiver; before 3.21 there is nothing better for one direction.
fn parse_udp(json: &str, cpu_seconds: f64) -> Result<Reading> {
    let end = parse_end(json)?;
    let sum = &end["sum"];
    let (packets, lost, seconds) =
        (number(sum, "packets")?, number(sum, "lost_packets")?, number(sum, "seconds")?);
    Ok(vec![
        ("packets/s", (packets - lost) / seconds),
        ("loss %", 100.0 * lost / packets),
        ("sender CPU %", cpu_percent(cpu_seconds, seconds)),
    ])
}

fn parse_end(json: &str) -> Result<Value> {
    let mut result: Value = serde_json::from_str(json).context("iperf3 printed no JSON")?;
    if let Some(error) = result["error"].as_str() {
        bail!("iperf3: {error}");
    }
    Ok(result["end"].take())
}

fn number(object: &Value, field: &str) -> Result<f64> {
    object[field].as_f64().with_context(|| format!("iperf3 told no {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut from iperf3 3.12.
    const TCP: &str = r#"{ "start": {}, "end": {
        "sum_sent": { "seconds": 2.000111, "bytes": 5293998080, "bits_per_second": 21175000000.5, "retransmits": 1 },
        "sum_received": { "start": 0, "end": 2.002262, "seconds": 2.002262, "bytes": 5293998080,
                          "bits_per_second": 21152069329.588234, "sender": true } } }"#;
    const UDP: &str = r#"{ "end": {
        "sum": { "start": 0, "end": 2.000075, "seconds": 2.000075, "bytes": 25852800,
                 "bits_per_second": 103409752.26, "jitter_ms": 0.005, "lost_packets": 97416, "packets": 403950,
                 "lost_percent": 24.11, "sender": true } } }"#;

    #[test]
    fn tcp_rate_is_the_receivers() {
        let reading = parse_tcp(TCP, 1.001_131).unwrap();
        assert!((reading[0].1 - 21.152_069).abs() < 1e-6, "{reading:?}");
        assert!((reading[1].1 - 50.0).abs() < 1e-6, "{reading:?}");
    }

    #[test]
    fn udp_rate_leaves_out_what_was_lost() {
        let reading = parse_udp(UDP, 1.0).unwrap();
        assert!((reading[0].1 - (403_950.0 - 97_416.0) / 2.000_075).abs() < 1e-6, "{reading:?}");
        assert!((reading[1].1 - 24.116).abs() < 1e-3, "{reading:?}");
    }

    #[test]
    fn what_arrived_leaves_out_what_was_lost() {
        let reading = arrived(&Finished { stdout: UDP.to_owned(), cpu_seconds: 0.0 }, 64).unwrap();
        assert!((reading[0].1 - 78.469_761).abs() < 1e-5, "{reading:?}");
        assert!((reading[1].1 - 24.116).abs() < 1e-3, "{reading:?}");
        assert!((reading[2].1 - 5.0).abs() < 1e-9, "{reading:?}");
    }

    #[test]
    fn its_own_error_is_passed_on() {
        let error = parse_tcp(r#"{ "end": {}, "error": "unable to connect to server" }"#, 0.0).unwrap_err();
        assert!(error.to_string().contains("unable to connect"), "{error}");
    }
}
