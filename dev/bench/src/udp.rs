//! UDP as fast as it goes, small and large datagrams: delivered packets per second.

use std::path::Path;

use netaware_netns::Pair;

use super::Plan;
use super::contest::{Bound, Claim, Contender, Contest};
use super::peers::{Tools, ceiling, contender, iperf2, iperf3, netaware, nuttcp};
use super::place::Place;

/// Payloads in bytes: the smallest frame of Ethernet nearly, and the largest that IPv4 fits into
/// 1500.
const PAYLOADS: [u32; 2] = [64, 1472];

/// With segmentation offload: the kernel cuts (and glues), the program handles 64 KiB at a time.
pub(crate) fn with_offload<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    over_places(pair, |place, payload| {
        let seconds = plan.seconds;
        let mut contenders = ours(tools, place, payload, seconds, "netaware", ("gso", "gro"));
        contenders.push(debian(place, payload, seconds));
        if let Some(newest) = tools.iperf3_new() {
            let run = move |at: Place<'a>| iperf3::udp(newest, at, payload, seconds, &["--gsro"]);
            contenders.push(contender("iperf3 newest --gsro", place, run));
        }
        let plain_c = tools.ceiling();
        contenders.push(contender(CEILING, place, move |at| ceiling::udp(plain_c, at, payload, seconds)));
        let claim = |figure, bound| Claim { ours: "netaware", figure, bound };
        let claims = vec![
            claim("packets/s", Bound::AtLeast(8.0, &["iperf3"])),
            claim("packets/s", Bound::AtLeast(0.9, &[CEILING])),
            claim("loss %", Bound::Limit(0.0)),
        ];
        Contest { title: title(place, payload), contenders, claims }
    })
}

const CEILING: &str = "plain C";

/// Without: every datagram goes through the stack by itself.
pub(crate) fn plain<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    over_places(pair, |place, payload| {
        let seconds = plan.seconds;
        let mut contenders = ours(tools, place, payload, seconds, "netaware", ("single", "single"));
        contenders.extend(ours(tools, place, payload, seconds, BATCHED, ("mmsg", "mmsg")));
        contenders.push(debian(place, payload, seconds));
        contenders.push(contender("nuttcp", place, move |at| nuttcp::udp(at, payload, seconds)));
        contenders.push(contender("iperf2", place, move |at| iperf2::udp(at, payload, seconds)));
        let claim = |ours| {
            let bound = Bound::AtLeast(1.0, &["iperf3", "nuttcp", "iperf2"]);
            Claim { ours, figure: "packets/s", bound }
        };
        Contest { title: title(place, payload), contenders, claims: vec![claim("netaware"), claim(BATCHED)] }
    })
}

const BATCHED: &str = "netaware mmsg";

/// What it costs to count the times between arrivals in bins of 1 us, at the rate at which most of
/// them pass: small datagrams, one by one.
pub(crate) fn with_histogram<'a>(pair: &'a Pair, tools: &'a Tools, plan: Plan) -> Vec<Contest<'a>> {
    let contest = |place: Place<'a>, call: &'static str| {
        let contenders = [("netaware", &[][..]), (COUNTING, &["--hist", "1us"][..])].map(|(name, extra)| {
            let run = |program: &'a Path| {
                let (payload, seconds, calls) = (PAYLOADS[0], plan.seconds, (call, call));
                contender(name, place, move |at| netaware::udp(program, at, payload, seconds, calls, extra))
            };
            tools.netaware().map(run)
        });
        let bound = Bound::AtLeast(0.98, &["netaware"]);
        Contest {
            title: format!("{}, {call} calls", title(place, PAYLOADS[0])),
            contenders: contenders.into_iter().flatten().collect(),
            claims: vec![Claim { ours: COUNTING, figure: "packets/s", bound }],
        }
    };
    let at = |place: Place<'a>| ["single", "mmsg"].map(|call| contest(place, call));
    Place::both_links(pair).into_iter().flat_map(at).collect()
}

const COUNTING: &str = "netaware --hist";

/// Large datagrams of 1472 B would be cut in two by IPv6, so that one is measured over IPv4 only.
fn over_places<'a>(pair: &'a Pair, contest: impl Fn(Place<'a>, u32) -> Contest<'a>) -> Vec<Contest<'a>> {
    let at = |place: Place<'a>| PAYLOADS.map(|payload| contest(place, payload));
    Place::both_links(pair).into_iter().flat_map(at).collect()
}

fn ours<'a>(
    tools: &'a Tools,
    place: Place<'a>,
    payload: u32,
    seconds: u32,
    name: &'static str,
    calls: (&'static str, &'static str),
) -> Vec<Contender<'a>> {
    let with =
        |program| contender(name, place, move |at| netaware::udp(program, at, payload, seconds, calls, &[]));
    tools.netaware().map(with).into_iter().collect()
}

fn debian(place: Place<'_>, payload: u32, seconds: u32) -> Contender<'_> {
    contender("iperf3", place, move |at| iperf3::udp("iperf3".as_ref(), at, payload, seconds, &[]))
}

fn title(place: Place<'_>, payload: u32) -> String {
    format!("{}, {payload} B", place.name())
}
