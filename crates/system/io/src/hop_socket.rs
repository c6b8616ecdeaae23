//! Probes that are meant to end on the way, and the ICMP errors that tell where they did.
//!
//! UDP probes need no privilege: with `IP_RECVERR` the kernel itself matches ICMP errors to the
//! socket, by the ports that they quote, and hands them over with the stamp of their arrival. Each
//! datagram has its TTL in a control message and its number at the head of its payload, so that
//! ports and flow label never change. Echoes need an unprivileged ICMP socket
//! (`net.ipv4.ping_group_range`) or `CAP_NET_RAW`; without either they are absent and UDP does what
//! it can. ICMP timestamps need `CAP_NET_RAW`: unprivileged sockets send nothing but echoes.
//!
//! Departures are the application's readings just before the system call: they lean early by the
//! way through the kernel, some microseconds that hardly depend on the size, so that slopes over
//! size do not notice.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;

use std::net::SocketAddr;

use netaware_path::hops::{Round, RoundReport};

use crate::options::{ConnectError, SocketOptions};
use crate::stop::StopFlag;
use crate::zone::ZonedIp;

#[cfg(target_os = "linux")]
use linux::System;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Queue, receive, set};
#[cfg(not(target_os = "linux"))]
use portable::System;

/// Sends rounds of probes to one destination.
#[derive(Debug)]
pub struct HopSocket {
    system: System,
}

/// Whether echoes can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EchoAccess {
    /// Yes.
    Granted,
    /// No, and this is what the system says.
    Refused(String),
}

/// What went by unused, or was made up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Errors that quote too little of the packet to tell which it was.
    pub unmatched: u64,
    /// Arrivals without a stamp of the kernel: the application's leans late.
    pub unstamped: u64,
    /// Datagrams with which somebody at the probed port answered.
    pub talked: u64,
    /// Why the last probe that never left did not (errno).
    pub refused: Option<i32>,
    /// Probes of which this host itself said that nobody on its own link answers for the
    /// destination or the next router: ARP or neighbour discovery had no answer.
    pub no_neighbour: u64,
    /// Timestamp replies that do not repeat what they were asked: made up, or of an earlier run.
    pub forged: u64,
}

impl HopSocket {
    /// Sockets towards `destination`; UDP goes to its port.
    ///
    /// # Errors
    /// There is no way to it, an option is refused, or the system has no error queues.
    pub fn open(destination: SocketAddr, options: &SocketOptions) -> Result<Self, ConnectError> {
        Ok(Self { system: System::open(destination, options)? })
    }

    /// Whether echoes can be sent.
    pub fn echo(&self) -> &EchoAccess {
        self.system.echo()
    }

    /// Whether ICMP timestamps can be sent: over IPv4, with `CAP_NET_RAW`.
    pub fn timestamps(&self) -> bool {
        self.system.timestamps()
    }

    /// The MTU that the host knows for the way there.
    pub fn mtu(&self) -> Option<u32> {
        self.system.mtu()
    }

    /// The host's own address on that way.
    pub fn local(&self) -> Option<ZonedIp> {
        self.system.local()
    }

    /// What went wrong so far.
    pub fn counts(&self) -> HopCounts {
        self.system.counts()
    }

    /// Sends a round and waits as it says; what has not been sent when `stop` is raised has not
    /// left.
    pub fn run(&mut self, round: &Round, stop: &StopFlag) -> RoundReport {
        self.system.run(round, stop)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
