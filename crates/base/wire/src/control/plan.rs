//! What a prober may ask a responder to do, and how much of it at most.

use netaware_record::{Direction, HistogramShape};
use netaware_units::{BitRate, ByteCount, Span};
use serde::{Deserialize, Serialize};

use super::volley::TrainsPlan;

/// Streams of one test.
pub const MAX_STREAMS: u16 = 512;
/// Datagrams of one burst of a UDP stream.
pub const MAX_BURST: u32 = 10_000;
/// Arrivals that a receiver of a UDP stream keeps one by one: 24 MiB.
pub const MAX_LOGGED: usize = 1 << 20;
/// Longest request and longest response over TCP. They are streamed, never held whole.
pub const MAX_TCP_ECHO: u32 = 100_000_000;
/// Request-responses over TCP up to this length each way run beside everything else; longer ones
/// fill the path as bulk does and need a reservation.
pub const MAX_TCP_ECHO_BESIDE: u32 = 64 << 10;

/// Bytes per write and read of bulk TCP. Larger ones gain nothing: beyond the socket's buffer each
/// is cut anyway.
pub const MAX_TCP_LENGTH: u32 = 1 << 20;
/// Longest time from block to block of spaced TCP.
pub const MAX_BLOCK_SPACING: Span = Span::from_secs(60);
/// Samples of one TCP stream that a transfer keeps; with many streams fewer, see
/// [`MAX_SAMPLES_IN_ALL`].
pub const MAX_SAMPLES: usize = 1000;
/// Samples of all streams of a transfer together: some 100 bytes of JSON each, which a sending
/// responder holds until they are read.
pub const MAX_SAMPLES_IN_ALL: usize = 8192;

/// What a test is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TestPlan {
    /// The responder reflects request-responses of a UDP flow until `Stop`. Needs no reservation.
    UdpEcho {
        /// Longest request.
        length: u32,
        /// Length of every response; absent: as long as its request, which then has room for the
        /// stamps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<u32>,
        /// At the latest it ends after this.
        duration: Span,
        /// DSCP of the responses, 0..=63.
        #[serde(default)]
        dscp: u8,
    },
    /// The responder answers requests on attached TCP connections until `Stop`. Needs no
    /// reservation.
    TcpEcho {
        /// Bytes of a request, and of a response unless `response` says otherwise.
        length: u32,
        /// Bytes of a response, made by the responder ([`crate::pattern`], numbered from zero on
        /// each connection); absent: the request comes back as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<u32>,
        /// At the latest it ends after this.
        duration: Span,
    },
    /// Bulk TCP.
    Tcp(TcpPlan),
    /// A UDP stream.
    Udp(UdpPlan),
    /// Trains of packets over a UDP flow, volley by volley.
    Trains(TrainsPlan),
}

/// Bulk TCP. Options that concern an end apply to both, where they make sense there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TcpPlan {
    /// `Forward`: the prober sends.
    pub direction: Direction,
    /// Parallel streams.
    pub streams: u16,
    /// How long to send.
    pub duration: Span,
    /// The first stream runs alone for this long, then the others join it.
    #[serde(default)]
    pub alone: Span,
    /// Ends once so many bytes have been sent in all; `duration` is then only the limit.
    #[serde(default)]
    pub bytes: Option<ByteCount>,
    /// Bytes per write and per read.
    pub length: u32,
    /// Length of the slices reported.
    pub tick: Span,
    /// Payload rate of all streams together.
    #[serde(default)]
    pub rate: Option<BitRate>,
    /// Socket buffers; absent leaves them to the kernel's tuning.
    #[serde(default)]
    pub window: Option<u32>,
    /// TCP_MAXSEG.
    #[serde(default)]
    pub mss: Option<u32>,
    /// TCP_NODELAY.
    #[serde(default)]
    pub nodelay: bool,
    /// DSCP, 0..=63.
    #[serde(default)]
    pub dscp: u8,
    /// TCP_CONGESTION.
    #[serde(default)]
    pub congestion: Option<String>,
    /// Send without copying from user space (splice from a page that is never changed).
    #[serde(default)]
    pub zerocopy: bool,
    /// A sending responder tells its slices when the transfer is over, not while it runs: nobody
    /// watches, and they would take of the path what is to be measured.
    #[serde(default)]
    pub quiet: bool,
    /// One block of `length` each so often to the streams in turn, 1 ns..=[`MAX_BLOCK_SPACING`];
    /// absent: each stream as fast as it goes. Goes with neither `rate` nor `zerocopy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_spacing: Option<Span>,
    /// The sender samples TCP_INFO of each stream once per `tick`, up to [`MAX_SAMPLES`] each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_stream: bool,
}

impl TcpPlan {
    /// One stream as fast as it goes, with blocks of 1 MiB and slices of 100 ms.
    pub fn new(direction: Direction, duration: Span) -> Self {
        Self {
            direction,
            streams: 1,
            duration,
            alone: Span::ZERO,
            bytes: None,
            length: MAX_TCP_LENGTH,
            tick: Span::from_millis(100),
            rate: None,
            window: None,
            mss: None,
            nodelay: false,
            dscp: 0,
            congestion: None,
            zerocopy: false,
            quiet: false,
            block_spacing: None,
            per_stream: false,
        }
    }

    /// How long after its planned end a receiver goes on taking in what the path's queues still
    /// hold. Slow start fills a slow path's queue with as much as has been acknowledged, so that
    /// the queue can take as long to drain as the transfer has lasted. A reservation has to contain
    /// this.
    pub fn longest_drain(&self) -> Span {
        Self::longest_drain_after(self.alone + self.duration)
    }

