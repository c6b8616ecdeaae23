//! Request-response delay.

use std::io::{self, Write};

use netaware_record::{
    Arrivals, DelaySummary, DelayTail, ExchangeTotal, LatencyResult, Record, VersionResult,
};
use netaware_units::Span;

use super::{Sheet, bins, pedigree};
use crate::render::figures::{count, load, mean_and_sd, nanos, share};
use crate::render::paint::Paint;

/// One of the delays that a version may have.
type Pick = fn(&VersionResult) -> Option<&LatencyResult>;

pub(super) fn section(sheet: &mut Sheet<'_>) -> io::Result<()> {
    let title = if sheet.is_full() { "ROUND TRIP" } else { "IDLE ROUND TRIP" };
    one(sheet, title, |v| v.latency.as_ref())?;
    one(sheet, "ROUND TRIP OVER TCP", |v| v.latency_tcp.as_ref())
}

/// The bins that were asked for, version by version.
pub(super) fn histograms(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    for version in &record.versions {
        for result in version.latency.iter().chain(&version.latency_tcp) {
            if let Some(filled) = &result.bins {
                let over = if result.pedigree.method == netaware_record::OVER_TCP { "TCP" } else { "UDP" };
                let title = format!("round trip, {} {over}", version.version.name());
                bins::write(out, &title, filled, paint)?;
            }
        }
    }
    Ok(())
}

fn one(sheet: &mut Sheet<'_>, title: &str, pick: Pick) -> io::Result<()> {
    if sheet.versions.iter().all(|v| pick(v).is_none()) {
        return Ok(());
    }
    let full = sheet.is_full();
    sheet.table.section(title)?;
    delays(sheet, pick, full)?;
    variation(sheet, pick, full)?;
    losses(sheet, pick)?;
    let results: Vec<_> = sheet.versions.iter().filter_map(|v| pick(v)).collect();
    let told: Vec<_> = results.iter().map(|r| (&r.pedigree, &r.health)).collect();
    pedigree::remarks(sheet, &told)
}

fn delays(sheet: &mut Sheet<'_>, pick: Pick, full: bool) -> io::Result<()> {
    let mut row = |label: &str, of: fn(&LatencyResult) -> Option<Span>| {
        sheet.row(label, |v| Some(of(pick(v)?)?.to_string()))
    };
    row("smallest", |l| Some(l.rtt?.min))?;
    row("p50", |l| Some(l.rtt?.p50))?;
    if full {
        row("p90", |l| l.tail?.p90)?;
    }
    row("p95", |l| Some(l.rtt?.p95))?;
    row("p99", |l| Some(l.rtt?.p99))?;
    if full {
        row("p99.9", |l| Some(l.rtt?.p999))?;
        row("p99.99", |l| l.tail?.p9999)?;
        row("p99.999", |l| l.tail?.p99999)?;
    }
    row("largest", |l| Some(l.rtt?.max))?;
    if full { details(sheet, pick) } else { Ok(()) }
}

fn details(sheet: &mut Sheet<'_>, pick: Pick) -> io::Result<()> {
    let two = |a: Span, b: Span| format!("{a}, {b}");
    sheet.row("mean, sd", |v| pick(v)?.rtt.map(|d| mean_and_sd(&d)))?;
    sheet.row("application's p50, p99", |v| pick(v)?.rtt_application.map(|d| two(d.p50, d.p99)))?;
    sheet.row("from when due p50, p99", |v| from_due(pick(v)?).map(|(d, _)| two(d.p50, d.p99)))?;
    sheet.row("p99.9, largest of these", |v| from_due(pick(v)?).map(|(d, _)| two(d.p999, d.max)))?;
    sheet.row("p99.99 of these", |v| from_due(pick(v)?)?.1?.p9999.map(|p9999| p9999.to_string()))?;
    sheet.row("responder's p50, p99", |v| pick(v)?.responder.map(|d| two(d.p50, d.p99)))?;
    // In an open loop the total is the spacing, which the person has chosen.
    let closed = |l: &LatencyResult| l.total.filter(|_| l.depth.is_some());
    sheet.row("total time, each", |v| {
        closed(pick(v)?).map(|t| format!("{}, {}", t.time, nanos(t.per_exchange_ns)))
    })?;
    sheet.row("responses per time", |v| closed(pick(v)?).map(|t| megabytes(&t)))
}

