//! UDP in one direction.

use std::io::{self, Write};

use netaware_record::{Direction, GapSummary, Record, UdpResult, VersionResult};

use super::tcp::{busiest, cores};
use super::{Sheet, bins, limit, pedigree};
use crate::render::Paint;
use crate::render::figures::{NONE, UNKNOWN, count, known, nanos, percent, share};

pub(super) fn section(sheet: &mut Sheet<'_>, direction: Direction) -> io::Result<()> {
    let of = move |v: &VersionResult| v.udp.iter().find(|r| r.pedigree.direction == direction).cloned();
    let results: Vec<&UdpResult> =
        sheet.versions.iter().flat_map(|v| &v.udp).filter(|r| r.pedigree.direction == direction).collect();
    if results.is_empty() {
        return Ok(());
    }
    sheet.table.section(&format!("UDP {}", direction.name().to_uppercase()))?;
    rates(sheet, &of)?;
    losses(sheet, &of)?;
    gaps(sheet, &of)?;
    let cpu =
        |r: &UdpResult| (r.sender.as_ref().and_then(|e| e.cpu), r.receiver.as_ref().and_then(|e| e.cpu));
    sheet.row("CPU, sender / receiver", |v| {
        let (sender, receiver) = cpu(&of(v)?);
        Some(cores(sender, receiver))
    })?;
    sheet.row("busiest core, each end", |v| {
        let (sender, receiver) = cpu(&of(v)?);
        busiest(sender, receiver)
    })?;
    limit::rows(sheet, "limited by", |v| {
        let here = v.udp.iter().filter(|r| r.pedigree.direction == direction);
        here.map(|r| (r.pedigree.version.name().to_owned(), &r.limit)).collect()
    })?;
    let told: Vec<_> = results.iter().map(|r| (&r.pedigree, &r.health)).collect();
    pedigree::remarks(sheet, &told)
}

fn rates(sheet: &mut Sheet<'_>, of: &impl Fn(&VersionResult) -> Option<UdpResult>) -> io::Result<()> {
    sheet.row("planned", |v| {
        let result = of(v)?;
        let rate = result.planned.map_or_else(|| "no limit".to_owned(), |rate| rate.to_string());
        Some(format!("{rate}, {} B", result.payload.0))
    })?;
    sheet.row("sent", |v| Some(shown(of(v)?.sent_rate)))?;
    sheet.row("received", |v| {
        let r = of(v)?;
        let is_measured = r.sent > 0 && r.loss.lost == r.sent;
        Some(if is_measured { "nothing".to_owned() } else { shown(r.goodput) })
    })?;
    if sheet.is_full() {
        sheet.row("received, on Ethernet", |v| {
            let wire = of(v)?.wire?;
            let cut = if wire.frames > 1 { format!(", {} frames", wire.frames) } else { String::new() };
            Some(format!("{}, {} B each{cut}", shown(wire.received), wire.bytes.0))
        })?;
        sheet.row("set-up, query repeats", |v| {
            let exchanges = of(v)?.exchanges;
            let (clearing, fetching) = (exchanges.clearing, exchanges.fetching);
            let any = clearing.max(fetching) > Some(0);
            any.then(|| format!("{} / {}", shown(clearing), shown(fetching)))
        })?;
    }
    sheet.row("datagrams per second", |v| Some(count(of(v)?.packets_per_second? as u64)))
}

fn shown<T: ToString>(figure: Option<T>) -> String {
    known(figure, |figure| figure.to_string())
}

