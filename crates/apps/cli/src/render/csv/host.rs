//! Columns of what a host can probe: one line per way and packet size.

use netaware_record::{HonestRate, HostAbility};

use super::Column;

/// Its records have no IP versions.
pub(super) const COMMAND: &str = "host";

pub(super) fn names() -> Vec<&'static str> {
    super::names(HONEST)
}

pub(super) fn fields(ability: &HostAbility) -> Vec<Vec<String>> {
    ability.honest.iter().map(|row| super::fields(HONEST, row)).collect()
}

const HONEST: &[Column<HonestRate>] = &[
    ("way", |r| r.way.clone()),
    ("methods", |r| r.methods.join(" ")),
    ("packet_bytes", |r| r.packet.to_string()),
    ("error", |r| r.error.to_string()),
    ("rate_bps", |r| r.rate.0.to_string()),
    ("limited_by", |r| r.limited_by.by.clone()),
    ("because", |r| r.limited_by.because.clone()),
];
