//! What a path is: plain, validated structs, and how they are read from TOML.
//!
//! A value of these types that came from [`Scenario::parse`] is sane: rates are above zero, indices
//! are in range, the bounds of [`bounds`] hold. The format is described in docs/guide/scenarios.md.

mod cross;
mod error;
mod host;
mod link;
mod middlebox;
mod number;
mod predict;
mod table;

use netaware_record::IpVersion;
use netaware_units::{BitRate, Span};
use serde::Serialize;

use crate::Side;

pub use error::ScenarioError;

/// A path between two hosts, and what else travels on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// One line on what the path is like.
    pub about: String,
    /// Host A and host B.
    pub hosts: [Host; 2],
    /// From A to B; at least one.
    pub hops: Vec<Hop>,
    /// Traffic besides what is offered.
    pub cross: Vec<Cross>,
    /// A translator of addresses next to host B. Only the lab has one: the model has no addresses.
    pub nat: Option<Nat>,
}

/// What is particular about an end.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Host {
    /// How wrong its clock is.
    pub clock: Clock,
    /// How its network card hands packets over; at once without it.
    pub receive: Option<Coalescing>,
    /// The IP version that it lacks, if any. Only the lab takes it away.
    pub lacks: Option<IpVersion>,
}

/// Error of a host's clock: reading = true time + offset + skew x true time + steps so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Clock {
    /// At time zero; positive is ahead.
    pub offset: Span,
    /// Parts per billion; positive runs fast.
    pub skew_ppb: i64,
    /// Sudden changes, sorted by time.
    pub steps: Vec<ClockStep>,
}

/// One sudden change of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockStep {
    /// True time.
    pub at: Span,
    /// Positive jumps ahead.
    pub by: Span,
}

/// Interrupt coalescing: the first packet starts a timer, everything that came until it ends is
/// handed over together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Coalescing {
    /// From the first packet of a batch to the interrupt.
    pub period: Span,
    /// A batch of this many packets does not wait for the timer; 0 is no limit.
    pub batch: u32,
    /// What the host needs for each packet of a batch, so that stamps inside a batch differ.
    pub per_packet: Span,
}

/// A link to the next router (or to host B), in both directions, and that router.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hop {
    /// Towards B.
    pub forward: Link,
    /// Towards A.
    pub reverse: Link,
    /// How the router at its far end (seen from A) answers. Unused at the last hop.
    pub answers: Answers,
}

/// One direction of a hop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// The output queue in front of it.
    pub queue: Queue,
    /// Bytes that layer 2 adds to each IP packet while it occupies the link.
    pub overhead: u32,
    /// A token bucket at the entrance or in front of the transmitter.
    pub bucket: Option<Bucket>,
    /// How many equal links share the traffic, and how.
    pub members: Members,
    /// Several packets in one transmission, as Wi-Fi does.
    pub aggregation: Option<Aggregation>,
    /// Store-and-forward devices of layer 2 behind the link, in the direction of travel.
    pub switches: Vec<Switch>,
    /// Middleboxes at the entrance, in the order in which packets meet them.
    pub filters: Vec<Filter>,
    /// What it writes over in the headers of packets. Only the lab does it: the model has no
    /// headers.
    pub rewrite: Option<Rewrite>,
    /// What IPv4 and IPv6 packets meet.
    pub wires: [Wire; 2],
}

impl Link {
    /// What packets of this IP version meet.
    pub fn wire(&self, version: IpVersion) -> &Wire {
        &self.wires[version_index(version)]
    }
}

/// 0 for IPv4, 1 for IPv6.
pub(crate) const fn version_index(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => 0,
        IpVersion::V6 => 1,
    }
}

/// An output queue: first in, first out, unless it is fair. What is being transmitted does not
/// count as waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// When it is full; of a fair queue, when the share of one flow is.
    pub limit: QueueLimit,
    /// Active queue management on top of the limit.
    pub codel: Option<CoDel>,
    /// Each flow has a queue of its own, and they are served in turns, byte by byte (start-time
    /// fair queueing, Goyal, Vin and Cheng 1996).
    pub fair: bool,
}

/// A packet that would exceed it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// Of layer 2, waiting.
    Bytes(u64),
    /// Waiting.
    Packets(u64),
    /// That the packet would wait.
    Time(Span),
}

