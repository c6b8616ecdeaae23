//! The one-line records of UDPmon and TCPmon: fields between semicolons, no heading, so that runs
//! can be gathered in a file. The user guide names the fields.

mod latency;
mod tcp;
mod udp;

use std::io::{self, Write};

use netaware_record::Record;

/// Whether records of this command have this form.
pub(crate) fn has_form(command: &str) -> bool {
    matches!(command, "udp" | "tcp" | "latency")
}

/// A line per result.
pub(super) fn record(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    for version in &record.versions {
        for result in &version.udp {
            writeln!(out, "{}", udp::line(record, version, result))?;
        }
        for result in &version.tcp {
            writeln!(out, "{}", tcp::line(result))?;
        }
        for result in version.latency.iter().chain(&version.latency_tcp) {
            writeln!(out, "{}", latency::line(result))?;
        }
    }
    Ok(())
}
