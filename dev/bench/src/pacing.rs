//! Evenly spaced UDP. What a sender says of its own pacing proves nothing, so all are judged by one
//! observer: a capture at the receiving interface with the kernel's stamps, the same for everybody.

use anyhow::Result;
use netaware_netns::{IpVersion, Pair};

use super::Plan;
use super::capture::{Capture, Gaps};
use super::contest::{Bound, Claim, Contest, Reading};
use super::peers::{Tools, contender, cpu_percent, iperf3, netaware, nuttcp};
use super::place::{Link, Place};
use super::session::Finished;

/// 10,000 bits: every spacing in whole microseconds is a whole rate, which tools that pace by rate
/// need.
const PAYLOAD: u32 = 1250;
const SPACINGS_US: [u32; 3] = [100, 20, 10];
const NEWEST: &str = "iperf3 newest";

pub(crate) fn contests<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    let place = Place::new(pair, Link::Veth, IpVersion::V4);
    SPACINGS_US.map(|spacing_us| contest(place, tools, spacing_us, plan.paced_seconds)).into()
}

fn contest<'a>(place: Place<'a>, tools: &'a Tools, spacing_us: u32, seconds: u32) -> Contest<'a> {
    let stream = Stream { spacing_us, seconds };
    let bits = stream.bits_per_second();
    let mut contenders = Vec::new();
    if let Some(ours) = tools.netaware() {
        let run = move |at| netaware::paced(ours, at, PAYLOAD, spacing_us, seconds);
        contenders.push(contender("netaware", place, move |at| stream.observe(at, run)));
    }
    // Debian's paces by a timer of a millisecond and is no match; the newest is, where there is
    // one.
    let (name, program) = tools.iperf3_new().map_or(("iperf3", "iperf3".as_ref()), |newest| (NEWEST, newest));
    let run = move |at| iperf3::paced(program, at, PAYLOAD, bits, seconds, &[]);
    contenders.push(contender(name, place, move |at| stream.observe(at, run)));
    let run = move |at| nuttcp::paced(at, PAYLOAD, bits, seconds);
    contenders.push(contender("nuttcp", place, move |at| stream.observe(at, run)));
    Contest { title: format!("every {spacing_us} us"), contenders, claims: claims() }
}

fn claims() -> Vec<Claim> {
    let claim = |figure, bound| Claim { ours: "netaware", figure, bound };
    vec![
        claim("p99 us", Bound::AtMost(1.0, &["nuttcp"])),
        claim("sd us", Bound::AtMost(1.0, &[NEWEST])),
        claim("largest us", Bound::Limit(2000.0)),
        claim("mean rate error %", Bound::Limit(0.01)),
    ]
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    spacing_us: u32,
    seconds: u32,
}

impl Stream {
    fn bits_per_second(self) -> u64 {
        u64::from(PAYLOAD) * 8 * 1_000_000 / u64::from(self.spacing_us)
    }

    fn observe<'a>(self, place: Place<'a>, send: impl Fn(Place<'a>) -> Result<Finished>) -> Result<Reading> {
        let capture = Capture::start(place, PAYLOAD)?;
        let sent = send(place)?;
        let gaps = capture.stop()?;
        self.judge(&gaps, sent.cpu_seconds)
    }

    fn judge(self, gaps: &Gaps, cpu_seconds: f64) -> Result<Reading> {
        let planned_ns = f64::from(self.spacing_us) * 1e3;
        let expected = f64::from(self.seconds) * 1e9 / planned_ns;
        anyhow::ensure!(
            gaps.count() as f64 > expected / 2.0,
            "captured {} gaps where about {expected:.0} were planned",
            gaps.count()
        );
        let us = |ns: f64| ns / 1e3;
        Ok(vec![
            ("mean us", us(gaps.mean())),
            ("sd us", us(gaps.standard_deviation())),
            ("p50 us", us(gaps.quantile(0.5))),
            ("p99 us", us(gaps.quantile(0.99))),
            ("largest us", us(gaps.quantile(1.0))),
            ("within 10 %", 100.0 * gaps.share_within(planned_ns, 0.1)),
            ("mean rate error %", 100.0 * (planned_ns / gaps.mean() - 1.0).abs()),
            ("sender CPU %", cpu_percent(cpu_seconds, f64::from(self.seconds))),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacings_are_whole_rates() {
        let rates = SPACINGS_US.map(|spacing_us| Stream { spacing_us, seconds: 1 }.bits_per_second());
        assert_eq!(rates, [100_000_000, 500_000_000, 1_000_000_000]);
    }

    #[test]
    fn too_few_packets_are_no_result() {
        let stream = Stream { spacing_us: 100, seconds: 1 };
        assert!(stream.judge(&Gaps::of_stamps(&[0, 100_000]), 0.0).is_err());
    }
}
