//! IPFIX (RFC 7011) and PSAMP (RFC 5476): what probes report to collectors, ours and other
//! people's.
//!
//! Reading order: [`message`] cuts and writes messages and sets, [`template`] says what records
//! look like, [`time`] what their times mean, [`element`] numbers what can stand in them.
//! [`reader`] keeps what one exporter has announced and hands out its records; [`meaning`] makes
//! packets, flows and delays of those, [`emitter`] makes messages of ours. [`sightings`] is the one
//! batch that our own probes send: self-contained, as a file is (RFC 5655).
//!
//! Everything that comes is hostile: tables are bounded, nothing panics, what cannot be used is
//! counted by cause and the rest goes on. docs/ipfix.md has the tables of what we send and read.

pub mod element;
pub mod emitter;
pub mod meaning;
pub mod message;
pub mod reader;
pub mod sightings;
pub mod template;
pub mod time;

pub use emitter::Emitter;
pub use meaning::{Found, Interpreter};
pub use message::{HEADER_LEN, Header, MAX_MESSAGE, MessageError, Writer};
pub use reader::{Counts, DataRecord, Limits, Reader, Transport};
pub use template::{Field, Template};

/// Port of collectors, TCP and UDP (RFC 7011 §10.2, §10.4).
pub const PORT: u16 = 4739;
/// Port of collectors with TLS over TCP (RFC 7011 §11.1).
pub const PORT_TLS: u16 = 4740;
