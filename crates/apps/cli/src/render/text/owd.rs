//! One-way delay and loss: each way, then what both share, then the clocks.

use std::io;

use netaware_record::{DelaySummary, OwdClock, OwdResult, OwdWay, VersionResult};
use netaware_units::Span;

use super::{Sheet, pedigree};
use crate::render::figures::{count, mean_and_sd, percent, signed};

/// One of the two ways.
type Pick = fn(&OwdResult) -> &OwdWay;

pub(super) fn section(sheet: &mut Sheet<'_>) -> io::Result<()> {
    if sheet.versions.iter().all(|v| v.owd.is_none()) {
        return Ok(());
    }
    way(sheet, "ONE WAY UP", |owd| &owd.forward)?;
    way(sheet, "ONE WAY DOWN", |owd| &owd.reverse)?;
    both(sheet)?;
    clocks(sheet)?;
    let results: Vec<_> = sheet.versions.iter().filter_map(|v| v.owd.as_ref()).collect();
    let told: Vec<_> = results.iter().map(|r| (&r.pedigree, &r.health)).collect();
    pedigree::remarks(sheet, &told)
}

fn way(sheet: &mut Sheet<'_>, title: &str, pick: Pick) -> io::Result<()> {
    sheet.table.section(title)?;
    let mut row = |label: &str, of: fn(&DelaySummary) -> Span| {
        sheet.row(label, |v| Some(of(pick(v.owd.as_ref()?).delay.as_ref()?).to_string()))
    };
    row("smallest", |d| d.min)?;
    row("p50", |d| d.p50)?;
    row("p95", |d| d.p95)?;
    row("p99", |d| d.p99)?;
    row("largest", |d| d.max)?;
    sheet.row("mean, sd", |v| pick(v.owd.as_ref()?).delay.map(|d| mean_and_sd(&d)))?;
    sheet.row("give or take", |v| Some(v.owd.as_ref()?.clock.as_ref()?.bound.to_string()))?;
    sheet.watched_row("below that", |v| below(pick(v.owd.as_ref()?)), |v| is_below(v, pick))?;
    sheet.row("variation, IPDV p95", |v| Some(pick(v.owd.as_ref()?).ipdv?.p95.to_string()))?;
    sheet.row("variation, PDV p95", |v| {
        let several = pick(v.owd.as_ref()?).pdv.filter(|delays| delays.count > 1)?;
        Some(several.p95.to_string())
    })?;
    let lossy = |v: &VersionResult| v.owd.as_ref().is_some_and(|owd| pick(owd).lost > 0);
    sheet.watched_row("lost", |v| v.owd.as_ref().map(|owd| lost(pick(owd))), lossy)?;
    sheet.row("reordered / duplicate", |v| {
        let way = pick(v.owd.as_ref()?);
        Some(format!("{} / {}", count(way.reordered), count(way.duplicates)))
    })?;
    sheet.row("routers", |v| pick(v.owd.as_ref()?).hops.map(|hops| hops.to_string()))?;
    sheet.row("arrived with DSCP", |v| pick(v.owd.as_ref()?).dscp.map(|dscp| dscp.to_string()))
}

fn is_below(v: &VersionResult, pick: Pick) -> bool {
    v.owd.as_ref().is_some_and(|owd| pick(owd).below_bound > 0)
}

/// Delays of which only that is known.
fn below(way: &OwdWay) -> Option<String> {
    let negative = match way.negative {
        0 => String::new(),
        n => format!(", {} negative and left out", count(n)),
    };
    (way.below_bound > 0).then(|| format!("{}{negative}", count(way.below_bound)))
}

fn lost(way: &OwdWay) -> String {
    match way.loss {
        Some(loss) => format!("{} ({})", count(way.lost), percent(loss)),
        None => format!("{} at least", count(way.lost)),
    }
}

fn both(sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.table.section("THERE AND BACK")?;
    let mut row = |label: &str, of: fn(&DelaySummary) -> Span| {
        sheet.row(label, |v| Some(of(v.owd.as_ref()?.rtt.as_ref()?).to_string()))
    };
    row("smallest round trip", |d| d.min)?;
    row("p50", |d| d.p50)?;
    row("p99", |d| d.p99)?;
    sheet.row("inside HOST p50, p99", |v| v.owd.as_ref()?.dwell.map(|d| format!("{}, {}", d.p50, d.p99)))?;
    let counted = |of: fn(&OwdResult) -> u64| {
        move |v: &VersionResult| v.owd.as_ref().map(of).map(|number| (number, count(number)))
    };
    sheet.row_of_counts("lost, way not known", counted(|owd| owd.lost_somewhere))?;
    sheet.row_of_counts("answered too late", counted(|owd| owd.late))?;
    sheet.row_of_counts("fate unknown", counted(|owd| owd.unknown))?;
    sheet.row_of_counts("not sent", counted(|owd| owd.not_sent))?;
    sheet.row("packets", |v| {
        let owd = v.owd.as_ref()?;
        Some(format!("{} of {}, every {}", count(owd.sent), owd.payload, owd.spacing))
    })
}

fn clocks(sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.table.section("CLOCKS")?;
    let clock = |v: &VersionResult| v.owd.as_ref()?.clock.clone();
    sheet.row("HOST's minus ours", |v| clock(v).map(|clock| signed(clock.offset)))?;
    sheet.row("HOST's gains", |v| {
        clock(v).filter(|clock| clock.skew_ppm != 0.0).map(|clock| format!("{:+.1} us/s", clock.skew_ppm))
    })?;
    sheet.row("known", |v| clock(v).map(|clock| known(&clock)))?;
    sheet.row("ours", |v| {
        clock(v).map(|clock| match clock.local.bound {
            Some(bound) => format!("synchronised, ±{bound}"),
            None => "not synchronised".to_owned(),
        })
    })?;
    sheet.row("HOST's", |v| clock(v).map(|clock| remote(&clock)))?;
    let doubtful = |v: &VersionResult| clock(v).is_some_and(|clock| !clock.doubts.is_empty());
    sheet.watched_row(
        "doubts",
        |v| clock(v).filter(|it| !it.doubts.is_empty()).map(|it| doubts(&it)),
        doubtful,
    )
}

fn known(clock: &OwdClock) -> String {
    match clock.method.as_str() {
        "same_host" => "both are one clock".to_owned(),
        "clock_daemons" => "by what both say of themselves".to_owned(),
        _ => "by exchanges, ways taken as alike".to_owned(),
    }
}

fn remote(clock: &OwdClock) -> String {
    let by = match clock.remote_source.as_deref() {
        None | Some("nothing") => String::new(),
        Some(source) => format!(" by {}", source.to_uppercase()),
    };
    if clock.remote_synchronised {
        format!("synchronised{by}, ±{}", clock.remote_error)
    } else {
        "not synchronised".to_owned()
    }
}

fn doubts(clock: &OwdClock) -> String {
    let words: Vec<&str> = clock
        .doubts
        .iter()
        .map(|doubt| match doubt.as_str() {
            "contradicted" => "what they say cannot both be right",
            "stepped" => "one was set meanwhile",
            other => other,
        })
        .collect();
    words.join(", ")
}
