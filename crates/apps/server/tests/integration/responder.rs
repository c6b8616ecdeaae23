//! A responder on loopback, spoken to by hand: raw sockets and the messages of the protocol, no
//! prober of ours.

mod browser;
mod channels;
mod crowd;
mod datagrams;
// Loopback has more addresses than one on Linux alone.
#[cfg(target_os = "linux")]
mod forged_sources;
mod header;
mod openings;
mod queue;
mod speaker;
mod transfers;
