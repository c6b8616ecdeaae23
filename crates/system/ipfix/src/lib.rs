//! IPFIX over TCP, TLS and UDP (RFC 7011 §10): what `base/wire` reads and writes, on sockets.
//!
//! An [`Exporter`] sends rows to one collector, ours or anybody's, and survives its restarts. A
//! [`Listener`] takes messages of any number of exporters, bounded, and hands on what they mean.
//! Neither decides anything: which rows, and what becomes of them, is the business of who holds
//! them.

mod exporter;
mod listener;
mod target;

pub use exporter::{ExportCounts, ExportError, Exporter, Fill};
pub use listener::{Inlet, Inlets, ListenError, Listener, Options, Origin, Over, Sink, Totals};
pub use target::{Target, TargetError};
