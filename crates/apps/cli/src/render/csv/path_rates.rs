//! Columns of a capacity or an available bandwidth.

use netaware_record::PathRate;

use super::{Column, optional};

pub(super) const PATH_RATE: &[Column<PathRate>] = &[
    ("direction", |r| r.pedigree.direction.name().into()),
    ("metric", |r| r.metric.name().into()),
    ("method", |r| r.pedigree.method.clone()),
    ("rate_bps", |r| optional(r.rate.as_ref().map(|rate| rate.estimate.round()))),
    ("rate_lo_bps", |r| optional(r.rate.as_ref().map(|rate| rate.lo.round()))),
    ("rate_hi_bps", |r| optional(r.rate.as_ref().map(|rate| rate.hi.round()))),
    ("bound", |r| match r.bound {
        netaware_record::RateBound::None => String::new(),
        netaware_record::RateBound::AtLeast => "at_least".into(),
        netaware_record::RateBound::AtMost => "at_most".into(),
    }),
    ("payload_bps", |r| optional(r.payload.map(|rate| rate.0))),
    ("ethernet_bps", |r| optional(r.ethernet.map(|rate| rate.0))),
    ("packet_bytes", |r| r.packet.to_string()),
    ("packets", |r| r.packets.to_string()),
    ("received", |r| r.received.to_string()),
    ("bytes", |r| r.bytes.0.to_string()),
    ("took_ns", |r| r.took.0.to_string()),
    ("load_bps", |r| r.load.0.to_string()),
    ("tight_link_bps", |r| optional(r.tight_link.as_ref().map(|tight| tight.capacity.estimate.round()))),
    ("tight_link_fit", |r| optional(r.tight_link.as_ref().map(|tight| format!("{:.3}", tight.fit)))),
    ("flags", |r| r.flags.join(" ")),
];
