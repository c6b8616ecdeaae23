//! Us. Figures are read from the record, as any user of `--format json` would.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use netaware_netns::Transport;
use netaware_record::{DelaySummary, LatencyResult, Outcome, Record, TcpResult, UdpResult, VersionResult};

use super::cpu_percent;
use crate::contest::Reading;
use crate::place::Place;
use crate::session::{Finished, Session};

pub(crate) const PORT: u16 = 14233;

/// `extra` are further options of `netaware tcp`.
pub(crate) fn tcp(
    program: &Path,
    place: Place<'_>,
    streams: u32,
    seconds: u32,
    extra: &[&str],
) -> Result<Reading> {
    let (streams, time) = (streams.to_string(), format!("{seconds}s"));
    let options = [&["tcp", "-P", &streams, "-t", &time], extra].concat();
    let finished = run(program, place, seconds, &options)?;
    let record = parse(&finished.stdout)?;
    read_tcp(&record, cpu_percent(finished.cpu_seconds, f64::from(seconds)))
}

/// As fast as it goes; `send` and `receive` name how system calls are made, `extra` are further
/// options.
pub(crate) fn udp(
    program: &Path,
    place: Place<'_>,
    payload: u32,
    seconds: u32,
    (send, receive): (&str, &str),
    extra: &[&str],
) -> Result<Reading> {
    let (payload, time) = (payload.to_string(), format!("{seconds}s"));
    let options = ["udp", "-b", "0", "-l", &payload, "-t", &time, "--send", send, "--receive", receive];
    let finished = run(program, place, seconds, &[&options, extra].concat())?;
    let record = parse(&finished.stdout)?;
    read_udp(&record, cpu_percent(finished.cpu_seconds, f64::from(seconds)))
}

/// Evenly spaced. Returns what it cost and said; what it looked like is for the capture to say.
pub(crate) fn paced(
    program: &Path,
    place: Place<'_>,
    payload: u32,
    spacing_us: u32,
    seconds: u32,
) -> Result<Finished> {
    let (payload, time, spacing) = (payload.to_string(), format!("{seconds}s"), format!("{spacing_us}us"));
    run(program, place, seconds, &["udp", "-l", &payload, "-t", &time, "--spacing", &spacing])
}

/// What arrived of a paced stream: payload rate, loss and jitter as its receiver told them.
pub(crate) fn arrived(finished: &Finished) -> Result<Reading> {
    let record = parse(&finished.stdout)?;
    let udp = udp_result(&record)?;
    let jitter = udp.receiver.as_ref().and_then(|end| end.jitter);
    Ok(vec![
        ("Mbit/s", udp.goodput.context("the UDP result has no goodput")?.0 as f64 / 1e6),
        ("loss %", lost_percent(udp)),
        ("jitter us", jitter.context("the UDP result has no jitter")?.0 as f64 / 1e3),
    ])
}

pub(crate) fn ping_pong(program: &Path, place: Place<'_>, payload: u32, seconds: u32) -> Result<Reading> {
    let (payload, time) = (payload.to_string(), format!("{seconds}s"));
    let finished = run(program, place, seconds, &["latency", "--ping-pong", "-l", &payload, "-t", &time])?;
    read_latency(&parse(&finished.stdout)?)
}

pub(crate) fn spaced(
    program: &Path,
    place: Place<'_>,
    payload: u32,
    spacing_ms: u32,
    seconds: u32,
) -> Result<Reading> {
    let (payload, spacing) = (payload.to_string(), format!("{spacing_ms}ms"));
    let count = (seconds * 1000 / spacing_ms).to_string();
    let options = ["latency", "-l", &payload, "--spacing", &spacing, "--count", &count];
    read_latency(&parse(&run(program, place, seconds, &options)?.stdout)?)
}

fn run(program: &Path, place: Place<'_>, seconds: u32, options: &[&str]) -> Result<Finished> {
    let client = client(program, place, seconds, options);
    Session { server: server(program, place), ready: (Transport::Tcp, PORT), client }.run()
}

/// The responder.
pub(crate) fn server(program: &Path, place: Place<'_>) -> Command {
    let mut server = place.server(program);
    server.args(["serve", "--port", &PORT.to_string()]);
    server
}

