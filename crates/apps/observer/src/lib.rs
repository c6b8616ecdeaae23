//! The probe: captures, runs passive and active tasks, reports to a collector.
//!
//! It is told what to do by a collector ([`link`]), or on the command line ([`local`]), in the
//! terms of LMAP (RFC 7594). [`watch`] runs the passive tasks: one thread per interface reads
//! packets and shows them to the tasks, another closes periods, so that no packet waits for a table
//! to be read out. [`active`] runs tasks that send. What comes out goes into [`buffer`], on disk,
//! and stays there until the collector has it on its own; or, by [`export`], to collectors of
//! anybody's as IPFIX.

pub mod active;
pub mod buffer;
pub mod clock;
pub mod export;
pub mod ground;
pub mod link;
pub mod mail;
pub mod probe;
mod selections;
pub mod watch;

use netaware_units::{Span, Wall};

/// `span` after an instant of the wall clock. Labels and plans only: the clock may step in between.
pub(crate) fn after(at: Wall, span: Span) -> Wall {
    Wall(at.0.saturating_add(span.0))
}
