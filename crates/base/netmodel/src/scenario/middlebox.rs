//! Reads what stands in the way of some packets: outages, filters, rewriting of headers, NAT.

use netaware_record::IpVersion;
use netaware_units::Span;

use super::table::Field;
use super::{Filter, FilterAction, Nat, NatKind, Outage, Protocol, Rewrite, ScenarioError, bounds};

type Read<T> = Result<T, ScenarioError>;

pub(super) fn outages(field: &Field<'_>) -> Read<Vec<Outage>> {
    field.list(0, bounds::STEPS)?.iter().map(outage).collect()
}

fn outage(item: &Field<'_>) -> Read<Outage> {
    let mut table = item.table()?;
    let at = table.need("at", "at = \"10s\"")?.span_up_to(Span::ZERO, bounds::INSTANT)?;
    let some = Span::from_micros(1);
    let lasts = table.read("for", |field| field.span_up_to(some, bounds::INSTANT))?;
    let every = table.read("every", |field| field.span_up_to(some, bounds::INSTANT))?;
    table.finish()?;
    if every.is_some_and(|every| lasts.is_none_or(|lasts| lasts >= every)) {
        return Err(item.problem("begins again before it has ended", "for = \"2s\", shorter than every,"));
    }
    Ok(Outage { at, lasts, every })
}

pub(super) fn filters(field: &Field<'_>) -> Read<Vec<Filter>> {
    field.list(0, bounds::FILTERS)?.iter().map(filter).collect()
}

fn filter(item: &Field<'_>) -> Read<Filter> {
    let mut table = item.table()?;
    let versions = [("v4", IpVersion::V4), ("v6", IpVersion::V6)];
    let version = table.read("version", |field| field.word(&versions))?;
    let protocols = [("udp", Protocol::Udp), ("tcp", Protocol::Tcp), ("icmp", Protocol::Icmp)];
    let protocol = table.read("protocol", |field| field.word(&protocols))?;
    let port = table.read("port", |field| field.integer(1..=65_535))?.map(|port| port as u16);
    let longer_than = table.read("longer_than", |field| field.bytes(1, 65_535))?.unwrap_or(0) as u32;
    let ecn = table.read("ecn", |field| field.flag())?.unwrap_or(false);
    let after = table.read("after", |field| field.bytes(1, bounds::QUEUE_BYTES))?.unwrap_or(0);
    let actions = [("drop", 0), ("reset", 1), ("limit", 2)];
    let action = match table.need("action", "action = \"drop\"")?.word(&actions)? {
        0 => FilterAction::Drop,
        1 => FilterAction::Reset,
        _ => FilterAction::Limit {
            rate: table.need("rate", "rate = \"2Mbit/s\"")?.rate(bounds::SLOWEST, bounds::FASTEST)?,
            burst: table.need("burst", "burst = \"32kB\"")?.bytes(1500, bounds::QUEUE_BYTES)?,
        },
    };
    table.finish()?;
    if action == FilterAction::Reset && protocol != Some(Protocol::Tcp) {
        return Err(item.problem("resets what is not known to be TCP", "protocol = \"tcp\""));
    }
    if port.is_some() && protocol.is_none_or(|protocol| protocol == Protocol::Icmp) {
        return Err(item.problem("looks at a port", "protocol = \"tcp\" or \"udp\""));
    }
    Ok(Filter { version, protocol, port, longer_than, ecn, after, action })
}

pub(super) fn rewrite(field: &Field<'_>) -> Read<Rewrite> {
    let mut table = field.table()?;
    let dscp = table.read("dscp", |field| field.integer(0..=63))?.map(|dscp| dscp as u8);
    let clear_ecn = table.read("clear_ecn", |field| field.flag())?.unwrap_or(false);
    table.finish()?;
    Ok(Rewrite { dscp, clear_ecn })
}

pub(super) fn nat(field: &Field<'_>) -> Read<Nat> {
    let mut table = field.table()?;
    let kinds = [("nat44", NatKind::Nat44), ("nat64", NatKind::Nat64)];
    let kind = table.need("kind", "kind = \"nat44\"")?.word(&kinds)?;
    let some = Span::from_millis(1);
    let idle = table.need("idle", "idle = \"30s\"")?.span_up_to(some, bounds::IDLE)?;
    let tcp_idle = table.read("tcp_idle", |field| field.span_up_to(some, bounds::IDLE))?;
    let rebinds = table.read("rebinds", |field| instants(&field))?.unwrap_or_default();
    table.finish()?;
    // The least that RFC 5382 asks of a NAT.
    Ok(Nat { kind, idle, tcp_idle: tcp_idle.unwrap_or(Span::from_secs(7440)), rebinds })
}

fn instants(field: &Field<'_>) -> Read<Vec<Span>> {
    let mut instants: Vec<Span> = Vec::new();
    for item in field.list(0, bounds::STEPS)? {
        let at = item.span_up_to(Span::ZERO, bounds::INSTANT)?;
        if instants.last().is_some_and(|last| *last >= at) {
            return Err(item.problem("is not later than the instant before it", "a list sorted by time"));
        }
        instants.push(at);
    }
    Ok(instants)
}
