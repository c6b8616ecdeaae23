//! Datagrams of which none came, and packets of a size that nobody saw pass: what is known of their
//! length.
//!
//! **Measures** nothing: it lays the length of a stream that carried nothing beside what came over
//! the same version, and beside what the search for the path MTU found. **Assumes** that a stream
//! had a flow, which short datagrams opened both ways. **Biased** towards not knowing: a search
//! sends there and back, so that it does not show on which way packets vanish.

use netaware_record::{IpVersion, LatencyResult, MtuFinding, PathFacts, UdpResult, VersionResult};

use crate::request::Transport;

/// What is known of one version, in one sentence; `None` where nothing is missing, where another
/// warning says why, and where the version is out.
pub(super) fn warning(result: &VersionResult) -> Option<String> {
    let path = result.path.as_ref();
    if result.unreachable.is_some() || path.and_then(PathFacts::black_hole).is_some() {
        return None;
    }
    let lost = || {
        let long = result.udp.iter().filter(|udp| udp.payload.0 >= LONG);
        long.filter(|udp| udp.received == 0 && udp.loss.lost > 0)
    };
    let short = answered(result);
    let name = result.version.name();
    let Some(longest) = lost().map(|udp| udp.payload.0).max() else {
        let short = short?;
        let unknown = unknown_mtu(result.version, path?)?;
        return Some(format!("{name}: {unknown}, though requests of {short} bytes were answered over UDP"));
    };
    let ways = lost().map(|udp: &UdpResult| udp.pedigree.direction.name()).collect::<Vec<_>>().join(" and ");
    let short = short.map_or_else(
        || "the short ones that open a flow did".to_owned(),
        |short| format!("requests of {short} bytes and their answers did"),
    );
    let search = path.and_then(|path| searched(result.version, path, longest));
    let search = search.map(|search| format!("; {search}")).unwrap_or_default();
    Some(format!("{name}: UDP {ways}: no datagram of {longest} bytes arrived, though {short}{search}"))
}

/// The payload of requests over UDP that were answered.
fn answered(result: &VersionResult) -> Option<u64> {
    let over_udp = |latency: &&LatencyResult| latency.pedigree.method == Transport::Udp.method();
    let latency = result.latency.as_ref().filter(over_udp)?;
    (latency.received > 0 && latency.payload.0 < LONG).then_some(latency.payload.0)
}

/// What the search for the path MTU says of datagrams with this payload.
fn searched(version: IpVersion, path: &PathFacts, payload: u64) -> Option<String> {
    let packet = payload + u64::from(version.header_len()) + UDP_HEADER;
    match path.mtu {
        Some(mtu) if u64::from(mtu) >= packet => {
            Some(format!("packets of {mtu} bytes came through both ways, so that it is not their length"))
        }
        Some(mtu) => Some(format!(
            "packets of {mtu} bytes came through both ways, and whether longer ones vanish was not found out"
        )),
        None => unknown_mtu(version, path).map(|unknown| format!("large packets may vanish: {unknown}")),
    }
}

/// That a search for the path MTU saw no packet pass.
fn unknown_mtu(version: IpVersion, path: &PathFacts) -> Option<String> {
    let is_unknown = path.mtu.is_none() && path.mtu_finding == MtuFinding::Unknown;
    let shortest = match version {
        IpVersion::V4 => 576,
        IpVersion::V6 => 1280,
    };
    // What the system believes is known where a search was made.
    (is_unknown && path.mtu_believed.is_some()).then(|| {
        format!(
            "the path MTU is unknown, because no packet of {shortest} bytes or more is known to have come through \
             both ways"
        )
    })
}

/// RFC 768.
const UDP_HEADER: u64 = 8;
/// Any path carries shorter datagrams in one packet: theirs is no matter of length.
const LONG: u64 = 512;

#[cfg(test)]
mod tests {
    use netaware_probe::limit::Across;
    use netaware_record::{Direction, Layer, Pedigree};
    use netaware_units::{ByteCount, ClockSource};

    use super::super::outages::tests::stream;
    use super::super::{Path, udp};
    use super::*;

    /// A version whose stream up had datagrams of 1472 bytes, of which so many came.
    fn result(came: u64, path: PathFacts) -> VersionResult {
        let of = Path { version: IpVersion::V6, across: Across::Network };
        let udp = udp::results(of, &[stream(Direction::Forward, Vec::new(), came)]);
        VersionResult { udp, path: Some(path), ..VersionResult::new(IpVersion::V6) }
    }

    fn facts(mtu: Option<u32>, mtu_finding: MtuFinding) -> PathFacts {
        PathFacts { mtu, mtu_finding, mtu_believed: Some(1500), ..PathFacts::default() }
    }

    fn with_requests(of: VersionResult) -> VersionResult {
        let pedigree = Pedigree {
            method: Transport::Udp.method().into(),
            layer: Layer::Payload,
            direction: Direction::RoundTrip,
            version: IpVersion::V6,
            clock: ClockSource::Kernel,
            uncertainty: String::new(),
        };
        let latency = LatencyResult { received: 200, ..LatencyResult::before_any(pedigree, ByteCount(64)) };
        VersionResult { latency: Some(latency), ..of }
    }

    /// It was said that it is looked into whether large packets vanish, and not what came of that.
    #[test]
    fn datagrams_of_which_none_came_have_what_is_known_of_their_length() {
        let nothing = facts(None, MtuFinding::Unknown);
        let unknown = "large packets may vanish: the path MTU is unknown, because no packet of 1280 bytes or more is \
                       known to have come through both ways";
        let said = warning(&result(0, nothing.clone())).unwrap();
        let flow =
            "IPv6: UDP up: no datagram of 1472 bytes arrived, though the short ones that open a flow did";
        assert_eq!(said, format!("{flow}; {unknown}"));
        let said = warning(&with_requests(result(0, nothing))).unwrap();
        let requests =
            "no datagram of 1472 bytes arrived, though requests of 64 bytes and their answers did; large";
        assert!(said.contains(requests), "{said}");
        let said = warning(&result(0, facts(Some(1520), MtuFinding::Confirmed))).unwrap();
        assert!(
            said.ends_with("packets of 1520 bytes came through both ways, so that it is not their length")
        );
        let said = warning(&result(0, facts(Some(1400), MtuFinding::Unknown))).unwrap();
        assert!(said.ends_with("and whether longer ones vanish was not found out"), "{said}");
        // The black hole has a warning of its own.
        assert_eq!(warning(&result(0, facts(Some(1400), MtuFinding::BlackHole))), None);
    }

    #[test]
    fn a_path_mtu_that_is_unknown_has_a_reason() {
        let nothing = facts(None, MtuFinding::Unknown);
        assert_eq!(
            warning(&with_requests(result(1000, nothing.clone()))).as_deref(),
            Some(
                "IPv6: the path MTU is unknown, because no packet of 1280 bytes or more is known to have come through \
                 both ways, though requests of 64 bytes were answered over UDP"
            )
        );
        // Nobody has searched, or nothing shows that UDP came through.
        assert_eq!(warning(&result(1000, nothing.clone())), None);
        assert_eq!(warning(&with_requests(result(1000, PathFacts { mtu_believed: None, ..nothing }))), None);
        assert_eq!(warning(&with_requests(result(1000, facts(Some(1500), MtuFinding::Confirmed)))), None);
    }
}
