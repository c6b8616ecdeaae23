//! Who measured what, when, and between which hosts.

use std::io::{self, Write};

use netaware_record::{HostInfo, Outcome, Record};

use crate::render::figures::instant;
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::wrap::WIDTH;

pub(super) fn write(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    writeln!(out, "{}", paint.heading(&title(record)))?;
    writeln!(out, "{}", paragraph("  prober     ", &host(&record.prober)))?;
    if let Some(responder) = &record.responder {
        writeln!(out, "{}", paragraph("  responder  ", &host(responder)))?;
    }
    writeln!(out, "{}", paragraph("  path       ", &way(record)))?;
    if record.request.own_responder {
        writeln!(out, "             measured against netaware's own responder on this host")?;
    }
    if let Some(label) = &record.label {
        writeln!(out, "{}", paragraph("  label      ", label))?;
    }
    if let Some(series) = &record.series {
        let of = if series.planned > 0 { format!(" of {}", series.planned) } else { String::new() };
        let values: Vec<String> =
            series.point.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        let text = format!("{}, point {}{of}{}", series.id, series.index + 1, values.concat());
        writeln!(out, "{}", paragraph("  series     ", &text))?;
    }
    let ended = match record.outcome {
        Outcome::Complete => "",
        Outcome::Interrupted => ", interrupted: the figures hold for the shorter time",
        // A phase that failed does not end the others.
        Outcome::Failed if record.is_measured() => "; part of it failed",
        Outcome::Failed => ", ended early by a failure",
    };
    writeln!(out, "{}", paragraph("  took       ", &format!("{}{ended}", record.elapsed)))
}

/// The command to the left, the time to the right.
pub(super) fn title(record: &Record) -> String {
    let host = if record.request.own_responder { "loopback" } else { record.request.host.as_str() };
    let at = instant(&record.started_at_utc);
    let room = WIDTH.saturating_sub(at.chars().count() + 2);
    let what = format!("netaware {} {host}", record.command);
    let what = netaware_record::excerpt(&what, room);
    let what = what.trim_end();
    let gap = WIDTH.saturating_sub(what.chars().count() + at.chars().count());
    format!("{what}{}{at}", " ".repeat(gap))
}

pub(super) fn host(host: &HostInfo) -> String {
    let cores = match (host.cores, host.cpu.as_str()) {
        (0, cpu) => cpu.to_owned(),
        (n, "") => format!("{n} cores"),
        (n, cpu) => format!("{n} x {cpu}"),
    };
    let parts = [host.name.as_str(), &host.kernel, &cores, &host.virtualisation];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn way(record: &Record) -> String {
    let addresses: Vec<&str> = record.versions.iter().filter_map(|v| v.address.as_deref()).collect();
    let nics = record.prober.nics.iter().map(|nic| {
        let driver = if nic.driver.is_empty() { String::new() } else { format!("{}, ", nic.driver) };
        format!("{} ({driver}MTU {})", nic.name, nic.mtu)
    });
    let nics = nics.collect::<Vec<_>>().join(" and ");
    let from = if nics.is_empty() { String::new() } else { format!("{nics} to ") };
    let to = if addresses.is_empty() { record.request.host.clone() } else { addresses.join(" and ") };
    format!("{from}{to}, port {}", record.request.port)
}
