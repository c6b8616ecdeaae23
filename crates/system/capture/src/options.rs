//! What to capture, and how.

use netaware_units::{ByteCount, ClockSource, Span};

/// What to capture, and how. [`Options::new`] gives what suits most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Name of the interface.
    pub interface: String,
    /// In tcpdump's language, compiled by libpcap; `None`: everything.
    pub filter: Option<String>,
    /// Bytes kept of each frame, link layer included, 1..=262,144.
    pub snap: u32,
    /// Memory of the ring. What comes while it is full is lost and counted: 32 MiB hold about 0.1 s
    /// of a million packets a second.
    pub ring: ByteCount,
    /// Packets are handed over at the latest after this, 1 ms at least; a block of the ring that is
    /// full earlier is handed over then. Stamps are not affected.
    pub retire: Span,
    /// Also what is addressed to others.
    pub promiscuous: bool,
    /// Which way.
    pub direction: Direction,
    /// [`ClockSource::Kernel`], or [`ClockSource::Nic`] to have the card stamp what it receives;
    /// what it sends has the kernel's stamp, which each frame tells. A card that does not stamp is
    /// refused.
    pub stamps: ClockSource,
    /// What to do about offloads that merge packets.
    pub merging: Merging,
}

impl Options {
    /// Everything on this interface, both ways, 256 bytes of each packet, a ring of 32 MiB.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            filter: None,
            snap: 256,
            ring: ByteCount(32 << 20),
            retire: Span::from_millis(50),
            promiscuous: false,
            direction: Direction::Both,
            stamps: ClockSource::Kernel,
            merging: Merging::Count,
        }
    }
}

/// Which packets of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Those that it received.
    In,
    /// Those that it sent.
    Out,
    /// All. On loopback, where each passes twice, those received.
    #[default]
    Both,
}

/// What to do about offloads that make one frame of several packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merging {
    /// Take what comes and count the merged frames.
    #[default]
    Count,
    /// Do not open while such an offload is switched on: for digests that another point must see as
    /// well.
    Refuse,
}

/// How several captures share the packets of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// Both directions of a flow go to the same one.
    #[default]
    Flow,
    /// By the core that received them.
    Core,
    /// In turn.
    Turn,
}
