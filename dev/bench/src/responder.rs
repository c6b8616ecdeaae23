//! The responder by itself: what it costs while nobody asks, and whether a hundred clients at once
//! lose anything.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use netaware_netns::{IpVersion, Pair, Transport};

use super::Plan;
use super::contest::{Bound, Claim, Contest, Reading};
use super::peers::{Tools, contender, netaware};
use super::place::{Link, Place};
use super::session::start_server;
use crate::clock::pause;

const READY: (Transport, u16) = (Transport::Tcp, netaware::PORT);

pub(crate) fn contests<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    let Some(program) = tools.netaware() else { return Vec::new() };
    let place = Place::new(pair, Link::Veth, IpVersion::V4);
    let one =
        |title: &str, run: fn(&Path, Place<'_>, u32) -> Result<Reading>, limits: &[(&'static str, f64)]| {
            let claim = |&(figure, limit): &_| Claim { ours: "netaware", figure, bound: Bound::Limit(limit) };
            let contenders = vec![contender("netaware", place, move |at| run(program, at, plan.seconds))];
            Contest { title: title.to_owned(), contenders, claims: limits.iter().map(claim).collect() }
        };
    vec![
        one("idle", idle, &[("resident MiB", 15.0), ("CPU ticks", 0.0)]),
        one(
            "100 clients, 100 requests/s each",
            crowd,
            &[("not sent", 0.0), ("host drops", 0.0), ("lost", 0.0)],
        ),
    ]
}

/// Memory and CPU time (in ticks of 10 ms) over twice `seconds` without a client.
fn idle(program: &Path, place: Place<'_>, seconds: u32) -> Result<Reading> {
    let server = start_server(&mut netaware::server(program, place), READY)?;
    pause(Duration::from_secs(1));
    let before = cpu_ticks(server.id())?;
    pause(Duration::from_secs(u64::from(seconds) * 2));
    let spent = cpu_ticks(server.id())? - before;
    Ok(vec![("resident MiB", resident_mib(server.id())?), ("CPU ticks", spent as f64)])
}

fn cpu_ticks(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the responder is gone")?;
    parse_ticks(&stat).context("/proc/…/stat has no times")
}

/// Fields 14 and 15 (user, system), counted behind the name, which may contain spaces and ends with
/// the last `)`.
fn parse_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn resident_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the responder is gone")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.context("/proc/…/status has no VmRSS")? / 1024.0)
}

/// All clients are processes of their own, started at once; sums over all of them.
fn crowd(program: &Path, place: Place<'_>, seconds: u32) -> Result<Reading> {
    const CLIENTS: u32 = 100;
    let _server = start_server(&mut netaware::server(program, place), READY)?;
    let count = (seconds * 100).to_string();
    let options = ["latency", "-l", "64", "--spacing", "10ms", "--count", &count];
    let start = |_| {
        let mut client = netaware::client(program, place, seconds, &options);
        client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let clients = (0..CLIENTS).map(start).collect::<std::io::Result<Vec<_>>>()?;
    let (mut sent, mut not_sent, mut lost, mut drops, mut worst_p99) = (0, 0, 0, 0, 0.0_f64);
    for client in clients {
        let output = client.wait_with_output()?;
        ensure!(
            output.status.success(),
            "a client failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let record = netaware::parse(&String::from_utf8_lossy(&output.stdout))?;
        let latency = netaware::latency(&record)?;
        sent += latency.sent;
        not_sent += latency.not_sent;
        lost += latency.lost;
        drops += latency.health.host_drops.context("the sockets' drops were not counted")?;
        worst_p99 = worst_p99.max(netaware::application_delay(latency)?.p99.0 as f64 / 1e3);
    }
    Ok(vec![
        ("sent", sent as f64),
        ("not sent", not_sent as f64),
        ("host drops", drops as f64),
        ("lost", lost as f64),
        ("worst p99 us", worst_p99),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "42 (a b) c) S 1 1 1 0 -1 4194560 100 0 0 0 17 25 0 0 20 0 3 0 100 1000 200";
        assert_eq!(parse_ticks(stat), Some(42));
    }

    #[test]
    fn own_memory_is_more_than_nothing() {
        assert!(resident_mib(std::process::id()).unwrap() > 0.1);
    }
}
