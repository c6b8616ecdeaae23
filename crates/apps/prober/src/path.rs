//! What is learnt of a path before it is loaded: the path MTU.

use netaware_io::driver::AnswerWait;
use netaware_io::probe_socket::DontFragment;
use netaware_io::stop::StopFlag;
use netaware_io::{clock, driver};
use netaware_probe::{PathMtuPlan, PathMtuSearch};
use netaware_record::{MtuFinding, PathFacts, Reach};
use netaware_units::Span;
use netaware_wire::datagram::MAX_PAYLOAD;

use crate::echo::EchoFlow;
use crate::lane::Lane;

/// The longest datagram that the search may send.
pub(crate) const LARGEST_PROBE: u32 = MAX_PAYLOAD as u32;

/// What the search may take; it takes two round trips on a healthy path.
const BUDGET: Span = Span::from_secs(3);
/// Each try is awaited so long, or three times what connecting took.
const SHORTEST_TRY: Span = Span::from_millis(100);
/// UDP over IPv4 and IPv6 alike (RFC 768).
const UDP_HEADER: u32 = 8;
/// Without a finding the path is taken for what IPv6 demands of every link (RFC 8200 §5).
const SAFE_MTU: u32 = 1280;
/// Larger datagrams than Ethernet carries say nothing about a path that people use.
const ETHERNET_MTU: u32 = 1500;

/// Searches for the path MTU over the lane's echo flow.
pub(crate) fn explore(lane: &mut Lane) {
    let connect = lane.result.reach.as_ref().and_then(Reach::longest_round_trip);
    let Some(over) = lane.session().map(|session| session.over.clone()) else { return };
    let Some(flow) = lane.echo.as_ref() else { return };
    let believed = flow.socket.path_mtu();
    let facts = search(lane, flow, believed.unwrap_or(ETHERNET_MTU), connect.unwrap_or_default(), &over);
    lane.result.path = Some(PathFacts { mtu_believed: believed, ..facts.unwrap_or_default() });
    lane.check("search for the path MTU");
}

fn search(lane: &Lane, flow: &EchoFlow, believed: u32, connect: Span, stop: &StopFlag) -> Option<PathFacts> {
    let mut search = PathMtuSearch::new(PathMtuPlan {
        flow: flow.number,
        version: lane.version,
        believed,
        timeout: SHORTEST_TRY.max(connect * 3),
        budget: BUDGET,
        start: clock::now(),
    });
    flow.socket.set_dont_fragment(DontFragment::Kernel).ok()?;
    let mut found = None;
    let driven =
        driver::run(&mut search, &flow.socket, AnswerWait::Asleep, stop, &mut |event| found = Some(event));
    // From here on datagrams are of modest size; the kernel may do as it likes with them.
    flow.socket.set_dont_fragment(DontFragment::Never).ok()?;
    driven.ok()?;
    let found = found?;
    Some(PathFacts { mtu: found.mtu, mtu_finding: found.finding, ..PathFacts::default() })
}

/// The largest payload that fits the lane's path, and Ethernet.
pub(crate) fn udp_payload(lane: &Lane) -> u32 {
    let path = lane.result.path.as_ref();
    let known = path.filter(|path| path.mtu_finding != MtuFinding::Unknown).and_then(|path| path.mtu);
    known.unwrap_or(SAFE_MTU).min(ETHERNET_MTU) - lane.version.header_len() - UDP_HEADER
}
