//! What can be asked for.

use netaware_io::options::SocketOptions;
use netaware_record::{Arrivals, Bottleneck, Direction, HistogramShape, IpVersion};
use netaware_stats::patience::{LEAST, Waiting};
use netaware_units::{ByteCount, SendRate, Span};
use netaware_wire::DEFAULT_PORT;
use netaware_wire::control::{UdpReceive, UdpSend};

/// Where to measure to, and how to get there.
#[derive(Debug, Clone)]
pub struct Target {
    /// Name or literal address, as typed, without port.
    pub host: String,
    /// TCP and UDP port of the responder.
    pub port: u16,
    /// Versions to measure; usually both.
    pub versions: Vec<IpVersion>,
    /// Shared key, if the responder wants one.
    pub key: Option<Vec<u8>>,
    /// Options of every socket towards the responder.
    pub options: SocketOptions,
    /// How long a connection attempt may take before its version counts as unreachable.
    pub connect_patience: Span,
    /// The responder was started by the caller on this very host, for want of another.
    pub own_responder: bool,
}

impl Target {
    /// Both versions of a host at the default port.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: DEFAULT_PORT,
            versions: vec![IpVersion::V4, IpVersion::V6],
            key: None,
            options: SocketOptions::default(),
            connect_patience: Span::from_secs(5),
            own_responder: false,
        }
    }
}

/// Which way bulk traffic runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Directions {
    /// Prober to responder.
    #[default]
    Forward,
    /// Responder to prober.
    Reverse,
    /// Both at the same time.
    Both,
}

impl Directions {
    /// The single directions in it.
    pub fn each(self) -> &'static [Direction] {
        match self {
            Self::Forward => &[Direction::Forward],
            Self::Reverse => &[Direction::Reverse],
            Self::Both => &[Direction::Forward, Direction::Reverse],
        }
    }
}

/// The main job.
#[derive(Debug, Clone)]
pub struct TestRequest {
    /// To whom.
    pub target: Target,
    /// What the whole may take, queueing not counted.
    pub budget: Span,
    /// Parallel streams after the single one.
    pub streams: u16,
    /// How often each version has its turn; even numbers make the order symmetric (ABBA).
    pub rounds: u16,
    /// Payload rate of the UDP phase; absent: 80 % of what TCP was seen to carry.
    pub udp_rate: Option<SendRate>,
    /// UDP payload; absent: the largest that fits a path MTU of at most 1500 bytes.
    pub udp_length: Option<u32>,
    /// Run the TCP phases.
    pub tcp: bool,
    /// Run the UDP phase.
    pub udp: bool,
    /// TCP congestion control of both senders.
    pub congestion: Option<String>,
    /// Estimate capacity and available bandwidth as well, both ways; takes its time beyond the
    /// budget.
    pub path: bool,
}

impl TestRequest {
    /// All phases in 15 s.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            budget: Span::from_secs(15),
            streams: 4,
            rounds: 2,
            udp_rate: None,
            udp_length: None,
            tcp: true,
            udp: true,
            congestion: None,
            path: false,
        }
    }
}

/// Bulk TCP.
#[derive(Debug, Clone)]
pub struct TcpRequest {
    /// To whom.
    pub target: Target,
    /// Per version; shared out over its turns.
    pub time: Span,
    /// Ends each version's transfer after so many bytes; `time` is then the limit.
    pub bytes: Option<ByteCount>,
    /// The same as a number of blocks of `length`, instead of `bytes`.
    pub blocks: Option<u64>,
    /// One block so often to the streams in turn; absent: each stream as fast as it goes. With
    /// neither `rate` nor `zerocopy`.
    pub block_spacing: Option<Span>,
    /// Parallel streams.
    pub streams: u16,
    /// Bytes per write; absent: what has proven fastest.
    pub length: Option<u32>,
    /// Which way.
    pub directions: Directions,
    /// Payload rate of all streams together.
    pub rate: Option<SendRate>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Length of the reported intervals.
    pub interval: Span,
    /// Leave out exactly so much at the start; absent: the slow-start rule decides.
    pub omit: Option<Span>,
    /// Cores for the data threads.
    pub affinity: Vec<usize>,
    /// Send without copying.
    pub zerocopy: bool,
    /// Sample each stream's TCP over time.
    pub per_stream: bool,
    /// The narrowest link as the caller knows it, for the transfer time ratio of RFC 6349.
    pub bottleneck: Option<Bottleneck>,
}

impl TcpRequest {
    /// How long a transfer lasts that nobody limited.
    pub const TIME: Span = Span::from_secs(10);

    /// One stream for 10 s.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            time: Self::TIME,
            bytes: None,
            blocks: None,
            block_spacing: None,
            streams: 1,
            length: None,
            directions: Directions::Forward,
            rate: None,
            nodelay: false,
            interval: Span::from_secs(1),
            omit: None,
            affinity: Vec::new(),
            zerocopy: false,
            per_stream: false,
            bottleneck: None,
        }
    }

    /// After how many bytes each version's transfer ends, if after any; blocks are counted in bytes
    /// here.
    pub fn bytes_in_all(&self) -> Option<ByteCount> {
        let length = u64::from(self.length.unwrap_or(netaware_io::tcp::DEFAULT_LENGTH));
        self.blocks.map(|blocks| ByteCount(blocks.saturating_mul(length))).or(self.bytes)
    }
}

/// How fast datagrams follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// As fast as the host can.
    #[default]
    Unlimited,
    /// At this payload rate.
    Rate(SendRate),
    /// At this payload rate, or at what the path is seen to carry before the stream begins where
    /// that is less: for a rate that nobody typed.
    AtMost(SendRate),
    /// At this distance from start to start.
    Spacing(Span),
}

