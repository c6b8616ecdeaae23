//! What the system tells about itself.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fact;

/// What the system tells, read when the record was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostFacts {
    /// Clock source of the kernel: "tsc", "kvm-clock", "hpet".
    pub clock_source: Fact<String>,
    /// The others that it could take.
    pub clock_sources: Vec<String>,
    /// How the wall clock is kept right.
    pub steering: Fact<ClockSteering>,
    /// Clocks of network cards (PTP).
    pub hardware_clocks: Fact<Vec<HardwareClock>>,
    /// Share of CPU time that the hypervisor withheld since the system started, 0..=1.
    pub steal_since_boot: Fact<f64>,
    /// Limits of socket buffers.
    pub socket_buffers: SocketBuffers,
    /// Congestion controls.
    pub congestion: CongestionControls,
    /// Interfaces.
    pub interfaces: Vec<InterfaceFacts>,
}

/// The kernel's view of who steers the wall clock (`adjtimex`), usually over NTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClockSteering {
    /// Somebody says that it is right.
    pub synchronised: bool,
    /// What the steering program believes to be wrong by, as it told the kernel.
    pub estimated_error: Span,
    /// Bound of the error by the same program; the kernel lets it grow by 500 us a second without
    /// news.
    pub maximum_error: Span,
    /// How far the rate is bent, parts per 10^9.
    pub frequency_ppb: i64,
}

/// A clock of a network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HardwareClock {
    /// "/dev/ptp0".
    pub device: String,
    /// What the driver calls it.
    pub name: String,
    /// By how much it is ahead of the wall clock. A card that keeps TAI is some 37 s ahead.
    pub ahead: Fact<Span>,
    /// Half of the time that it took to read both: the error of `ahead`.
    pub error: Fact<Span>,
}

/// Limits of socket buffers, bytes of kernel memory: payload fills a half or less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SocketBuffers {
    /// Of a new UDP socket (`net.core.rmem_default`).
    pub receive_default: Fact<ByteCount>,
    /// Most that may be asked for without privilege (`net.core.rmem_max`).
    pub receive_max: Fact<ByteCount>,
    /// Of a new UDP socket (`net.core.wmem_default`).
    pub send_default: Fact<ByteCount>,
    /// Most that may be asked for without privilege (`net.core.wmem_max`).
    pub send_max: Fact<ByteCount>,
    /// Within which TCP tunes its receive buffer.
    pub tcp_receive: Fact<BufferRange>,
    /// Within which TCP tunes its send buffer.
    pub tcp_send: Fact<BufferRange>,
}

/// The range of a buffer that tunes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BufferRange {
    /// Granted always.
    pub min: ByteCount,
    /// Of a new socket.
    pub default: ByteCount,
    /// At most.
    pub max: ByteCount,
}

/// Congestion controls of TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CongestionControls {
    /// Of new sockets.
    pub default: Fact<String>,
    /// Those loaded.
    pub available: Fact<Vec<String>>,
}

/// A network interface, with everything that shapes when packets leave and are seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct InterfaceFacts {
    /// "eth0".
    pub name: String,
    /// It has hardware (or a hypervisor's) behind it.
    pub hardware: bool,
    /// "virtio_net", "ixgbe".
    pub driver: Fact<String>,
    /// MTU, bytes.
    pub mtu: Fact<u32>,
    /// Rate of the link that the driver claims.
    pub link: Fact<BitRate>,
    /// Active offloads by their ethtool names.
    pub offloads: Fact<Vec<String>>,
    /// Sizes of the rings.
    pub rings: Fact<RingSizes>,
    /// When interrupts are raised, as configured.
    pub moderation: Fact<Moderation>,
    /// The period at which packets were handed over while the timings were taken; an upper bound,
    /// since idle time is in it.
    pub observed_period: Fact<Span>,
    /// Queues in use.
    pub queues: Fact<QueueCounts>,
    /// Its interrupts, and the cores that they may go to.
    pub interrupts: Fact<Vec<InterruptLine>>,
    /// Kinds of its queueing disciplines, the root first.
    pub queueing: Fact<Vec<String>>,
    /// Who can stamp its packets.
    pub timestamping: Fact<Timestamping>,
}

/// Packets that a ring holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RingSizes {
    /// Receiving.
    pub receive: u32,
    /// At most.
    pub receive_max: u32,
    /// Sending.
    pub send: u32,
    /// At most.
    pub send_max: u32,
}

/// Interrupt moderation as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Moderation {
    /// An interrupt comes so long after the first packet at the latest.
    pub receive_wait: Span,
    /// Or after so many; 0: no such rule.
    pub receive_packets: u32,
    /// The same for packets sent.
    pub send_wait: Span,
    /// Or after so many; 0: no such rule.
    pub send_packets: u32,
    /// The driver changes the receiving wait by load.
    pub adaptive: bool,
}

/// Queues in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct QueueCounts {
    /// That only receive.
    pub receive: u32,
    /// That only send.
    pub send: u32,
    /// That do both.
    pub combined: u32,
}

/// One interrupt of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct InterruptLine {
    /// Its number.
    pub number: u32,
    /// "eth0-rx-0", "virtio3-rx".
    pub name: String,
    /// Cores that it may go to: "0", "0-3,8".
    pub cores: Fact<String>,
    /// The core that took most of it since the start, where it was raised at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_core: Option<u32>,
    /// How often it was raised since the start.
    pub count: u64,
}

/// Who can stamp packets of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Timestamping {
    /// The kernel, arrivals.
    pub receive_kernel: bool,
    /// The kernel, departures.
    pub send_kernel: bool,
    /// The card, arrivals.
    pub receive_card: bool,
    /// The card, departures.
    pub send_card: bool,
    /// Number N of its clock `/dev/ptpN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
}
