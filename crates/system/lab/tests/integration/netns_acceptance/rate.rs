//! Real TCP by iperf3 against the rate that follows from the scenario.

use std::process::{Child, Stdio};

use netaware_lab::{Lab, Report, Side, await_listener, end_child};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::scenario;
use netaware_units::Span;

use super::ground::{Judged, VERSIONS, measured, said, tried, words};

/// The queue holds more than a bandwidth-delay product (125 kB), so that after a loss, when cubic's
/// window falls to 0.7, the link still never runs dry: its rate is then the whole truth.
const PATH: &str = "[[hop]]\nrate = '50Mbit/s'\ndelay = '10ms'\nqueue = { bytes = '150kB' }\n";
/// A mean of 8 s of a full link is off by a hundredth if its last packets are 80 ms late; single
/// ones in between do nothing.
pub(crate) const LATE: Span = Span::from_millis(5);
/// What a segment of 1500 bytes of IP carries, TCP with timestamps.
const TCP_HEADER: u32 = 32;

/// What a way and a version have: the way is that of `-R`.
pub(crate) type Combination = (IpVersion, bool);

#[test]
fn iperf3_gets_the_rate_of_the_scenario_within_three_hundredths() {
    if !permitted() {
        return;
    }
    let mut judged = Judged::default();
    for combination in [(IpVersion::V6, false), (IpVersion::V4, true)] {
        let (error, report, line) = error_of_rate(combination, 4);
        if judged.is_valid(&report, LATE) {
            // When its process is without a core for longer than the queue lasts, the link runs
            // dry.
            assert!(error.abs() < 0.03, "{line}");
        }
    }
    judged.end();
}

/// The relative error of the rate that iperf3 finds in so many seconds. It is never above the
/// truth.
pub(crate) fn error_of_rate((version, reverse): Combination, seconds: u32) -> (f64, Report, String) {
    let path = scenario(PATH);
    let share = f64::from(1500 - version.header_len() - TCP_HEADER) / 1500.0;
    let truth = 50e6 * share;
    let (found, report) = measured(&path, |lab| iperf3(lab, version, reverse, seconds));
    let error = found / truth - 1.0;
    let way = if reverse { "down" } else { "up" };
    let line = format!(
        "{} {way}: {found:.0} bit/s, {:+.3} % of {truth:.0}; {report}",
        version.name(),
        error * 100.0
    );
    println!("{line}");
    // What lay in the queue when its seconds began, and the edges of its clock.
    assert!(error < 0.01, "more than the link carries: {line}");
    (error, report, line)
}

/// Payload rate at the receiver, bit/s, of the steady state. The first three seconds are omitted:
/// in slow start the link is not yet full, and where that ends by overflowing the queue there is a
/// round trip or two of recovery. Counted in, they would lower the mean of any test by more the
/// shorter it is, which says something about TCP and nothing about the link.
fn iperf3(lab: &Lab, version: IpVersion, reverse: bool, seconds: u32) -> f64 {
    let mut server = server(lab);
    let target = lab.address(Side::B, version).to_string();
    let seconds = seconds.to_string();
    let mut arguments = vec!["-c", &target, "-J", "-O", "3", "-t", &seconds, "-C", "cubic"];
    if reverse {
        arguments.push("-R");
    }
    let output = tried(lab, Side::A, "iperf3", &arguments);
    end_child(&mut server, Span::from_secs(2)).unwrap();
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", words(&output)));
    json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{json}"))
}

fn server(lab: &Lab) -> Child {
    let mut server = lab.command(Side::B, "iperf3");
    server.args(["-s", "-1"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = server.spawn().unwrap();
    assert!(await_listener(&lab.state().prefix, Side::B, Span::from_secs(3)));
    server
}

#[test]
fn ping_behind_a_full_queue_waits_as_long_as_the_queue_is() {
    if !permitted() {
        return;
    }
    // 50 ms of queue at 20 Mbit/s, filled by datagrams at twice the rate.
    let path = scenario("[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\nqueue = { time = '50ms' }\n");
    let mut judged = Judged::default();
    for version in VERSIONS {
        let (text, report) = measured(&path, |lab| {
            let target = lab.address(Side::B, version).to_string();
            let mut server = server(lab);
            let mut client = lab.command(Side::A, "iperf3");
            client.args(["-u", "-c", &target, "-b", "40M", "-l", "1200", "-t", "20"]).stdout(Stdio::null());
            let mut client = client.spawn().unwrap();
            // Until the queue is full for good.
            let deadline = netaware_io::clock::now() + Span::from_secs(10);
            let one = || tried(lab, Side::A, "ping", &["-n", "-c", "1", "-W", "1", &target]);
            while median(&words(&one())).is_none_or(|waits| waits < Span::from_millis(50)) {
                assert!(netaware_io::clock::now() < deadline, "the queue does not fill in ten seconds");
            }
            let ping = said(lab, Side::A, "ping", &["-n", "-c", "100", "-i", "0.01", "-W", "1", &target]);
            end_child(&mut client, Span::from_secs(2)).unwrap();
            end_child(&mut server, Span::from_secs(2)).unwrap();
            ping
        });
        let found = median(&text).unwrap_or_else(|| panic!("{text}"));
        let base = path.base_rtt(version, 64 + version.header_len()).unwrap();
        // Datagrams come in bursts of a millisecond: by so much, and one of them, the queue is
        // short of full or overfull.
        let full = base + Span::from_millis(50);
        let burst = Span::from_micros(1500);
        if judged.is_valid(&report, Span::from_millis(1)) {
            assert!((found - full).abs() < burst, "{found} instead of {full}: {text}; {report}");
        }
    }
    judged.end();
}

/// Of the round trips that ping printed one by one.
fn median(ping: &str) -> Option<Span> {
    let ms =
        ping.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse::<f64>().ok());
    let mut all: Vec<Span> = ms.map(|ms| Span::from_secs_f64(ms / 1000.0)).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}
