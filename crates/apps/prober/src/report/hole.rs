//! A path on which large packets vanish: one warning for all that comes of it.

use netaware_record::{Direction, Outcome, PathFacts, TcpResult, VersionResult};

use super::ends;

/// What a black hole of one version did, in one sentence, with what helps; `None` where there is
/// none. `left_out` are the UDP streams that had no rate to go by, as "down" and "up".
pub(super) fn warning(result: &VersionResult, left_out: &[&str]) -> Option<String> {
    let path = result.path.as_ref()?;
    let (hole, passes) = (path.black_hole()?, path.mtu?);
    let name = result.version.name();
    let header = result.version.header_len();
    // Of UDP alone: the longest payload that passes.
    if result.tcp.is_empty() && !result.udp.is_empty() {
        return Some(format!(
            "{name}: {hole}; longer datagrams are lost: use -l {}",
            passes.saturating_sub(header + UDP_HEADER)
        ));
    }
    let helps = format!(
        "'netaware tcp -M {}' gets through, and other programs do with an MTU of {passes} at this host's interface or route",
        passes.saturating_sub(header + TCP_HEADER)
    );
    let silent: Vec<&TcpResult> = result.tcp.iter().filter(|tcp| tcp.carried_nothing()).collect();
    if let Some(longest) = shortest_of_all(&result.tcp, header).filter(|longest| *longest > passes) {
        return Some(format!(
            "{name}: {hole}; that is so of datagrams alone: TCP's packets of {longest} bytes and more came through both ways; use -l {} with UDP",
            passes.saturating_sub(header + UDP_HEADER)
        ));
    }
    if silent.is_empty() {
        return Some(format!("{name}: {hole}; TCP may stall on it; {helps}"));
    }
    let udp = if left_out.is_empty() {
        String::new()
    } else {
        let were = if left_out.len() > 1 { "were" } else { "was" };
        format!(", and UDP {} {were} left out, because no rate was known", left_out.join(" and "))
    };
    Some(format!("{name}: {hole}; TCP stalled on it: {} carried nothing{udp}; {helps}", ends::named(&silent)))
}

/// Of the lengths with which each transfer came to its end, the shortest: IP packets without
/// options of TCP; `None` where one did not end well, nobody told, or there is but one direction.
fn shortest_of_all(tcp: &[TcpResult], header: u32) -> Option<u32> {
    let whole = |tcp: &TcpResult| {
        let streams = &tcp.sender.as_ref().filter(|_| tcp.outcome == Outcome::Complete)?.streams;
        let shortest = streams.iter().map(|stream| stream.mss).min()??;
        // A few segments may have come before the first long one.
        let is_carried = tcp.bytes.is_some_and(|bytes| bytes.0 > u64::from(shortest) * MANY);
        is_carried.then_some(shortest + header + TCP_HEADER)
    };
    let has = |way| tcp.iter().any(|tcp| tcp.pedigree.direction == way);
    if has(Direction::Forward) && has(Direction::Reverse) { tcp.iter().map(whole).min()? } else { None }
}

/// Whether a black hole is why transfers of this version carried nothing.
pub(super) fn explains(result: &VersionResult) -> bool {
    let has_hole = result.path.as_ref().and_then(PathFacts::black_hole).is_some();
    has_hole && result.tcp.iter().any(TcpResult::carried_nothing)
}

/// Takes out of all warnings what [`warning`] says: UDP streams of this version that TCP left
/// without a rate. Returns their directions.
pub(super) fn take_left_out(result: &VersionResult, warnings: &mut Vec<String>) -> Vec<&'static str> {
    if !explains(result) {
        return Vec::new();
    }
    let of = |way: &str| format!("{}: UDP {way} was left out: TCP carried nothing", result.version.name());
    let ways = ["down", "up"].into_iter().filter(|way| {
        let before = warnings.len();
        warnings.retain(|warning| !warning.starts_with(&of(way)));
        warnings.len() < before
    });
    ways.collect()
}

