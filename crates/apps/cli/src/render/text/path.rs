//! Connecting, path MTU and hops.

use std::io;

use netaware_record::{MtuFinding, PathFacts, VersionResult};
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
    sheet.watched_row("path MTU", |v| mtu(v.path.as_ref()?), alarming)?;
    sheet.row("hops up / down", |v| hops(v.path.as_ref()?))
}

fn median(connects: &[Span]) -> Option<Span> {
    let mut sorted = connects.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

fn mtu(path: &PathFacts) -> Option<String> {
    let finding = match path.mtu_finding {
        MtuFinding::Unknown => return path.mtu.map(|mtu| format!("{mtu} B or more")),
        MtuFinding::Confirmed => "confirmed".to_owned(),
        MtuFinding::Learnt => {
            format!("learnt, not {}", path.mtu_believed.map_or("as believed".into(), |b| b.to_string()))
        }
        MtuFinding::BlackHole => "larger packets vanish".to_owned(),
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