/// Parameters of RFC 8289.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CoDel {
    /// Acceptable standing wait.
    pub target: Span,
    /// How long the wait has to stay above `target` before the first drop.
    pub interval: Span,
}

/// Tokens are bytes of layer 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// How fast tokens come.
    pub rate: BitRate,
    /// How many it holds, bytes.
    pub burst: u64,
    /// How many it holds at time zero, bytes.
    pub initial: u64,
    /// What happens without tokens.
    pub kind: BucketKind,
}

/// What a token bucket does to a packet without tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketKind {
    /// It waits in the link's queue.
    Shaper,
    /// It is dropped before the queue.
    Policer,
}

/// Parallel links, each with the rate and the queue of the whole description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Members {
    /// 1 is a plain link.
    pub count: u16,
    /// Who goes where.
    pub balance: Balance,
    /// Member k is longer than member 0 by k times this.
    pub delay_step: Span,
}

/// How packets are spread over parallel links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// One after the other.
    Packet,
    /// By a hash of the flow.
    Flow,
}

/// A transmission carries everything that waits, up to a limit, and arrives as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Aggregation {
    /// At most this many packets.
    pub packets: u32,
    /// At most this many bytes of layer 2 (but always one packet).
    pub bytes: u64,
    /// Fixed cost of each transmission: preamble, acknowledgement, interframe spaces.
    pub access: Span,
    /// Random cost on top, even between zero and this: contention for the medium.
    pub contention: Span,
}

/// A hidden store-and-forward device with an endless queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// Of its output.
    pub rate: BitRate,
    /// Behind its output.
    pub delay: Span,
}

/// What one IP version meets on a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wire {
    /// From time zero, and then from each instant on; sorted. A packet is sent at the rate that
    /// holds when its transmission starts.
    pub rate: Vec<Change<BitRate>>,
    /// Whether this version has a transmitter and a queue of its own, because its rate was given
    /// apart.
    pub apart: bool,
    /// Propagation, from time zero and then from each instant on; sorted.
    pub delay: Vec<Change<Span>>,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// What becomes of larger ones.
    pub mtu_answer: MtuAnswer,
    /// Swallows everything.
    pub black_hole: bool,
    /// Times at which it swallows everything that comes to the link. What is in its queue or on the
    /// wire goes on.
    pub outages: Vec<Outage>,
    /// Loss behind the transmitter: a lost packet has used the link.
    pub loss: Loss,
    /// Probability that a packet arrives twice.
    pub duplication: f64,
    /// Packets that others overtake.
    pub reordering: Option<Reordering>,
    /// Delay that changes from packet to packet.
    pub jitter: Option<Jitter>,
    /// Probability that a packet arrives with one bit flipped.
    pub corruption: f64,
}

/// A value from an instant on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change<T> {
    /// From here on.
    pub at: Span,
    /// This holds.
    pub value: T,
}

/// A time without a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// Its begin.
    pub at: Span,
    /// Its length; `None` is for good.
    pub lasts: Option<Span>,
    /// From one begin to the next; `None` is once.
    pub every: Option<Span>,
}

/// A middlebox that treats some packets apart. Cross traffic is not asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filter {
    /// The version it looks at; both if absent.
    pub version: Option<IpVersion>,
    /// The protocol it looks at; every one if absent.
    pub protocol: Option<Protocol>,
    /// The port, of either end, that it looks at; every one if absent.
    pub port: Option<u16>,
    /// It looks at longer IP packets only, bytes.
    pub longer_than: u32,
    /// It looks only at packets that say that their transport understands ECN.
    pub ecn: bool,
    /// Bytes of each flow that pass before it acts.
    pub after: u64,
    /// What it does.
    pub action: FilterAction,
}

/// What a filter does with the packets that it looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterAction {
    /// It drops them.
    Drop,
    /// It drops them and resets their TCP connection at both ends.
    Reset,
    /// It drops what is above a rate.
    Limit {
        /// Of IP bytes.
        rate: BitRate,
        /// What passes at once, bytes.
        burst: u64,
    },
}

/// What a filter tells packets apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// UDP. Packets of which nothing else is said are UDP.
    #[default]
    Udp,
    /// TCP.
    Tcp,
    /// ICMP and `ICMPv6`, the errors of routers included.
    Icmp,
    /// Anything else.
    Other,
}

