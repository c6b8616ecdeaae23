//! Packets in; digests, volumes, round-trip times, capacities, and joins of several points out.
//!
//! Pure: time comes with the packets, nothing here reads a clock, opens a file or starts a thread.
//! Everything that packets can make grow has a bound, and what was left out because of it is
//! counted.
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
    /// Packets that it stands for: more than 1 where offloads merged them, as far as the capture
    /// knows.
    pub segments: u16,
    /// What was seen.
    pub packet: Packet<'a>,
    /// The frame it came in, link layer first, as far as captured; VLAN tags are where they were on
    /// the wire.
    pub frame: &'a [u8],
}

impl Observed<'_> {
    /// Whether it is several packets that offloads merged: no other point sees it like this.
    pub fn is_merged(&self) -> bool {
        self.segments > 1
    }

    /// Bytes from the IP header on of all packets that it stands for: each has the headers that the
    /// merged one has once.
    #[inline]
    pub fn length(&self) -> u64 {
        let length = u64::from(self.packet.length);
        if self.segments > 1 { length + self.repeated_headers() } else { length }
    }

    #[cold]
    fn repeated_headers(&self) -> u64 {
        let transport = self.packet.tcp().map_or(8, |tcp| u64::from(tcp.header_length));
        (self.packet.transport as u64 + transport) * u64::from(self.segments - 1)
    }
}
