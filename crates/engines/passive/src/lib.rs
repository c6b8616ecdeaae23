//! Packets in; digests, volumes, round-trip times, capacities, and joins of several points out.
//!
//! Pure: time comes with the packets, nothing here reads a clock, opens a file or starts a thread. Everything that packets can
//! make grow has a bound, and what was left out because of it is counted.
//!
//! | question | module |
//! |---|---|
//! | which packet is this, at every point of the network? | [`digest`] |
//! | how many packets and bytes, of whom? | [`volume`] |
//! | how long does an answer take? | [`rtt`] |
//! | how many of a marked block came through? | [`marking`] |
//! | how fast is the narrow link that this traffic came through? | [`capacity`] |
//! | does a filter of tcpdump's language match? | [`filter`] |
//! | how does the rate change, how large are packets, who talks most? | [`traffic`] |

pub mod clock;
pub mod join;

use netaware_units::Wall;
use netaware_wire::packet::Packet;

pub mod capacity;
mod delays;
pub mod digest;
pub mod filter;
mod flow;
#[cfg(test)]
mod made_up;
pub mod marking;
pub mod rtt;
mod seed;
pub mod traffic;
pub mod volume;
mod watch;

pub use delays::Delays;
pub use seed::{Key, Seed, SeedError};
pub use watch::{Found, Link, TaskError, Watch, watch};

/// A packet and when it was seen.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The capture's stamp, by the wall clock of the host.
    pub at: Wall,
    /// Which way it went: `true` when the interface sent it, as far as the capture knows.
    pub outgoing: bool,
    /// Whether it stands for several packets that offloads merged, as far as the capture knows.
    pub merged: bool,
    /// What was seen.
    pub packet: Packet<'a>,
    /// The frame it came in, link layer first, as far as captured; VLAN tags are where they were on the wire.
    pub frame: &'a [u8],
}
