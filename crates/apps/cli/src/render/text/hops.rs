//! A row per hop, one table for each IP version.

use std::io::{self, Write};

use netaware_record::{Hop, HopCapacity, HopTrain, HopsResult, RateBound, VersionResult, printable};
use netaware_units::{BitRate, Span};

use super::pedigree::{Sender, faults_alone};
use crate::render::figures::{NONE, count, percent, significant};
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

/// Columns of number and address, and of the figures behind them; 79 in all.
const LABELS: [usize; 2] = [5, 17];
const FIGURES: [usize; 6] = [6, 9, 9, 9, 9, 15];
const HEADINGS: [&str; 6] = ["loss", "min RTT", "median", "queues", "Mbit/s", "interval"];

/// Writes the tables of all versions that have one.
pub(super) fn write(out: &mut dyn Write, versions: &[&VersionResult], paint: Paint) -> io::Result<()> {
    let mut any = false;
    for version in versions {
        if let Some(hops) = &version.hops {
            table(out, version, hops, paint)?;
            any = true;
        }
    }
    if any {
        let how = "Round trips of the smallest packets; queues: median of what round trips took beyond the smallest \
                   of their size, there and back up to the hop; Mbit/s: capacity of the link in front of the hop with \
                   its 95 % interval, per byte of IP packet; * never answered, > at least.";
        writeln!(out, "\n{}", paint.faint(&paragraph("    ", how)))?;
    }
    Ok(())
}

fn table(out: &mut dyn Write, version: &VersionResult, result: &HopsResult, paint: Paint) -> io::Result<()> {
    let mut heading = padded(&format!("HOPS {}", version.version.name()), LABELS.iter().sum());
    heading.extend(HEADINGS.iter().zip(FIGURES).map(|(name, width)| right(name, width)));
    writeln!(out, "\n{}", paint.heading(&heading))?;
    for hop in &result.hops {
        row(out, hop, paint)?;
    }
    for remark in &result.remarks {
        writeln!(out, "{}", paint.caution(&paragraph("  ! ", remark)))?;
    }
    if let Some(hop) = result.choke_point {
        let rate = result.hops.iter().find(|it| it.ttl == hop).and_then(|it| it.train);
        let rate = rate.map(|train| format!(", to {}", bits(train.rate))).unwrap_or_default();
        let text = format!("choke point: hop {hop} stretches trains of packets last{rate}");
        writeln!(out, "{}", paragraph("    ", &text))?;
    }
    let sent = format!(
        "sent: {} packets up to {} B, {} in {}, mean load {}",
        count(result.packets),
        result.packet,
        result.bytes,
        result.took,
        result.load
    );
    writeln!(out, "{}", paragraph("    ", &sent))?;
    match faults_alone(&result.health, Sender::ThisHost) {
        faults if faults.is_empty() => Ok(()),
        faults => writeln!(out, "{}", paint.faint(&paragraph("    instrument: ", &faults))),
    }
}

fn row(out: &mut dyn Write, hop: &Hop, paint: Paint) -> io::Result<()> {
    let address = hop.addresses.first().map_or_else(|| "*".to_owned(), |address| printable(address));
    let number = right(&hop.ttl.to_string(), LABELS[0] - 2) + "  ";
    let mut line = number.clone();
    if address.chars().count() < LABELS[1] {
        line.push_str(&padded(&address, LABELS[1]));
    } else {
        // Long addresses have a line of their own.
        writeln!(out, "{number}{address}")?;
        line = " ".repeat(LABELS.iter().sum());
    }
    line.extend(figures(hop).iter().zip(FIGURES).map(|(text, width)| right(text, width)));
    writeln!(out, "{}", line.trim_end())?;
    for also in hop.addresses.iter().skip(1) {
        writeln!(out, "{}also {}", " ".repeat(LABELS[0]), printable(also))?;
    }
    for remark in remarks(hop) {
        writeln!(out, "{}", paint.faint(&paragraph("       ", &remark)))?;
    }
    Ok(())
}

fn figures(hop: &Hop) -> [String; 6] {
    let time = |span: Option<Span>| span.map_or_else(|| NONE.to_owned(), |span| span.to_string());
    let queues = hop.queueing.map(|queueing| queueing.median);
    let (rate, interval) = hop.capacity.as_ref().map_or((NONE.to_owned(), String::new()), capacity);
    let loss = hop.loss.map_or_else(|| NONE.to_owned(), |loss| percent(loss).replace(' ', ""));
    [loss, time(hop.rtt_min), time(hop.rtt_median), time(queues), rate, interval]
}

fn capacity(of: &HopCapacity) -> (String, String) {
    let mbits = |rate: f64| four(rate / 1e6);
    match of.bound {
        RateBound::None => (mbits(of.rate.estimate), format!("{}..{}", mbits(of.rate.lo), mbits(of.rate.hi))),
        RateBound::AtLeast => (format!("> {}", significant(of.rate.lo / 1e6)), String::new()),
        RateBound::AtMost => (format!("< {}", significant(of.rate.hi / 1e6)), String::new()),
    }
}

/// Four digits that count: "9.987", "99.87", "998.7", "9987".
fn four(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return NONE.to_owned();
    }
    let decimals = (3.0 - value.log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{value:.decimals$}")
}

fn remarks(hop: &Hop) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(capacity) = &hop.capacity {
        if capacity.from < hop.ttl {
            remarks.push(format!("the capacity is that of hops {} to {} together", capacity.from, hop.ttl));
        }
        remarks.extend(segments(&capacity.segments, hop.train));
    }
    // The star says it.
    let flags = hop.flags.iter().zip(&hop.remarks).filter(|(flag, _)| *flag != "silent");
    remarks.extend(flags.map(|(_, remark)| remark.clone()));
    remarks
}

/// "trains pass at 98.5 Mbit/s, faster than one link of this capacity carries them: consistent
/// with two 100 Mbit/s segments and a layer-2 device between them".
fn segments(rates: &[f64], train: Option<HopTrain>) -> Option<String> {
    let first = *rates.first()?;
    let all = if rates.iter().all(|rate| (rate - first).abs() < 1.0) {
        let number = ["no", "one", "two", "three", "four"].get(rates.len()).copied().unwrap_or("several");
        format!("{number} {} segments", short(first))
    } else {
        let names: Vec<String> = rates.iter().map(|rate| short(*rate)).collect();
        format!("segments of {}", names.join(" and "))
    };
    let pass = train.map(|train| bits(train.rate));
    // Records of older versions have segments that no train was evidence of.
    let pass = pass.map_or_else(
        || "one link of this capacity would read the same, but it is also".to_owned(),
        |rate| format!("trains pass at {rate}, faster than one link of this capacity carries them:"),
    );
    let between = if rates.len() > 2 { "layer-2 devices" } else { "a layer-2 device" };
    Some(format!("{pass} consistent with {all} and {between} between them"))
}

/// "100 Mbit/s", "2.5 Gbit/s".
fn short(rate: f64) -> String {
    if rate >= 1e9 { format!("{} Gbit/s", rate / 1e9) } else { format!("{} Mbit/s", rate / 1e6) }
}

fn bits(rate: f64) -> String {
    BitRate(rate.max(0.0) as u64).to_string()
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}