/// A client of it that prints its record; `options` begin with the command.
pub(crate) fn client(program: &Path, place: Place<'_>, seconds: u32, options: &[&str]) -> Command {
    let mut client = place.client(program, seconds);
    client.args(options).arg(place.address().to_string()).arg(place.version_flag());
    client.args(["--port", &PORT.to_string(), "--format", "json", "--no-save"]);
    client
}

/// A record of a measurement that ran to its end.
pub(crate) fn parse(json: &str) -> Result<Record> {
    let record: Record = serde_json::from_str(json).context("netaware printed no record")?;
    if record.outcome != Outcome::Complete {
        bail!("netaware ended {:?}: {}", record.outcome, record.warnings.join("; "));
    }
    Ok(record)
}

fn version(record: &Record) -> Result<&VersionResult> {
    let version = record.versions.first().context("the record has no IP version")?;
    match &version.unreachable {
        Some(why) => bail!("netaware: {}: {}", why.stage, why.reason),
        None => Ok(version),
    }
}

fn read_tcp(record: &Record, cpu: f64) -> Result<Reading> {
    let tcp: &TcpResult = version(record)?.tcp.first().context("the record has no TCP result")?;
    let goodput = tcp.goodput.context("the TCP result has no goodput")?;
    Ok(vec![("Gbit/s", goodput.0 as f64 / 1e9), ("sender CPU %", cpu)])
}

fn read_udp(record: &Record, cpu: f64) -> Result<Reading> {
    let udp = udp_result(record)?;
    let rate = udp.packets_per_second.context("the UDP result has no rate of packets")?;
    Ok(vec![("packets/s", rate), ("loss %", lost_percent(udp)), ("sender CPU %", cpu)])
}

fn udp_result(record: &Record) -> Result<&UdpResult> {
    version(record)?.udp.first().context("the record has no UDP result")
}

fn lost_percent(udp: &UdpResult) -> f64 {
    100.0 * udp.loss.lost as f64 / udp.sent.max(1) as f64
}

/// The application's view first, because that is what most peers have, and what lies between the
/// kernels' stamps.
fn read_latency(record: &Record) -> Result<Reading> {
    let latency = latency(record)?;
    let rtt = application_delay(latency)?;
    let kernel = latency.rtt.context("not one answer came")?;
    let us = |span: netaware_units::Span| span.0 as f64 / 1e3;
    Ok(vec![
        ("mean us", us(rtt.mean)),
        ("p50 us", us(rtt.p50)),
        ("p99 us", us(rtt.p99)),
        ("p99.9 us", us(rtt.p999)),
        ("max us", us(rtt.max)),
        ("kernel mean us", us(kernel.mean)),
        ("kernel p50 us", us(kernel.p50)),
        ("kernel p99 us", us(kernel.p99)),
    ])
}

pub(crate) fn latency(record: &Record) -> Result<&LatencyResult> {
    version(record)?.latency.as_ref().context("the record has no latency")
}

pub(crate) fn application_delay(latency: &LatencyResult) -> Result<DelaySummary> {
    latency.rtt_application.context("not one answer came")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(version: &Value) -> String {
        json!({
            "schema": 1, "id": "0193a000-0000-7000-8000-000000000000", "software": "0", "command": "udp",
            "started_at": 0, "started_at_utc": "", "elapsed": 0, "outcome": "complete",
            "request": { "host": "", "port": 1, "own_responder": false },
            "prober": { "name": "", "kernel": "", "cpu": "", "cores": 2, "software": "" }, "versions": [version],
        })
        .to_string()
    }

    #[test]
    fn unreachable_host_is_told_with_its_reason() {
        let text =
            record(&json!({ "version": "IPv4", "unreachable": { "stage": "connect", "reason": "refused" } }));
        let error = read_tcp(&parse(&text).unwrap(), 0.0).unwrap_err();
        assert_eq!(error.to_string(), "netaware: connect: refused");
    }

    #[test]
    fn record_of_an_interrupted_run_is_no_figure() {
        let text = record(&json!({ "version": "IPv4" })).replace("complete", "interrupted");
        assert!(parse(&text).unwrap_err().to_string().contains("Interrupted"));
    }
}
