//! Request-response delay: one after the other as fast as it goes, and evenly spaced.

use netaware_netns::Pair;

use super::Plan;
use super::contest::{Bound, Claim, Contest};
use super::peers::sockperf::{Tells, Waits};
use super::peers::{Tools, contender, irtt, netaware, qperf, sockperf};
use super::place::Place;

const PAYLOAD: u32 = 64;
const SPACING_MS: u32 = 10;
/// As it is by default, and waiting awake as netaware does.
const SOCKPERFS: [&[&str]; 2] = [&["sockperf"], &["sockperf --nonblocked"]];

/// IPv4 only, because sockperf as shipped cannot do IPv6.
pub(crate) fn contests<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    let places = Place::both_links(pair);
    let ping_pong = places.iter().map(|&place| ping_pong(place, tools, plan.seconds));
    ping_pong.chain(places.iter().map(|&place| spaced(place, tools, plan.seconds))).collect()
}

fn ping_pong<'a>(place: Place<'a>, tools: &'a Tools, seconds: u32) -> Contest<'a> {
    let mut contenders = Vec::new();
    if let Some(ours) = tools.netaware() {
        contenders
            .push(contender("netaware", place, move |at| netaware::ping_pong(ours, at, PAYLOAD, seconds)));
    }
    for (name, waits) in [("sockperf", Waits::Asleep), ("sockperf --nonblocked", Waits::Awake)] {
        let run = move |at| sockperf::ping_pong(at, PAYLOAD, seconds, waits, Tells::Whole);
        contenders.push(contender(name, place, run));
    }
    contenders.push(contender("qperf", place, move |at| qperf::udp_latency(at, PAYLOAD, seconds)));
    let claim = |peers, figure, times| Claim { ours: "netaware", figure, bound: Bound::AtMost(times, peers) };
    let targets = [("p50 us", 1.05), ("p99 us", 1.0), ("p99.9 us", 1.0)];
    let claims = SOCKPERFS.iter().flat_map(|peer| targets.map(|(figure, times)| claim(*peer, figure, times)));
    let claims = claims.collect();
    Contest { title: format!("{}, ping-pong", place.name()), contenders, claims }
}

/// No target: with pauses in between it is the machine's sleep states that decide.
fn spaced<'a>(place: Place<'a>, tools: &'a Tools, seconds: u32) -> Contest<'a> {
    let mut contenders = Vec::new();
    if let Some(ours) = tools.netaware() {
        let run = move |at| netaware::spaced(ours, at, PAYLOAD, SPACING_MS, seconds);
        contenders.push(contender("netaware", place, run));
    }
    contenders.push(contender("irtt", place, move |at| irtt::spaced(at, PAYLOAD, SPACING_MS, seconds)));
    Contest { title: format!("{}, every {SPACING_MS} ms", place.name()), contenders, claims: Vec::new() }
}