fn losses(sheet: &mut Sheet<'_>, of: &impl Fn(&VersionResult) -> Option<UdpResult>) -> io::Result<()> {
    let lossy = |v: &VersionResult| of(v).is_some_and(|r| r.loss.lost > 0);
    sheet.watched_row(
        "lost",
        |v| {
            let r = of(v)?;
            let known = r.sent.saturating_sub(r.loss.unknown);
            if known == 0 && r.sent > 0 {
                return Some(UNKNOWN.to_owned());
            }
            Some(format!("{} ({} of {})", share(r.loss.lost, known), count(r.loss.lost), count(known)))
        },
        lossy,
    )?;
    sheet.row_of_counts("by network / by host", |v| {
        let r = of(v)?;
        let by = format!("{} / {}", known(r.loss.network, count), known(r.loss.host, count));
        Some((r.loss.lost, by))
    })?;
    if sheet.is_full() {
        sheet.row("loss, 95 % interval", |v| {
            of(v)?.loss.ratio.map(|i| format!("{} .. {}", percent(i.lo), percent(i.hi)))
        })?;
        sheet.row("longest run lost", |v| {
            let longest = of(v)?.receiver?.loss_runs.iter().map(|(length, _)| *length).max()?;
            Some(count(longest))
        })?;
    }
    sheet.row_of_counts("fate unknown", |v| {
        let r = of(v)?;
        Some((r.loss.unknown, format!("{} of {}", count(r.loss.unknown), count(r.sent))))
    })?;
    sheet.row_of_counts("not sent", |v| of(v)?.not_sent.map(|number| (number, count(number))))?;
    sheet.row("reordered / duplicate", |v| {
        let r = of(v)?;
        Some(format!("{} / {}", known(r.reordered, count), known(r.duplicates, count)))
    })?;
    if sheet.is_full() {
        let counted = |pairs: &[(u64, u64)]| {
            let shown = pairs.iter().take(MOST_LENGTHS).map(|(length, n)| format!("{length}: {}", count(*n)));
            let rest = if pairs.len() > MOST_LENGTHS { ", …" } else { "" };
            (!pairs.is_empty()).then(|| format!("{}{rest}", shown.collect::<Vec<_>>().join(", ")))
        };
        sheet.row("lost in runs of", |v| counted(&of(v)?.receiver?.loss_runs))?;
        sheet.row("late by packets", |v| counted(&of(v)?.receiver?.reorder_extents))?;
    }
    Ok(())
}

/// Different lengths of runs that are shown; the record has all.
const MOST_LENGTHS: usize = 6;

/// Those that were asked for.
pub(super) fn histograms(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    for version in &record.versions {
        for result in &version.udp {
            if let Some(histogram) = result.receiver.as_ref().and_then(|end| end.bins.as_ref()) {
                let way = result.pedigree.direction.name();
                let title = format!("time between arrivals, {} {way}", version.version.name());
                bins::write(out, &title, histogram, paint)?;
            }
        }
    }
    Ok(())
}

fn gaps(sheet: &mut Sheet<'_>, of: &impl Fn(&VersionResult) -> Option<UdpResult>) -> io::Result<()> {
    let sheet_full = sheet.is_full();
    let spread =
        |g: &GapSummary| format!("{}, {}", nanos(g.mean_ns), g.sd_ns.map_or_else(|| NONE.to_owned(), nanos));
    let tails = |g: &GapSummary| format!("{} / {} / {}", short(g.p1), short(g.p99), short(g.max));
    if sheet.is_full() {
        sheet.row("sent gap, planned", |v| Some(of(v)?.sender?.gaps?.planned?.to_string()))?;
        sheet.row("sent gap, mean, sd", |v| of(v)?.sender?.gaps.as_ref().map(spread))?;
        sheet.row("sent gap, p1/p99/max", |v| of(v)?.sender?.gaps.as_ref().map(tails))?;
    }
    sheet.row("arrival gap, mean, sd", |v| of(v)?.receiver?.gaps.as_ref().map(spread))?;
    sheet.row("arrival gap, p1/p99/max", |v| of(v)?.receiver?.gaps.as_ref().map(tails))?;
    sheet.row("bursts whole / broken", |v| {
        of(v)?.receiver?.bursts.map(|b| format!("{} / {}, {} each", count(b.whole), count(b.broken), b.size))
    })?;
    sheet.row("burst sent / arrived over", |v| {
        of(v)?.receiver?.bursts.map(|b| format!("{} / {}", b.sent_over, b.arrived_over.p50))
    })?;
    sheet.row("queue growth of a burst", |v| {
        of(v)?.receiver?.bursts.map(|b| format!("{} B, {}", count(b.queue_growth.0), b.extra))
    })?;
    sheet.row("delay over its minimum", |v| {
        // One alone is its own minimum.
        let d = of(v)?.receiver?.delay_variation.filter(|delays| delays.count > 1)?;
        sheet_full.then(|| format!("p50 {}, p99 {}", d.p50, d.p99))
    })?;
    sheet.row("jitter (RFC 3550)", |v| {
        let receiver = of(v)?.receiver?;
        receiver.jitter.filter(|_| receiver.gaps.is_some()).map(|jitter| jitter.to_string())
    })
}

fn short(span: netaware_units::Span) -> String {
    span.to_string().replace(' ', "")
}