/// Whether a figure is missing because of the black hole. `missing` is what the record says of it.
pub(super) fn explains_missing(result: &VersionResult, left_out: &[&str], missing: &str) -> bool {
    let of =
        |what: &str| missing.starts_with(&format!("{}: there is no figure of {what}", result.version.name()));
    explains(result) && (of("the rate over TCP") || (!left_out.is_empty() && of("UDP")))
}

/// Segments of a transfer that was more than its begin.
const MANY: u64 = 20;
const UDP_HEADER: u32 = 8;
/// Without options, which the system takes off by itself.
const TCP_HEADER: u32 = 20;

#[cfg(test)]
mod tests {
    use netaware_record::{IpVersion, MtuFinding, StreamEnd, TcpEnd};

    use super::super::ends::tests::transfer;
    use super::*;

    fn result(carried: u64) -> VersionResult {
        let silent = |direction, streams| TcpResult {
            goodput: None,
            bytes: Some(netaware_units::ByteCount(carried)),
            ..transfer(direction, streams)
        };
        let path = PathFacts { mtu: Some(1460), mtu_finding: MtuFinding::BlackHole, ..PathFacts::default() };
        let tcp = [Direction::Reverse, Direction::Forward].map(|way| [silent(way, 1), silent(way, 4)]);
        VersionResult { path: Some(path), tcp: tcp.concat(), ..VersionResult::new(IpVersion::V4) }
    }

    #[test]
    fn a_filter_of_long_datagrams_is_not_said_to_stall_tcp() {
        let carried = |mss, outcome| {
            let mut result = result(1_000_000);
            let stream = StreamEnd { mss, ..StreamEnd::default() };
            for tcp in &mut result.tcp {
                tcp.sender = Some(TcpEnd { streams: vec![stream.clone(); 2], ..TcpEnd::default() });
                tcp.outcome = outcome;
            }
            warning(&result, &[]).unwrap()
        };
        let of_udp = carried(Some(1448), Outcome::Complete);
        assert!(
            of_udp
                .contains("of datagrams alone: TCP's packets of 1488 bytes and more came through both ways"),
            "{of_udp}"
        );
        // A kernel that made its segments shorter, one that did not tell, and a transfer that
        // stalled.
        for (mss, outcome) in
            [(Some(1200), Outcome::Complete), (None, Outcome::Complete), (Some(1448), Outcome::Failed)]
        {
            let said = carried(mss, outcome);
            assert!(said.contains("TCP may stall on it"), "{said}");
        }
    }

    #[test]
    fn one_black_hole_is_one_warning_and_says_what_helps() {
        let stalled = result(0);
        let left = |way: &str| {
            format!("IPv4: UDP {way} was left out: TCP carried nothing in this direction, so no rate")
        };
        let mut warnings =
            vec![left("down"), "IPv6: UDP up was left out: TCP carried nothing".to_owned(), left("up")];
        let left_out = take_left_out(&stalled, &mut warnings);
        assert_eq!((left_out.as_slice(), warnings.len()), (["down", "up"].as_slice(), 1));
        let want = "IPv4: packets above 1460 bytes vanish and no router says so; TCP stalled on it: TCP down with 1 and \
                    4 streams, TCP up with 1 and 4 streams carried nothing, and UDP down and up were left out, because no \
                    rate was known; 'netaware tcp -M 1420' gets through, and other programs do with an MTU of 1460 at \
                    this host's interface or route";
        assert_eq!(warning(&stalled, &left_out).as_deref(), Some(want));
        let missing = |what: &str| explains_missing(&stalled, &left_out, what);
        assert!(
            missing("IPv4: there is no figure of the rate over TCP")
                && missing("IPv4: there is no figure of UDP")
        );
        assert!(!missing("IPv6: there is no figure of the rate over TCP"));
        let passed = result(7);
        assert!(!explains(&passed) && warning(&passed, &[]).unwrap().contains("; TCP may stall on it; "));
        assert_eq!(warning(&VersionResult::new(IpVersion::V4), &[]), None);
    }
}
