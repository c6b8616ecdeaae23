//! What a host was measured to cost and to reach.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fact;

/// How much time went into the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Two seconds or so: tails are rough.
    Quick,
    /// Some seconds.
    #[default]
    Full,
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostTimings {
    /// How much was spent on it.
    pub effort: Effort,
    /// How long it took.
    pub took: Span,
    /// Ended early on request: what follows is not all.
    #[serde(default)]
    pub cut_short: bool,
    /// The clock that everything is stamped with.
    pub clock: ClockTiming,
    /// How late waits end.
    pub waits: Vec<WaitTiming>,
    /// What calls cost.
    pub calls: Vec<CallTiming>,
    /// What copying memory costs, ns per byte.
    pub memory_copy_ns_per_byte: Fact<f64>,
    /// Stamps of packets, and the distance at which packets leave.
    pub stamps: Fact<StampTiming>,
    /// Payload bytes of a burst that a socket's receive buffer holds while nobody reads, in
    /// datagrams of 1472 bytes.
    pub receive_room: Fact<ByteCount>,
    /// The maximum network system throughput: what the stack moves when there is no network.
    pub loopback: Vec<LoopbackMaximum>,
    /// Interrupts of each interface while it ran.
    pub moderation: Vec<ObservedModeration>,
    /// Share of CPU time that the hypervisor withheld meanwhile, 0..=1.
    pub steal: Fact<f64>,
    /// Load of the host, all cores together, before it began, 0..=1: what others were doing.
    pub load_before: Fact<f64>,
}

/// The clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClockTiming {
    /// One reading, ns, median.
    pub read_ns: f64,
    /// Smallest difference of two readings one after the other that was seen, so the shortest time
    /// that can be told. It holds a reading's cost.
    pub resolution: Span,
    /// What the system claims for the resolution (`clock_getres`).
    pub claimed: Span,
}

/// How a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitHow {
    /// A sleep as programs usually do it: the kernel may merge it with later timers.
    Sleep,
    /// A sleep with the timer slack turned off.
    PreciseSleep,
    /// A sleep to shortly before the deadline, then looking at the clock: how netaware paces.
    Paced,
}

impl WaitHow {
    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::PreciseSleep => "sleep, no slack",
            Self::Paced => "sleep, then spin",
        }
    }
}

/// How late waits of one kind ended. Never early.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WaitTiming {
    /// Which kind.
    pub how: WaitHow,
    /// How long each was to be.
    pub asked: Span,
    /// How many.
    pub samples: u64,
    /// Mean lateness, ns.
    pub mean_ns: f64,
    /// Its standard deviation, ns.
    pub sd_ns: f64,
    /// Its median.
    pub p50: Span,
    /// Its 99th percentile.
    pub p99: Span,
    /// Its largest.
    pub max: Span,
}

/// A system call, or what stands for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostCall {
    /// Enters the kernel and leaves it.
    Null,
    /// Receives when there is nothing.
    EmptyReceive,
    /// One datagram over loopback, with all that the stack does to deliver it.
    Send,
    /// One datagram that waits.
    Receive,
    /// One of many that wait, with its kernel stamp.
    ReceiveStamped,
    /// `sendmmsg`, for each datagram.
    SendMany,
    /// `recvmmsg`, for each datagram.
    ReceiveMany,
    /// `UDP_SEGMENT`, for each datagram.
    SendSegmented,
}

impl HostCall {
    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null call",
            Self::EmptyReceive => "recv, nothing there",
            Self::Send => "send",
            Self::Receive => "recv",
            Self::ReceiveStamped => "recvmsg with stamp",
            Self::SendMany => "sendmmsg",
            Self::ReceiveMany => "recvmmsg",
            Self::SendSegmented => "send, segmented",
        }
    }
}

/// What one datagram costs in calls of one kind; the clock's reading is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CallTiming {
    /// Which call.
    pub call: HostCall,
    /// UDP payload, bytes; 0 where there is none.
    pub payload: u32,
    /// Datagrams moved by one call.
    pub batch: u32,
    /// Calls timed.
    pub samples: u64,
    /// Median for each datagram, ns.
    pub median_ns: f64,
    /// 99th percentile for each datagram, ns.
    pub p99_ns: f64,
}

/// How far stamps can be trusted, and how fast single packets leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StampTiming {
    /// Arrivals have the kernel's stamp; otherwise the application's, a wake-up later.
    pub by_kernel: bool,
    /// Standard error of the time of a send or an arrival, each half of what the way between the
    /// two varies.
    pub error: Span,
    /// Median time from the begin of one send to that of the next, the clock's reading between them
    /// included.
    pub send_gap: Span,
    /// UDP payload in datagrams of 1472 bytes that a socket of this host keeps while nobody reads:
    /// the largest burst that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<ByteCount>,
}

/// How bytes were moved over loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoopbackHow {
    /// A call per datagram.
    UdpSingle,
    /// Datagrams cut from long buffers and merged again (`UDP_SEGMENT`, `UDP_GRO`).
    UdpSegmented,
    /// TCP streams.
    Tcp,
}

impl LoopbackHow {
    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::UdpSingle => "UDP, a call each",
            Self::UdpSegmented => "UDP, segmented",
            Self::Tcp => "TCP",
        }
    }
}

/// The most that came through loopback.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LoopbackMaximum {
    /// How.
    pub how: LoopbackHow,
    /// Cores that the threads could use; on one core sender and receiver share it.
    pub cores: u32,
    /// Flows at the same time, each with a thread at both ends.
    pub flows: u32,
    /// UDP payload or length of a write, bytes.
    pub payload: u32,
    /// Datagrams received a second; absent for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_per_second: Option<f64>,
    /// Payload received.
    pub rate: BitRate,
    /// Share of the datagrams sent that did not come, 0..=1: the receiver was slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
    /// How long it ran.
    pub took: Span,
}

/// Packets and interrupts of an interface over a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ObservedModeration {
    /// Which one.
    pub interface: String,
    /// How long it was watched.
    pub window: Span,
    /// Packets that it received and sent.
    pub packets: u64,
    /// Its interrupts.
    pub interrupts: u64,
}
