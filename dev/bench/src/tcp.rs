//! TCP throughput, one stream and four.

use netaware_netns::{IpVersion, Pair};

use super::Plan;
use super::contest::{Bound, Claim, Contest};
use super::peers::{Tools, contender, iperf3, netaware, nuttcp, qperf};
use super::place::{Link, Place};

const NEWEST: &str = "iperf3 newest --skip-rx-copy";

pub(crate) fn contests<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    let both = |link| [IpVersion::V4, IpVersion::V6].map(|version| (link, Place::new(pair, link, version)));
    let places = [Link::Loopback, Link::Veth].into_iter().flat_map(both);
    let contests = places.flat_map(|(link, place)| {
        [1, 4].map(|streams| contest(place, tools, streams, plan.seconds, claims(link, streams)))
    });
    contests.collect()
}

fn contest<'a>(
    place: Place<'a>,
    tools: &'a Tools,
    streams: u32,
    seconds: u32,
    claims: Vec<Claim>,
) -> Contest<'a> {
    let mut contenders = Vec::new();
    if let Some(ours) = tools.netaware() {
        contenders
            .push(contender("netaware", place, move |at| netaware::tcp(ours, at, streams, seconds, &[])));
    }
    contenders.push(contender("iperf3", place, move |at| {
        iperf3::tcp("iperf3".as_ref(), at, streams, seconds, &[])
    }));
    if let Some(newest) = tools.iperf3_new() {
        let skip = &["--skip-rx-copy"];
        contenders.push(contender(NEWEST, place, move |at| iperf3::tcp(newest, at, streams, seconds, skip)));
    }
    contenders.push(contender("nuttcp", place, move |at| nuttcp::tcp(at, streams, seconds)));
    if streams == 1 {
        contenders.push(contender("qperf", place, move |at| qperf::tcp(at, seconds)));
    }
    Contest { title: format!("{}, streams: {streams}", place.name()), contenders, claims }
}

fn claims(link: Link, streams: u32) -> Vec<Claim> {
    let against_debian = if link == Link::Veth && streams == 1 { 1.2 } else { 1.4 };
    let claim = |bound| Claim { ours: "netaware", figure: "Gbit/s", bound };
    vec![claim(Bound::AtLeast(against_debian, &["iperf3"])), claim(Bound::AtLeast(1.0, &[NEWEST]))]
}
