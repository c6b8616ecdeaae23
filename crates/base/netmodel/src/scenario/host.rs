//! Reads `[host.a]` and `[host.b]`.

use netaware_record::IpVersion;
use netaware_units::Span;

use super::table::{Field, Table};
use super::{Clock, ClockStep, Coalescing, Host, ScenarioError, bounds};

/// Clocks may be this wrong.
const WRONG: Span = Span::from_secs(365 * 24 * 3600);

pub(super) fn hosts(root: &mut Table<'_>) -> Result<[Host; 2], ScenarioError> {
    let Some(field) = root.get("host") else { return Ok([Host::default(), Host::default()]) };
    let mut table = field.table()?;
    let a = table.read("a", |field| host(&field))?;
    let b = table.read("b", |field| host(&field))?;
    table.finish()?;
    Ok([a.unwrap_or_default(), b.unwrap_or_default()])
}

fn host(field: &Field<'_>) -> Result<Host, ScenarioError> {
    let mut table = field.table()?;
    let clock = table.read("clock", |field| clock(&field))?.unwrap_or_default();
    let receive = table.read("receive", |field| coalescing(&field))?;
    let versions = [("v4", IpVersion::V4), ("v6", IpVersion::V6)];
    let lacks = table.read("lacks", |field| field.word(&versions))?;
    table.finish()?;
    Ok(Host { clock, receive, lacks })
}

fn clock(field: &Field<'_>) -> Result<Clock, ScenarioError> {
    let mut table = field.table()?;
    let offset = table.read("offset", |field| field.signed_span(WRONG))?.unwrap_or_default();
    let skew = table.read("skew_ppm", |field| field.number(-100_000.0, 100_000.0))?.unwrap_or(0.0);
    let steps = table.read("steps", |field| steps(&field))?.unwrap_or_default();
    table.finish()?;
    Ok(Clock { offset, skew_ppb: (skew * 1000.0).round() as i64, steps })
}

fn steps(field: &Field<'_>) -> Result<Vec<ClockStep>, ScenarioError> {
    let mut steps: Vec<ClockStep> = Vec::new();
    for item in field.list(0, bounds::STEPS)? {
        let mut table = item.table()?;
        let at = table.need("at", "at = \"10s\"")?.span_up_to(Span::ZERO, bounds::INSTANT)?;
        let by = table.need("by", "by = \"-3ms\"")?.signed_span(WRONG)?;
        table.finish()?;
        if steps.last().is_some_and(|last| last.at >= at) {
            return Err(item.problem("is not later than the step before it", "steps sorted by time"));
        }
        steps.push(ClockStep { at, by });
    }
    Ok(steps)
}

fn coalescing(field: &Field<'_>) -> Result<Coalescing, ScenarioError> {
    let mut table = field.table()?;
    let period = table.need("period", "period = \"50us\"")?.span_up_to(Span::ZERO, Span::from_secs(1))?;
    let batch = table.read("batch", |field| field.integer(0..=65_536))?.unwrap_or(0) as u32;
    let most = Span::from_millis(1);
    let per_packet = table.read("per_packet", |field| field.span_up_to(Span::ZERO, most))?;
    table.finish()?;
    Ok(Coalescing { period, batch, per_packet: per_packet.unwrap_or_default() })
}
