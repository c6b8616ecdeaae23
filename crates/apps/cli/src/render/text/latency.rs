//! Request-response delay.

use std::io;

use netaware_record::{DelaySummary, LatencyResult, VersionResult};
use netaware_units::Span;

use super::{Sheet, pedigree};
use crate::render::figures::{count, load, share};

pub(super) fn section(sheet: &mut Sheet<'_>) -> io::Result<()> {
    if sheet.versions.iter().all(|v| v.latency.is_none()) {
        return Ok(());
    }
    let full = sheet.is_full();
    sheet.table.section(if full { "ROUND TRIP" } else { "IDLE ROUND TRIP" })?;
    delays(sheet, full)?;
    variation(sheet, full)?;
    losses(sheet)?;
    let results: Vec<_> = sheet.versions.iter().filter_map(|v| v.latency.as_ref()).collect();
    let healths: Vec<_> = results.iter().map(|r| (r.pedigree.version, &r.health)).collect();
    let pedigrees: Vec<_> = results.iter().map(|r| &r.pedigree).collect();
    pedigree::remarks(sheet, &pedigrees, &healths)
}

fn delays(sheet: &mut Sheet<'_>, full: bool) -> io::Result<()> {
    let mut row = |label: &str, of: fn(&DelaySummary) -> Span| {
        sheet.row(label, |v| Some(of(latency(v)?.rtt.as_ref()?).to_string()))
    };
    row("smallest", |d| d.min)?;
    row("p50", |d| d.p50)?;
    row("p95", |d| d.p95)?;
    row("p99", |d| d.p99)?;
    if full {
        row("p99.9", |d| d.p999)?;
    }
    row("largest", |d| d.max)?;
    if full {
        sheet.row("mean, sd", |v| latency(v)?.rtt.as_ref().map(|d| format!("{}, {}", d.mean, d.sd)))?;
        sheet.row("application's p50, p99", |v| {
            latency(v)?.rtt_application.as_ref().map(|d| format!("{}, {}", d.p50, d.p99))
        })?;
        sheet.row("responder's p50, p99", |v| {
            latency(v)?.responder.as_ref().map(|d| format!("{}, {}", d.p50, d.p99))
        })?;
    }
    Ok(())
}

fn variation(sheet: &mut Sheet<'_>, full: bool) -> io::Result<()> {
    let p95 = |delays: Option<DelaySummary>| delays.map(|d| d.p95.to_string());
    sheet.row("variation, IPDV p95", |v| p95(latency(v)?.ipdv))?;
    sheet.row("variation, PDV p95", |v| p95(latency(v)?.pdv))?;
    if full {
        sheet.row("jitter (RFC 3550)", |v| Some(latency(v)?.jitter.to_string()))?;
    }
    Ok(())
}

fn losses(sheet: &mut Sheet<'_>) -> io::Result<()> {
    let lossy = |v: &VersionResult| latency(v).is_some_and(|l| l.lost > 0);
    sheet.watched_row("lost", |v| latency(v).map(lost), lossy)?;
    sheet.row("of them late", |v| latency(v).filter(|l| l.lost > 0).map(|l| count(l.late)))?;
    sheet.row("reordered / duplicate", |v| {
        latency(v).map(|l| format!("{} / {}", count(l.reordered), count(l.duplicates)))
    })?;
    sheet.row("not sent", |v| latency(v).filter(|l| l.not_sent > 0).map(|l| count(l.not_sent)))?;
    sheet.row("requests", |v| latency(v).map(requests))?;
    sheet.watched_row(
        "busiest core",
        |v| latency(v).and_then(busiest),
        |v| latency(v).is_some_and(is_busy),
    )?;
    sheet.row("clock", |v| Some(latency(v)?.pedigree.clock.name().to_owned()))
}

fn latency(v: &VersionResult) -> Option<&LatencyResult> {
    v.latency.as_ref()
}

/// Absent where the system does not tell.
fn busiest(l: &LatencyResult) -> Option<String> {
    let both = [l.health.prober_busiest_core, l.health.responder_busiest_core];
    let told: Vec<String> = both.into_iter().flatten().map(load).collect();
    (!told.is_empty()).then(|| told.join(" / "))
}

/// Then the scheduler is in the round trips.
fn is_busy(l: &LatencyResult) -> bool {
    [l.health.prober_busiest_core, l.health.responder_busiest_core]
        .into_iter()
        .flatten()
        .any(|busy| busy > 0.95)
}

fn lost(l: &LatencyResult) -> String {
    format!("{} ({} of {})", share(l.lost, l.sent), count(l.lost), count(l.sent))
}

fn requests(l: &LatencyResult) -> String {
    let pace = if l.spacing.0 == 0 { "ping-pong".to_owned() } else { format!("every {}", l.spacing) };
    format!("{} of {}, {pace}", count(l.sent), l.payload)
}