/// The delay from when requests were due, where it differs from the application's by more than a
/// busy moment: by 5 % and 50 us.
fn from_due(l: &LatencyResult) -> Option<(DelaySummary, Option<DelayTail>)> {
    let (due, sent) = (l.rtt_from_due?, l.rtt_application?);
    let differs = |of: fn(&DelaySummary) -> Span| {
        let (due, sent) = (of(&due), of(&sent));
        (due - sent).abs() > Span(sent.0 / 20).max(Span::from_micros(50))
    };
    let any = [differs(|d| d.p50), differs(|d| d.p99), differs(|d| d.p999), differs(|d| d.max)];
    any.contains(&true).then_some((due, l.tail_from_due))
}

fn megabytes(total: &ExchangeTotal) -> String {
    format!("{:.3} MB/s", total.response_rate.0 as f64 / 8e6)
}

fn variation(sheet: &mut Sheet<'_>, pick: Pick, full: bool) -> io::Result<()> {
    let p95 = |delays: Option<DelaySummary>| delays.map(|d| d.p95.to_string());
    sheet.row("variation, IPDV p95", |v| p95(pick(v)?.ipdv))?;
    // One answer alone is its own minimum.
    sheet.row("variation, PDV p95", |v| p95(pick(v)?.pdv.filter(|delays| delays.count > 1)))?;
    if full {
        sheet.row("jitter (RFC 3550)", |v| Some(pick(v)?.jitter?.to_string()))?;
    }
    Ok(())
}

fn losses(sheet: &mut Sheet<'_>, pick: Pick) -> io::Result<()> {
    let any = |of: fn(&LatencyResult) -> u64| move |v: &VersionResult| pick(v).is_some_and(|l| of(l) > 0);
    let counted = |of: fn(&LatencyResult) -> u64| {
        move |v: &VersionResult| pick(v).map(of).map(|number| (number, count(number)))
    };
    sheet.watched_row("lost", |v| pick(v).map(lost), any(|l| l.lost))?;
    sheet.row_of_counts("of them late", |v| {
        let seen = pick(v).filter(|l| l.lost > 0 || !l.hides_losses())?;
        Some((seen.lost, count(seen.late)))
    })?;
    sheet.row_of_counts("fate unknown", counted(|l| l.unknown))?;
    sheet.row_of_counts("bad answers", counted(|l| l.bad))?;
    sheet.row("reordered / duplicate", |v| {
        pick(v).map(|l| format!("{} / {}", count(l.reordered), count(l.duplicates)))
    })?;
    sheet.row_of_counts("not sent", counted(|l| l.not_sent))?;
    sheet.row("requests", |v| pick(v).map(requests))?;
    sheet.watched_row("busiest core", |v| pick(v).and_then(busiest), |v| pick(v).is_some_and(is_busy))?;
    sheet.row("clock", |v| Some(pick(v)?.pedigree.clock.name().to_owned()))
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

/// "4.31 % (20 of 464)".
pub(super) fn lost(l: &LatencyResult) -> String {
    if l.hides_losses() {
        return "not seen over TCP".to_owned();
    }
    format!("{} ({} of {})", share(l.lost, l.settled()), count(l.lost), count(l.settled()))
}

fn requests(l: &LatencyResult) -> String {
    let sizes =
        l.response.map_or_else(|| l.payload.to_string(), |response| format!("{} for {response}", l.payload));
    let pace = match (l.depth, l.arrivals) {
        (Some(depth), _) if depth > 1 => format!("{depth} at a time"),
        _ if l.spacing.0 == 0 => "ping-pong".to_owned(),
        (_, Some(Arrivals::Poisson)) => format!("at random every {}", l.spacing),
        _ => format!("every {}", l.spacing),
    };
    format!("{} of {sizes}, {pace}", count(l.sent))
}