/// What a hop writes over in the byte of DSCP and ECN (RFC 2474, RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rewrite {
    /// The new DSCP, 0..=63; absent leaves it.
    pub dscp: Option<u8>,
    /// Whether ECN is cleared.
    pub clear_ecn: bool,
}

/// A translator of addresses: host B sees host A under another address and another port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nat {
    /// What it translates.
    pub kind: NatKind,
    /// For so long it remembers a flow of UDP or ICMP without packets.
    pub idle: Span,
    /// The same for TCP.
    pub tcp_idle: Span,
    /// Instants at which it forgets everything, sorted: flows go on from another port.
    pub rebinds: Vec<Span>,
}

/// What a NAT translates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NatKind {
    /// IPv4 addresses and ports (RFC 3022). IPv6 passes as it is.
    Nat44,
    /// IPv6 at host A to IPv4 at host B (RFC 6146), with names for it (DNS64, RFC 6147).
    Nat64,
}

/// What becomes of a packet above the MTU. (IPv4 without "don't fragment" passes and pays for its
/// fragments' headers.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MtuAnswer {
    /// The router in front of the link sends the ICMP error.
    Icmp,
    /// A black hole.
    Silent,
}

/// Loss on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None.
    None,
    /// Independent.
    Bernoulli {
        /// Per packet.
        probability: f64,
    },
    /// Two states with a loss probability each (Gilbert 1960, Elliott 1963). It starts in the good
    /// one.
    GilbertElliott {
        /// From good to bad, per packet.
        to_bad: f64,
        /// From bad to good, per packet.
        to_good: f64,
        /// In the good state.
        loss_good: f64,
        /// In the bad state.
        loss_bad: f64,
    },
    /// Every n-th packet.
    Periodic {
        /// n
        every: u64,
    },
}

/// Packets that are held back while others pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reordering {
    /// Per packet.
    pub probability: f64,
    /// How long.
    pub by: Span,
}

/// Random delay on top of propagation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Jitter {
    /// How it is distributed.
    pub distribution: Distribution,
    /// A single delay is cut here.
    pub max: Span,
    /// Whether packets may overtake each other because of it.
    pub order: Order,
    /// Packets leave only at multiples of this, as a radio scheduler grants; zero is at any time.
    pub grid: Span,
}

/// Shapes of jitter, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Even between 0 and twice the mean.
    Uniform {
        /// Mean.
        mean: Span,
    },
    /// Normal, cut at zero.
    Normal {
        /// Mean before the cut.
        mean: Span,
        /// Standard deviation before the cut.
        deviation: Span,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Span,
    },
    /// Pareto (Lomax, starting at zero).
    Pareto {
        /// Mean.
        mean: Span,
        /// Tail; above 1.
        alpha: f64,
    },
}

/// Whether a random delay may change the order of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A packet waits for the one in front of it.
    Kept,
    /// Packets may overtake.
    Free,
}

/// How a router answers with ICMP errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answers {
    /// Never answers.
    pub silent: bool,
    /// Time to make an answer.
    pub delay: Span,
    /// Even extra time between zero and this.
    pub jitter: Span,
    /// Answers per second; 0 is no limit.
    pub rate: f64,
    /// Answers that may be sent at once.
    pub burst: u32,
}

/// Traffic from within: enters in front of one hop's queue and leaves behind another's link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cross {
    /// Whose direction it travels in: `Side::A` is forward.
    pub from: Side,
    /// First hop in the direction of travel, as numbered from A.
    pub enter: usize,
    /// Last hop in the direction of travel, as numbered from A.
    pub leave: usize,
    /// Which IP version it is.
    pub version: IpVersion,
    /// Sizes of its packets, with shares that add up to one.
    pub sizes: Vec<SizeShare>,
    /// How it sends.
    pub pattern: Pattern,
    /// Factor on its rate over time, sorted, the first at time zero. Not for `Tcp`, which only
    /// obeys zero and non-zero.
    pub schedule: Schedule,
}

/// One size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeShare {
    /// IP total length.
    pub bytes: u32,
    /// Of the packets.
    pub share: f64,
}

