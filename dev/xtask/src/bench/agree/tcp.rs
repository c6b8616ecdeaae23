//! TCP goodput, with the start of the transfer and without.

use std::path::Path;

use anyhow::{Context as _, Result};
use netaware_netns::IpVersion;

use super::VERSIONS;
use super::compare::{Comparison, Figure, Told};
use super::path::Paths;
use crate::bench::contest::{Contest, Reading};
use crate::bench::peers::{iperf3, netaware, nuttcp, qperf};
use crate::bench::place::Place;

const FIGURE: &str = "Mbit/s";
/// Leaves out what its warm-up rule finds, as by default.
const STEADY: &str = "netaware";
/// Counts from the first byte, as tools do that know no warm-up.
const WHOLE: &str = "netaware --omit 0s";
/// More than slow start, its overflow of the queue and the recovery take.
const OMITTED: &str = "2";
const IPERF3_STEADY: &str = "iperf3 --omit 2";

pub(super) fn comparisons<'a>(paths: &'a Paths, ours: &'a Path, seconds: u32) -> Vec<Comparison<'a>> {
    VERSIONS.map(|version| comparison(paths, ours, version, seconds)).into()
}

fn comparison<'a>(paths: &'a Paths, ours: &'a Path, version: IpVersion, seconds: u32) -> Comparison<'a> {
    let path = &paths.plain;
    let iperf3 = move |extra: &'static [&'static str]| {
        move |at: Place<'_>| megabits(&iperf3::tcp("iperf3".as_ref(), at, 1, seconds, extra)?)
    };
    let netaware = move |extra: &'static [&'static str]| {
        move |at: Place<'_>| megabits(&netaware::tcp(ours, at, 1, seconds, extra)?)
    };
    let contenders = vec![
        path.contender(STEADY, version, netaware(&[])),
        path.contender(IPERF3_STEADY, version, iperf3(&["--omit", OMITTED])),
        path.contender(WHOLE, version, netaware(&["--omit", "0s"])),
        path.contender("iperf3", version, iperf3(&[])),
        path.contender("nuttcp", version, move |at| megabits(&nuttcp::tcp(at, 1, seconds)?)),
        path.contender("qperf", version, move |at| megabits(&qperf::tcp(at, seconds)?)),
    ];
    let against = |ours: &'static str| move |peer| [Told::by(peer, FIGURE), Told::by(ours, FIGURE)];
    let with_the_start = ["iperf3", "nuttcp", "qperf"];
    let pairings = [against(STEADY)(IPERF3_STEADY)]
        .into_iter()
        .chain(with_the_start.map(against(WHOLE)))
        .chain(with_the_start.map(against(STEADY)));
    let figure = Figure {
        name: FIGURE,
        decimals: 3,
        truth: path.tcp_goodput(version).ok(),
        pairings: pairings.collect(),
    };
    let title = format!("{}, {}", path.name, super::name(version));
    Comparison { contest: Contest { title, contenders, claims: Vec::new() }, figures: vec![figure] }
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
