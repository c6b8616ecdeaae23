//! TCP goodput, with the start of the transfer and without.

use std::path::Path;

use anyhow::{Context as _, Result};
use netaware_netns::IpVersion;

use super::VERSIONS;
use super::compare::{Comparison, Figure, Told};
use super::path::Paths;
use crate::contest::{Contest, Reading};
use crate::peers::{iperf3, netaware, nuttcp, qperf};
use crate::place::Place;

const FIGURE: &str = "Mbit/s";
/// Leaves out what its warm-up rule finds, as by default.
const BY_RULE: &str = "netaware";
/// Counts from the first byte, as tools do that know no warm-up.
const WHOLE: &str = "netaware --omit 0s";
/// Leaves out as much as iperf3 is told to, and like iperf3 sends for longer by that.
const STEADY: &str = "netaware --omit 2s";
const IPERF3_STEADY: &str = "iperf3 --omit 2";
/// What the last two leave out, in seconds: more than slow start, its overflow of the queue and the
/// recovery take.
const OMITTED: u32 = 2;
/// qperf counts whole messages of 64 KiB, so its rate is a multiple of one per test.
const QPERF_MESSAGE_MEGABITS: f64 = 65_536.0 * 8.0 / 1e6;

pub(super) fn comparisons<'a>(paths: &'a Paths, ours: &'a Path, seconds: u32) -> Vec<Comparison<'a>> {
    VERSIONS.map(|version| comparison(paths, ours, version, seconds)).into()
}

fn comparison<'a>(paths: &'a Paths, ours: &'a Path, version: IpVersion, seconds: u32) -> Comparison<'a> {
    let path = &paths.plain;
    let netaware = move |seconds: u32, extra: &'static [&'static str]| {
        move |at: Place<'_>| megabits(&netaware::tcp(ours, at, 1, seconds, extra)?)
    };
    let iperf3 = move |extra: &'static [&'static str]| {
        move |at: Place<'_>| megabits(&iperf3::tcp("iperf3".as_ref(), at, 1, seconds, extra)?)
    };
    let contenders = vec![
        path.contender(STEADY, version, netaware(seconds + OMITTED, &["--omit", "2s"])),
        path.contender(IPERF3_STEADY, version, iperf3(&["--omit", "2"])),
        path.contender(BY_RULE, version, netaware(seconds, &[])),
        path.contender(WHOLE, version, netaware(seconds, &["--omit", "0s"])),
        path.contender("iperf3", version, iperf3(&[])),
        path.contender("nuttcp", version, move |at| megabits(&nuttcp::tcp(at, 1, seconds)?)),
        path.contender("qperf", version, move |at| megabits(&qperf::tcp(at, seconds)?)),
    ];
    let figure = Figure {
        name: FIGURE,
        decimals: 3,
        truth: path.tcp_goodput(version).ok(),
        pairings: pairings(seconds),
    };
    let title = format!("{}, {}", path.name, super::name(version));
    Comparison { contest: Contest { title, contenders, claims: Vec::new() }, figures: vec![figure] }
}

/// First those that mean the same by their rate, then all against what a user of ours sees first.
fn pairings(seconds: u32) -> Vec<[Told; 2]> {
    let told = |tool| {
        let digit = if tool == "qperf" { QPERF_MESSAGE_MEGABITS / f64::from(seconds) } else { 0.0 };
        Told::by(tool, FIGURE).to(digit)
    };
    let like_for_like = [[IPERF3_STEADY, STEADY], ["iperf3", WHOLE], ["nuttcp", WHOLE], ["qperf", WHOLE]];
    let by_default = [IPERF3_STEADY, "iperf3", "nuttcp", "qperf"].map(|peer| [peer, BY_RULE]);
    like_for_like.into_iter().chain(by_default).map(|pair| pair.map(told)).collect()
}

fn megabits(reading: &Reading) -> Result<Reading> {
    let rate = reading.iter().find(|(name, _)| *name == "Gbit/s").context("the tool told no rate")?;
    Ok(vec![(FIGURE, rate.1 * 1e3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_the_same_in_megabits() {
        let reading = vec![("Gbit/s", 0.048), ("sender CPU %", 3.0)];
        assert_eq!(megabits(&reading).unwrap(), [(FIGURE, 48.0)]);
        assert!(megabits(&vec![("loss %", 0.0)]).is_err());
    }
}