impl Pace {
    /// The distance in picoseconds, from start to start, of datagrams with `length` bytes of
    /// payload; absent without a pace.
    pub fn gap_ps(self, length: u32) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) | Self::AtMost(rate) => Some(rate.gap_ps(length)),
            Self::Spacing(gap) => Some(gap.0.max(1).cast_unsigned().saturating_mul(1000)),
        }
    }
}

/// A UDP stream.
#[derive(Debug, Clone)]
pub struct UdpRequest {
    /// To whom.
    pub target: Target,
    /// Per version; shared out over its turns.
    pub time: Span,
    /// Ends each version's stream after so many datagrams.
    pub packets: Option<u64>,
    /// Payload of each.
    pub length: u32,
    /// Which way.
    pub directions: Directions,
    /// How fast.
    pub pace: Pace,
    /// How they leave.
    pub send: UdpSend,
    /// How they are taken in.
    pub receive: UdpReceive,
    /// Datagrams that leave back to back each time; a spacing is then from burst to burst.
    pub burst: u32,
    /// Bins of equal width for the times between arrivals.
    pub histogram: Option<HistogramShape>,
    /// Keep each arrival.
    pub log: bool,
    /// Rates on the wire are those of frames with a VLAN tag.
    pub vlan: bool,
    /// Socket buffers.
    pub window: Option<u32>,
    /// Length of the reported intervals.
    pub interval: Span,
    /// Core for the data thread.
    pub affinity: Vec<usize>,
}

impl UdpRequest {
    /// Datagrams that fit an Ethernet path of both versions, as fast as possible, for 10 s.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            time: Span::from_secs(10),
            packets: None,
            length: 1452,
            directions: Directions::Forward,
            pace: Pace::Unlimited,
            send: UdpSend::Gso,
            receive: UdpReceive::Gro,
            burst: 1,
            histogram: None,
            log: false,
            vlan: false,
            window: None,
            interval: Span::from_secs(1),
            affinity: Vec::new(),
        }
    }
}

/// Over what a request-response runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// A datagram each way.
    #[default]
    Udp,
    /// One connection.
    Tcp,
}

impl Transport {
    /// The method's name in a pedigree.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Udp => "latency",
            Self::Tcp => netaware_record::OVER_TCP,
        }
    }
}

/// Request-response delay.
#[derive(Debug, Clone)]
pub struct LatencyRequest {
    /// To whom.
    pub target: Target,
    /// Requests per version and transport; absent: as many as fit `time`.
    pub count: Option<u64>,
    /// Per version and transport; absent: as long as `count` takes.
    pub time: Option<Span>,
    /// When requests go.
    pub rhythm: Rhythm,
    /// Nobody typed the distances of an open loop: a path that carries less gets longer ones.
    pub may_slow_down: bool,
    /// Payload of a request, bytes. UDP: 1..=65,507; TCP: 1..=100,000,000.
    pub request: u32,
    /// Payload of a response, bytes, with the same bounds. To a UDP request below 24 bytes at most
    /// 64.
    pub response: u32,
    /// Over what, one or both; in turns where there are two.
    pub transports: Vec<Transport>,
    /// After how long without a response a request is lost.
    pub patience: Span,
    /// How that is meant.
    pub waiting: Waiting,
    /// Count round trips in bins of equal width as well.
    pub bins: Option<HistogramShape>,
}

/// When requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rhythm {
    /// Closed loop: so many are outstanding, and each response triggers the next request. One is
    /// ping-pong.
    Closed(u32),
    /// Open loop: at times of their own.
    Open {
        /// From request to request, the mean where it is random.
        spacing: Span,
        /// Evenly or at random.
        arrivals: Arrivals,
        /// The same seed gives the same random distances.
        seed: u64,
    },
}

impl Rhythm {
    /// Evenly, so far apart.
    pub fn even(spacing: Span) -> Self {
        Self::Open { spacing, arrivals: Arrivals::Even, seed: 0 }
    }
}

impl LatencyRequest {
    /// 200 requests of 64 bytes, one every 10 ms, for responses as long.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            count: Some(200),
            time: None,
            rhythm: Rhythm::even(Span::from_millis(10)),
            may_slow_down: true,
            request: 64,
            response: 64,
            transports: vec![Transport::Udp],
            patience: LEAST,
            waiting: Waiting::AtLeast,
            bins: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_so_many_bytes() {
        let request = TcpRequest::new(Target::new("h"));
        let counted = |blocks, bytes, length| {
            TcpRequest { bytes, blocks, length, ..request.clone() }.bytes_in_all().map(|bytes| bytes.0)
        };
        assert_eq!(counted(None, None, None), None);
        assert_eq!(counted(None, Some(ByteCount(7)), Some(1000)), Some(7));
        assert_eq!(counted(Some(10_000), None, Some(1000)), Some(10_000_000));
        assert_eq!(counted(Some(2), None, None), Some(2 << 20));
        assert_eq!(counted(Some(u64::MAX), None, Some(2)), Some(u64::MAX));
    }

    #[test]
    fn a_gap_is_exact_to_the_picosecond() {
        assert_eq!(Pace::Rate(SendRate::at_least(1_000_000_000)).gap_ps(1250), Some(10_000_000));
        assert_eq!(Pace::Spacing(Span::from_micros(20)).gap_ps(64), Some(20_000_000));
        assert_eq!(Pace::Unlimited.gap_ps(64), None);
    }
}
