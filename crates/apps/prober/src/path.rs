//! What is learnt of a path before it is loaded: the path MTU.

use netaware_io::driver::AnswerWait;
use netaware_io::probe_socket::DontFragment;
use netaware_io::stop::StopFlag;
use netaware_io::{clock, driver};
use netaware_probe::{PathMtuPlan, PathMtuSearch};
use netaware_record::{MtuFinding, PathFacts, Reach};
use netaware_units::Span;
use netaware_wire::datagram::MAX_PAYLOAD;

use crate::echo::{EchoFlow, EchoSizes};
use crate::lane::{self, Lane};
use crate::progress::Watch;
use crate::request::Target;

/// The longest datagram that the search may send.
pub(crate) const LARGEST_PROBE: u32 = MAX_PAYLOAD as u32;

/// Of opening and ending a flow for a search.
const OPENING_ROUND_TRIPS: i64 = 6;
/// A flow that is opened for a search alone lasts so long at most.
const EXPLAINING: Span = Span::from_secs(30);
/// UDP over IPv4 and IPv6 alike (RFC 768).
const UDP_HEADER: u32 = 8;
/// Without a finding the path is taken for what IPv6 demands of every link (RFC 8200 §5).
const SAFE_MTU: u32 = 1280;
/// Larger datagrams than Ethernet carries say nothing about a path that people use.
const ETHERNET_MTU: u32 = 1500;

/// Searches for the path MTU over the echo flows of all lanes at once: a packet each is no load.
pub(crate) fn explore_all(lanes: &mut [Lane]) {
    std::thread::scope(|scope| {
        for lane in lanes.iter_mut().filter(|lane| lane.is_alive()) {
            scope.spawn(|| explore(lane));
        }
    });
}

/// Searches, or searches again, where nothing came of what was sent: a black hole for large packets
/// is the usual cause of that, and only a search can name it. A flow for the search is opened if
/// the lane has none.
pub(crate) fn explain_silence(lane: &mut Lane, target: &Target, stop: &StopFlag, watch: &mut Watch<'_>) {
    let is_known = lane.result.path.as_ref().is_some_and(|path| path.black_hole().is_some());
    if is_known || lane.is_silence_explained || stop.is_raised() || !lane.is_alive() {
        return;
    }
    lane.is_silence_explained = true;
    let connect = lane.result.reach.as_ref().and_then(Reach::longest_round_trip).unwrap_or_default();
    let at_most = PathMtuPlan::following(0, lane.version, ETHERNET_MTU, connect, clock::now()).budget
        + connect * OPENING_ROUND_TRIPS;
    let name = lane.version.name();
    let what = format!("{name}: nothing came; whether large packets vanish is looked into");
    watch.extends(at_most, &what);
    let had_flow = lane.echo.is_some();
    if !had_flow {
        let warnings = lane.warnings.clone();
        let sizes = EchoSizes::equal(LARGEST_PROBE);
        lane::attach_echo(std::slice::from_mut(lane), target, EXPLAINING, sizes);
        // A search that cannot be made explains nothing, and its failure neither.
        lane.warnings = warnings;
    }
    explore(lane);
    if !had_flow {
        lane.detach_echo();
    }
}

pub(crate) fn explore(lane: &mut Lane) {
    let connect = lane.result.reach.as_ref().and_then(Reach::longest_round_trip);
    let Some(over) = lane.session().map(|session| session.over.clone()) else { return };
    let Some(flow) = lane.echo.as_ref() else { return };
    let believed = flow.socket.path_mtu();
    let facts = search(lane, flow, believed.unwrap_or(ETHERNET_MTU), connect.unwrap_or_default(), &over);
    let found = after_both(lane.result.path.take(), facts);
    lane.result.path = Some(PathFacts { mtu_believed: believed, ..found.unwrap_or_default() });
    lane.check("search for the path MTU");
}

/// Returns what is known after another search. One that found nothing takes nothing back: packets
/// of that size have passed. Where packets of the believed size have, a bound below it is no news.
fn after_both(before: Option<PathFacts>, now: Option<PathFacts>) -> Option<PathFacts> {
    let Some(before) = before.filter(|path| path.mtu.is_some()) else { return now };
    let takes_back = |now: &PathFacts| {
        before.mtu_finding == MtuFinding::Confirmed
            && now.mtu < before.mtu
            && now.mtu_finding == MtuFinding::Unknown
    };
    let now = now.filter(|now| now.mtu.is_some() && !takes_back(now));
    Some(now.unwrap_or(before))
}

fn search(lane: &Lane, flow: &EchoFlow, believed: u32, connect: Span, stop: &StopFlag) -> Option<PathFacts> {
    let plan = PathMtuPlan::following(flow.number, lane.version, believed, connect, clock::now());
    let mut search = PathMtuSearch::new(plan);
    flow.socket.set_dont_fragment(DontFragment::Kernel).ok()?;
    let mut found = None;
    let driven =
        driver::run(&mut search, &flow.socket, AnswerWait::Asleep, stop, &mut |event| found = Some(event));
    // From here on datagrams are of modest size; the kernel may do as it likes with them.
    flow.socket.set_dont_fragment(DontFragment::Never).ok()?;
    driven.ok()?;
    let found = found?;
    Some(PathFacts {
        mtu: found.mtu,
        mtu_finding: found.finding,
        mtu_vanishes: found.vanishes,
        ..PathFacts::default()
    })
}

/// The largest payload that fits the lane's path, and Ethernet.
pub(crate) fn udp_payload(lane: &Lane) -> u32 {
    let path = lane.result.path.as_ref();
    let known = path.filter(|path| path.mtu_finding != MtuFinding::Unknown).and_then(|path| path.mtu);
    known.unwrap_or(SAFE_MTU).min(ETHERNET_MTU) - lane.version.header_len() - UDP_HEADER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(mtu: Option<u32>, mtu_finding: MtuFinding) -> PathFacts {
        PathFacts { mtu, mtu_finding, ..PathFacts::default() }
    }

    /// A search right behind an outage "explained" the transfer that had carried nothing in it.
    #[test]
    fn a_size_that_has_passed_is_not_taken_back_by_a_search_that_found_no_end() {
        use MtuFinding::{BlackHole, Confirmed, Learnt, Unknown};
        let rows = [
            // Before, then, and whether that counts.
            // One that began meanwhile was proven.
            (Some(1500), Confirmed, Some(1499), BlackHole, true),
            (Some(1500), Confirmed, Some(1492), Unknown, false),
            (Some(1500), Confirmed, None, Unknown, false),
            (Some(1500), Confirmed, Some(1400), Learnt, true),
            // The system has learnt it meanwhile.
            (Some(1500), Confirmed, Some(1400), Confirmed, true),
            (Some(1400), Unknown, Some(1492), BlackHole, true),
            (Some(1400), BlackHole, Some(1500), Confirmed, true),
            (Some(1400), BlackHole, None, Unknown, false),
            (None, Unknown, Some(1400), BlackHole, true),
            (None, Unknown, None, Unknown, true),
        ];
        for (n, (mtu, finding, next_mtu, next_finding, counts)) in rows.into_iter().enumerate() {
            let (before, next) = (facts(mtu, finding), facts(next_mtu, next_finding));
            let want = if counts { next.clone() } else { before.clone() };
            assert_eq!(after_both(Some(before), Some(next)), Some(want), "row {n}");
        }
        let known = facts(Some(1500), Confirmed);
        assert_eq!(after_both(Some(known.clone()), None), Some(known.clone()), "it could not be made");
        assert_eq!(after_both(None, Some(known.clone())), Some(known));
    }
}