    /// The same of a transfer that has `sent` for so long.
    pub fn longest_drain_after(sent: Span) -> Span {
        sent.clamp(MIN_DRAIN, MAX_DRAIN)
    }
}

/// The shortest [`TcpPlan::longest_drain`]: a queue of 30 kB takes 12 s at 20 kbit/s, and a segment
/// that is lost in it comes again behind what is left.
pub const MIN_DRAIN: Span = Span::from_secs(20);
/// The longest: nobody waits longer for data that do not count.
const MAX_DRAIN: Span = Span::from_secs(60);

/// How datagrams are handed to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpSend {
    /// One call per datagram.
    #[default]
    Single,
    /// Many datagrams per call (`sendmmsg`).
    Mmsg,
    /// One buffer cut into datagrams by the kernel or the card (`UDP_SEGMENT`).
    Gso,
    /// Of a paced stream: one call per datagram, ahead of its time and with it (`SO_TXTIME`), for
    /// the queueing discipline to release. A sender behind whose socket nothing does so paces by
    /// itself instead.
    LaunchTime,
}

/// How datagrams are taken from the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpReceive {
    /// One call per datagram, stamped by the kernel.
    #[default]
    Single,
    /// Many datagrams per call (`recvmmsg`), stamped by the kernel.
    Mmsg,
    /// Datagrams merged by the kernel (`UDP_GRO`): no stamp of each, no gaps.
    Gro,
}

/// A UDP stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UdpPlan {
    /// `Forward`: the prober sends.
    pub direction: Direction,
    /// How long to send.
    pub duration: Span,
    /// Ends after so many datagrams; `duration` is then only the limit.
    #[serde(default)]
    pub packets: Option<u64>,
    /// Payload of each datagram.
    pub length: u32,
    /// From start to start; absent for as fast as it goes. Carried in picoseconds, so that a rate's
    /// mean is exact.
    #[serde(default)]
    pub gap_ps: Option<u64>,
    /// Datagrams that leave back to back at each step of a paced stream, 1..=[`MAX_BURST`].
    #[serde(default = "one")]
    pub burst: u32,
    /// How they leave. Paced streams always leave one by one.
    #[serde(default)]
    pub send: UdpSend,
    /// How they are taken in.
    #[serde(default)]
    pub receive: UdpReceive,
    /// Length of the slices reported.
    pub tick: Span,
    /// How long the receiver goes on listening once it has heard of the end, for datagrams that the
    /// end overtook; absent leaves it the 300 ms that no path needs more than. What comes later
    /// counts as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Span>,
    /// What a round trip takes as far as the prober knows, at most
    /// [`MAX_ROUND_TRIP`](super::MAX_ROUND_TRIP): the first datagram comes so much later than the
    /// receiver begins to listen, and so does the last.
    #[serde(default, skip_serializing_if = "netaware_units::is_default")]
    pub round_trip: Span,
    /// Socket buffers.
    #[serde(default)]
    pub window: Option<u32>,
    /// DSCP, 0..=63.
    #[serde(default)]
    pub dscp: u8,
    /// Bins of equal width in which the receiver counts the times between arrivals, beside the
    /// logarithmic ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramShape>,
    /// The receiver keeps of each datagram when it was sent and when it arrived, of at most
    /// [`MAX_LOGGED`].
    #[serde(default)]
    pub log: bool,
}

const fn one() -> u32 {
    1
}

impl TestPlan {
    /// How long after its planned end a receiver may go on taking in what the path's queues still
    /// hold.
    pub fn longest_drain(&self) -> Span {
        match self {
            Self::Tcp(plan) => plan.longest_drain(),
            Self::Udp(plan) => plan.longest_drain(),
            Self::UdpEcho { .. } | Self::TcpEcho { .. } | Self::Trains(_) => Span::ZERO,
        }
    }
}

/// A datagram that waits for longer in a queue is lost for all who would use it.
pub const MAX_UDP_DRAIN: Span = Span::from_secs(2);

impl UdpPlan {
    /// How long after its planned end a receiver listens for the end and what is before it.
    pub fn longest_drain(&self) -> Span {
        self.round_trip.or_zero() + MAX_UDP_DRAIN
    }

    /// Payload rate of a paced stream.
    pub fn rate(&self) -> Option<BitRate> {
        let bits = u128::from(self.length) * u128::from(self.burst) * 8 * 1_000_000_000_000;
        let rate = bits / u128::from(self.gap_ps.filter(|gap| *gap > 0)?);
        Some(BitRate(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_an_older_prober_still_reads() {
        let plan = TestPlan::Tcp(TcpPlan::new(Direction::Forward, Span::from_secs(1)));
        let text = serde_json::to_string(&plan).unwrap();
        assert!(!text.contains("block_spacing") && !text.contains("per_stream"), "{text}");
        assert_eq!(serde_json::from_str::<TestPlan>(&text).unwrap(), plan);
    }

    #[test]
    fn an_echo_plan_without_a_response_length_asks_for_equal_ones() {
        let plan: TestPlan =
            serde_json::from_str(r#"{"kind":"udp_echo","length":64,"duration":1000,"dscp":0}"#).unwrap();
        let equal = TestPlan::UdpEcho { length: 64, response: None, duration: Span(1000), dscp: 0 };
        assert_eq!(plan, equal);
        assert!(!serde_json::to_string(&equal).unwrap().contains("response"));
    }
}
