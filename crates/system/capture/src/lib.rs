//! Packets from interfaces and files, every loss counted.
//!
//! [`Capture`] reads an interface through a ring that the kernel fills (Linux, `AF_PACKET` with
//! `TPACKET_V3`): packets come with the kernel's stamp in ns, are chosen by a [`filter`] that runs
//! there, and those that found no room are counted. [`FileSource`] reads pcap and pcapng files.
//! Both show [`Frame`]s, whose packets [`netaware_wire::packet`] reads.
//!
//! What a capture cannot see it says: packets that offloads merged ([`Frame::segments`],
//! [`Offloads`]), packets that the kernel or the card lost before the ring ([`Counts`]), time in
//! which the interface was down.
//!
//! Needs `CAP_NET_RAW` to open; [`drop_privileges`] gives it back, and everything goes on without.
#![expect(
    unsafe_code,
    reason = "system calls, a ring shared with the kernel, libpcap; each block says why it is sound"
)]

mod backlog;
mod capture;
mod counts;
mod file;
pub mod filter;
mod frame;
mod link_watch;
mod offload;
mod options;
mod privileges;
mod ring;
mod slot;
mod socket;
mod tagged;

pub use capture::{Capture, OpenError, ReadError, stamp_by_nic};
pub use counts::Counts;
pub use file::{FileOpenError, FileSource, FileSourceError};
pub use frame::Frame;
pub use offload::Offloads;
pub use options::{Direction, Merging, Options, Spread};
pub use privileges::{DropError, Keep, drop_capabilities, drop_privileges, is_root};
