//! Sockets, pacing, kernel timestamps and the drivers of engines: the only room that reads clocks.
//!
//! Two kinds of work live here. Methods whose product is *when* are engines, run over a
//! `ProbeSocket` by `driver`. Bulk transfer (`tcp`, `udp_stream`) is no engine: it is a tight loop
//! that is given a plan and shares counters. Linux comes first; elsewhere everything compiles and
//! what the system does not tell is absent, not wrong.
#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

pub mod absence;
#[cfg(target_os = "linux")]
mod ancillary;
pub mod clock;
pub mod driver;
pub mod handshake;
pub mod hop_socket;
pub mod instrument;
pub mod options;
pub mod pacer;
pub mod path_mtu;
pub mod priority;
pub mod probe_socket;
#[cfg(target_os = "linux")]
pub mod sent_ear;
#[cfg(unix)]
pub mod signals;
mod slices;
pub mod stamp;
pub mod stop;
pub mod tcp;
pub mod tcp_info;
pub mod thread;
pub mod timeout;
pub mod udp_stream;
pub mod volley;
pub mod zone;