/// How a source sends. Rates count IP bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Even spacing.
    Constant {
        /// Mean.
        rate: BitRate,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean.
        rate: BitRate,
    },
    /// Pareto gaps.
    Pareto {
        /// Mean.
        rate: BitRate,
        /// Tail of the gaps; above 1.
        alpha: f64,
    },
    /// Superposed sources that are silent or send evenly, for Pareto times each.
    OnOff {
        /// Mean of all together.
        rate: BitRate,
        /// How many.
        sources: u32,
        /// Tail of both times; above 1.
        alpha: f64,
        /// Mean time of sending.
        on: Span,
        /// Mean time of silence.
        off: Span,
    },
    /// Greedy flows with additive increase and multiplicative decrease.
    Tcp {
        /// How many.
        flows: u32,
        /// From the end of the last hop back to the sender: what comes on top of the delay of the
        /// hops.
        back: Span,
        /// Largest window, packets; 0 is no limit.
        window: u32,
    },
}

/// A factor on a source's rate over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Holds from each instant on; before the first it is silent. Sorted.
    Steps(Vec<Factor>),
    /// For ever: `high` for `duty` of the period, then `low`.
    Square {
        /// Length of both together.
        period: Span,
        /// Share of `high`, between 0 and 1.
        duty: f64,
        /// First.
        high: f64,
        /// Then.
        low: f64,
    },
}

/// A factor from an instant on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Factor {
    /// From here on.
    pub at: Span,
    /// Multiplies the rate.
    pub factor: f64,
}

/// What a scenario may ask for at most, so that none costs unbounded memory or arithmetic.
pub mod bounds {
    use netaware_units::{BitRate, Span};

    /// Bytes of the file.
    pub const TEXT: usize = 1 << 20;
    /// Hops of a path.
    pub const HOPS: usize = 64;
    /// Sources of cross traffic.
    pub const CROSS: usize = 64;
    /// Superposed sources or flows in one entry.
    pub const SOURCES: i64 = 1024;
    /// Parallel links.
    pub const MEMBERS: i64 = 64;
    /// Hidden devices of a link.
    pub const SWITCHES: usize = 16;
    /// Entries of a schedule, steps of a clock, sizes of a mix, outages.
    pub const STEPS: usize = 10_000;
    /// Filters of a link.
    pub const FILTERS: usize = 16;
    /// Flows that a filter keeps count of.
    pub const FILTERED_FLOWS: usize = 65_536;
    /// For so long a NAT may remember a flow.
    pub const IDLE: Span = Span::from_secs(7 * 24 * 3600);
    /// Slowest link: a packet of 64 KiB then takes nearly nine minutes.
    pub const SLOWEST: BitRate = BitRate(1_000);
    /// Fastest link.
    pub const FASTEST: BitRate = BitRate(1_000_000_000_000);
    /// Any delay, wait or period.
    pub const DELAY: Span = Span::from_secs(60);
    /// An instant of a schedule.
    pub const INSTANT: Span = Span::from_secs(30 * 24 * 3600);
    /// Packets in a queue.
    pub const QUEUE_PACKETS: i64 = 10_000_000;
    /// Bytes in a queue.
    pub const QUEUE_BYTES: u64 = 16 << 30;
}

impl Scenario {
    /// Reads and checks a scenario.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        if text.len() > bounds::TEXT {
            let problem = format!("the file has {} bytes", text.len());
            return Err(ScenarioError::at(text, 0, "", problem, "at most 1 MiB".to_owned()));
        }
        let parsed = toml::de::DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            ScenarioError::at(
                text,
                offset,
                "",
                format!("this is no TOML: {}", error.message()),
                String::new(),
            )
        })?;
        let mut root = table::Table::root(text, parsed.get_ref());
        let about = root.need("about", "about = \"one line on what this path is like\"")?;
        let line = about.text("one line of text")?;
        if line.trim().is_empty() || line.contains('\n') {
            return Err(about.problem("is not one line", "one line on what this path is like"));
        }
        let hosts = host::hosts(&mut root)?;
        let hops = link::hops(&mut root)?;
        let cross = cross::sources(&mut root, &hops)?;
        let nat = root.read("nat", |field| middlebox::nat(&field))?;
        root.finish()?;
        Ok(Self { about: line.to_owned(), hosts, hops, cross, nat })
    }
}
