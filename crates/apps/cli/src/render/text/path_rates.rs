//! Capacity and available bandwidth.

use std::io;

use netaware_record::{Direction, PathMetric, PathRate, PathUse, RateBound, RateMode, VersionResult};
use netaware_units::BitRate;

use super::{Sheet, pedigree};
use crate::render::figures::{count, percent, share};

pub(super) fn section(sheet: &mut Sheet<'_>, metric: PathMetric, direction: Direction) -> io::Result<()> {
    let is_it = move |r: &&PathRate| r.metric == metric && r.pedigree.direction == direction;
    let of = move |v: &VersionResult| v.path_rates.iter().find(is_it).cloned();
    let results: Vec<&PathRate> = sheet.versions.iter().flat_map(|v| &v.path_rates).filter(is_it).collect();
    if results.is_empty() {
        return Ok(());
    }
    let title = format!("{} {}", metric.name(), direction.name()).to_uppercase();
    sheet.table.section(&title)?;
    sheet.row("rate of IP packets", |v| of(v).map(|r| headline(&r)))?;
    sheet.row("interval", |v| {
        let result = of(v)?;
        let rate = result.rate.filter(|_| result.bound == RateBound::None)?;
        Some(format!("{} .. {}", bits(rate.lo), bits(rate.hi)))
    })?;
    sheet.row("tight link", |v| {
        let tight = of(v)?.tight_link?;
        let c = &tight.capacity;
        Some(format!("{} ({} .. {}), fit {:.2}", bits(c.estimate), bits(c.lo), bits(c.hi), tight.fit))
    })?;
    if sheet.is_full() {
        // A bound stays one whatever layer it is told of.
        let bounded = |result: &PathRate, rate: BitRate| match result.bound {
            RateBound::None => rate.to_string(),
            RateBound::AtLeast => format!("at least {rate}"),
            RateBound::AtMost => format!("at most {rate}"),
        };
        sheet.row("as UDP payload", |v| of(v).and_then(|r| Some(bounded(&r, r.payload?))))?;
        sheet.row("on Ethernet", |v| of(v).and_then(|r| Some(bounded(&r, r.ethernet?))))?;
        let most = results.iter().map(|result| result.modes.len()).max().unwrap_or(0);
        for place in 0..most.min(MOST_MODES) {
            let label = if place == 0 { "modes, share of pairs" } else { "" };
            sheet.row(label, |v| Some(mode(of(v)?.modes.get(place)?)))?;
        }
    }
    sheet.row("method", |v| Some(of(v)?.pedigree.method))?;
    sheet.row("packets", |v| {
        let r = of(v)?;
        let lost = r.packets.saturating_sub(r.received);
        let lost = if lost > 0 { format!(", {} lost", share(lost, r.packets)) } else { String::new() };
        Some(format!("{} up to {} B{lost}", count(r.packets), r.packet))
    })?;
    sheet.row("sent, over time", |v| of(v).map(|r| format!("{} in {}", r.bytes, r.took)))?;
    sheet.row("mean load", |v| {
        let r = of(v)?;
        Some(format!("{}{}", r.load, share_of_rate(&r).unwrap_or_default()))
    })?;
    for result in &results {
        for remark in &result.remarks {
            let name = result.pedigree.version.name();
            sheet.table.remark(&format!("{name}: "), remark)?;
        }
    }
    let told: Vec<_> = results.iter().map(|r| (&r.pedigree, &r.health)).collect();
    pedigree::remarks(sheet, &told)
}

/// What the figures of a direction say together, in a paragraph for each version.
pub(super) fn verdicts(sheet: &mut Sheet<'_>, direction: Direction) -> io::Result<()> {
    let uses: Vec<(&str, &PathUse)> = sheet
        .versions
        .iter()
        .flat_map(|v| v.path_use.iter().map(|path| (v.version.name(), path)))
        .filter(|(_, path)| path.direction == direction)
        .collect();
    if uses.is_empty() {
        return Ok(());
    }
    sheet.table.section(&format!("path {}", direction.name()).to_uppercase())?;
    for (name, path) in uses {
        sheet.table.remark(&format!("{name}: "), &path.because)?;
    }
    Ok(())
}

/// "97.5 Mbit/s", "at least 97.5 Mbit/s", "at most 97.5 Mbit/s", "not known"; and whose sending
/// sets the figure, where that is a host's.
fn headline(result: &PathRate) -> String {
    match (&result.rate, result.bound) {
        (None, _) => "not known".to_owned(),
        (Some(rate), RateBound::None) => bits(rate.estimate),
        (Some(rate), RateBound::AtLeast) if result.flags.iter().any(|flag| flag == "host_limited") => {
            let whose = match result.pedigree.direction {
                Direction::Reverse => "the responder's",
                Direction::Forward | Direction::RoundTrip => "this host's",
            };
            format!("at least {} ({whose} sending is the limit)", bits(rate.lo))
        }
        (Some(rate), RateBound::AtLeast) => format!("at least {}", bits(rate.lo)),
        (Some(rate), RateBound::AtMost) => format!("at most {}", bits(rate.hi)),
    }
}

/// ", 7.9 % of the rate", and of a lower bound how much of the rate it is at most.
fn share_of_rate(result: &PathRate) -> Option<String> {
    let rate = result.rate.as_ref()?;
    let (least, at_most) = match result.bound {
        RateBound::None => (rate.estimate, ""),
        RateBound::AtLeast => (rate.lo, "at most "),
        RateBound::AtMost => return None,
    };
    (least > 0.0).then(|| format!(", {at_most}{} of the rate", percent(result.load.0 as f64 / least)))
}

/// "97.5 Mbit/s, 41 %, taken".
fn mode(mode: &RateMode) -> String {
    let middle = BitRate(mode.lo.0.midpoint(mode.hi.0));
    let taken = if mode.chosen { ", taken" } else { "" };
    format!("{middle}, {:.0} %{taken}", mode.share * 100.0)
}

fn bits(rate: f64) -> String {
    BitRate(rate.max(0.0) as u64).to_string()
}

/// The record has more; the emptiest decide nothing.
const MOST_MODES: usize = 4;
