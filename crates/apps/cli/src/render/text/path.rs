//! Connecting, path MTU and hops.

use std::io;

use netaware_record::{Direction, MtuFinding, PathFacts, TcpResult, VersionResult};
use netaware_units::Span;

use super::Sheet;

pub(super) fn section(sheet: &mut Sheet<'_>) -> io::Result<()> {
    if sheet.versions.iter().all(|v| v.reach.is_none() && v.path.is_none()) {
        return Ok(());
    }
    sheet.table.section("PATH")?;
    sheet.row("name lookup", |v| Some(v.reach.as_ref()?.resolve?.to_string()))?;
    sheet.row("TCP connect, median", |v| Some(median(&v.reach.as_ref()?.connects)?.to_string()))?;
    let alarming =
        |v: &VersionResult| v.path.as_ref().is_some_and(|p| p.mtu_finding == MtuFinding::BlackHole);
    sheet.watched_row("path MTU", |v| mtu(v.path.as_ref()?, vanish_on(v)), alarming)?;
    sheet.row("hops up / down", |v| hops(v.path.as_ref()?))
}

fn median(connects: &[Span]) -> Option<Span> {
    let mut sorted = connects.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// The only way on which long packets vanish: TCP carried nothing on it, and long packets of TCP
/// came through on the other one.
fn vanish_on(version: &VersionResult) -> Option<Direction> {
    let passes = version.path.as_ref()?.mtu?;
    let headers = version.version.header_len() + TCP_HEADER;
    let is_long = |tcp: &TcpResult| {
        let streams = tcp.sender.as_ref().map(|sender| &sender.streams[..]).unwrap_or_default();
        let shortest = streams.iter().map(|stream| stream.mss).min().flatten();
        let (Some(mss), Some(bytes)) = (shortest, tcp.bytes) else { return false };
        mss + headers > passes && bytes.0 > u64::from(mss) * MANY
    };
    let of = |way| version.tcp.iter().filter(move |tcp| tcp.pedigree.direction == way);
    let ways = [(Direction::Reverse, Direction::Forward), (Direction::Forward, Direction::Reverse)];
    let is_so = |(bad, good): &(Direction, Direction)| {
        of(*bad).next().is_some() && of(*bad).all(TcpResult::carried_nothing) && of(*good).any(is_long)
    };
    ways.into_iter().find(is_so).map(|(bad, _)| bad)
}

/// Without options.
const TCP_HEADER: u32 = 20;
/// Segments of a transfer that was more than its begin.
const MANY: u64 = 20;

fn mtu(path: &PathFacts, vanish_on: Option<Direction>) -> Option<String> {
    let finding = match path.mtu_finding {
        MtuFinding::Unknown => return path.mtu.map(|mtu| format!("{mtu} B or more")),
        MtuFinding::Confirmed => "confirmed".to_owned(),
        MtuFinding::Learnt => {
            format!("learnt, not {}", path.mtu_believed.map_or("as believed".into(), |b| b.to_string()))
        }
        MtuFinding::BlackHole => match vanish_on {
            Some(way) => format!("larger packets vanish on the way {}", way.name()),
            None => "larger packets vanish".to_owned(),
        },
    };
    Some(path.mtu.map_or_else(|| finding.clone(), |mtu| format!("{mtu} B, {finding}")))
}

fn hops(path: &PathFacts) -> Option<String> {
    if path.hops_forward.is_none() && path.hops_reverse.is_none() {
        return None;
    }
    let shown = |hops: Option<u8>| hops.map_or_else(|| "?".to_owned(), |n| n.to_string());
    Some(format!("{} / {}", shown(path.hops_forward), shown(path.hops_reverse)))
}

#[cfg(test)]
mod tests {
    use netaware_record::{StreamEnd, TcpEnd};
    use netaware_units::ByteCount;

    use super::*;
    use crate::render::fixture;

    /// Packets that vanished on the way down alone were said to vanish.
    #[test]
    fn a_black_hole_names_its_way_where_long_packets_pass_the_other_one() {
        let shown = |mss: u32, up: u64| {
            let mut version = fixture::test().versions[0].clone();
            let path = version.path.as_mut().unwrap();
            (path.mtu, path.mtu_finding) = (Some(1400), MtuFinding::BlackHole);
            for tcp in &mut version.tcp {
                let is_up = tcp.pedigree.direction == Direction::Forward;
                tcp.bytes = Some(ByteCount(if is_up { up } else { 0 }));
                let stream = StreamEnd { mss: Some(mss), ..StreamEnd::default() };
                tcp.sender = Some(TcpEnd { streams: vec![stream], ..TcpEnd::default() });
            }
            mtu(version.path.as_ref().unwrap(), vanish_on(&version)).unwrap()
        };
        assert_eq!(shown(1448, 1_000_000), "1400 B, larger packets vanish on the way down");
        for (mss, up) in [(1360, 1_000_000), (1448, 2_000), (1448, 0)] {
            assert_eq!(shown(mss, up), "1400 B, larger packets vanish", "{mss} {up}");
        }
    }
}
