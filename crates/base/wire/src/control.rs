//! The control messages of protocol version 1.
//!
//! ```text
//! prober                                   responder
//!   | preface, Hello            ------------>  |
//!   |  <----------------------  [Challenge]    |   only with a shared key
//!   | [Authenticate]            ------------>  |
//!   |  <----------------------  Welcome        |   the session's token
//!   | [SetHeader]               ------------>  |   before the first test
//!   |  <----------------------  [HeaderSet]    |
//!   | Reserve                   ------------>  |   throughput only
//!   |  <---------  Queued (0..n), Admitted     |
//!   | Open                      ------------>  |
//!   |  <----------------------  Opened         |
//!   | [Channel]                 ------------>  |   only of a page's flow of datagrams
//!   |  <----------------------  [Channel]      |
//!   |   data connections / UDP knock attach    |
//!   |  <----------------------  Ready          |   all streams and flows are there
//!   | Start                     ------------>  |
//!   |  <----  Started, ReceiverTicks…, Ticks…  |
//!   | [Stop]                    ------------>  |
//!   |  <-------  StreamEnds…, Bins…, Arrivals…, Finished   |
//!   | Ping at any time          ------------>  |   at least every second
//!   |  <----------------------  Pong           |
//!   | Bye                       ------------>  |
//! ```
//!
//! Unknown fields are ignored, unknown types answered with [`ErrorCode::UnknownMessage`]. Each side
//! gives up after [`SILENCE_LIMIT`] without a byte from the other, or later where the path is slow.

mod channel;
mod older;
mod plan;
mod volley;

use netaware_record::{
    CpuUse, HostInfo, LoggedArrival, Outcome, ReceiverTick, SenderTick, StreamEnd, StreamSample, TcpEnd,
    UdpReceiverEnd, UdpSenderEnd,
};
use netaware_units::{BitRate, ByteCount, Span};
use serde::{Deserialize, Serialize};

use crate::header::HeaderFields;
use crate::{OwnerToken, Token};

pub use channel::{ChannelEnd, MAX_CHANNEL_PAYLOAD};
pub use volley::{
    MAX_VOLLEY_PACKETS, MAX_VOLLEY_PATIENCE, MAX_VOLLEY_TIME, TIMES_IN_A_MESSAGE, TrainSpec, TrainsPlan,
    VolleySpec,
};

pub use plan::{
    MAX_BLOCK_SPACING, MAX_BURST, MAX_LOGGED, MAX_SAMPLES, MAX_SAMPLES_IN_ALL, MAX_STREAMS, MAX_TCP_ECHO,
    MAX_TCP_ECHO_BESIDE, MAX_TCP_LENGTH, MAX_UDP_DRAIN, MIN_DRAIN, TcpPlan, TestPlan, UdpPlan, UdpReceive,
    UdpSend,
};

/// What a responder says when a lease ends. It may cross a release on its way, and then refuses
/// nothing.
pub const LEASE_IS_OVER: &str = "the lease is over; running throughput tests end";
/// What a responder says when it gives an unused reservation to the next prober. Nothing is refused
/// by it: a prober that goes on asks for another reservation.
pub const LEASE_WAS_IDLE: &str =
    "the reservation was given to the next, because no test was open for 10 s; ask for another one";
/// A prober that has said nothing for this long is gone, and so is a responder.
pub const SILENCE_LIMIT: Span = Span::from_secs(4);

/// The same over a path of this round trip without load: [`SILENCE_LIMIT`] up to 66 ms. Beyond, a
/// message that is lost needs longer to come. It is sent again after the retransmission time-out,
/// which is at least 200 ms and a round trip and doubles each time (RFC 6298); four of these are
/// waited for, and the way of the last.
pub fn silence_limit(round_trip: Span) -> Span {
    let round_trip = round_trip.or_zero();
    SILENCE_LIMIT.max((MIN_TIME_OUT + round_trip) * TIME_OUTS + round_trip)
}

/// Linux: `TCP_RTO_MIN`.
const MIN_TIME_OUT: Span = Span::from_millis(200);
/// Four that double: 1 + 2 + 4 + 8.
const TIME_OUTS: i64 = 15;
/// A prober sends a `Ping` this often, the first one when it is welcomed.
pub const PING_EVERY: Span = Span::from_secs(1);
/// The longest round trip over which a session works. NB-IoT takes up to 10 s; the limits of both
/// sides that are fixed (15 s of silence and more) hold it one and a half times.
pub const MAX_ROUND_TRIP: Span = Span::from_secs(10);

/// From the prober.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Opens the session.
    Hello {
        /// Highest protocol version.
        version: u16,
        /// "netaware 0.1.0".
        software: String,
        /// For the responder's proof.
        nonce: Token,
    },
    /// Answers a challenge.
    Authenticate {
        /// [`crate::proof::client`] in hexadecimal.
        proof: String,
    },
    /// Asks for fields of the IP header in what the responder sends for its tests; before the first
    /// test is opened.
    SetHeader {
        /// Which.
        header: HeaderFields,
    },
    /// Asks for the right to run throughput tests.
    Reserve {
        /// How long it will be needed.
        expected: Span,
        /// Shares another session's reservation: a prober that alternates two IP versions holds one
        /// place, not two.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        join: Option<Token>,
    },
    /// Gives that right back.
    Release,
    /// Prepares a test.
    Open {
        /// Chosen by the prober, unique in the session.
        test: u32,
        /// What to do.
        plan: TestPlan,
    },
    /// The flow of an opened test will come in a data channel; this is the prober's end of it.
    Channel {
        /// Of which test.
        test: u32,
        /// The prober's end.
        end: ChannelEnd,
    },
    /// Lets it begin.
    Start {
        /// Which.
        test: u32,
    },
    /// Ends it early, or forgets it.
    Stop {
        /// Which.
        test: u32,
    },
    /// Send these trains, or tell when each packet of them came.
    Volley {
        /// Of which test.
        test: u32,
        /// What.
        volley: VolleySpec,
    },
    /// I am here.
    Ping {
        /// Given back.
        seq: u64,
    },
    /// I am gone.
    Bye,
}

crate::frame::messages!(ClientMessage, ServerMessage);

impl ClientMessage {
    /// All `type`s of this version.
    pub const TYPES: &'static [&'static str] = &[
        "hello",
        "authenticate",
        "set_header",
        "reserve",
        "release",
        "open",
        "channel",
        "start",
        "stop",
        "volley",
        "ping",
        "bye",
    ];
}

/// From the responder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one message at a time; the large one ends a test")]
pub enum ServerMessage {
    /// Prove that you know the key.
    Challenge {
        /// Random.
        nonce: Token,
    },
    /// The session stands.
    Welcome {
        /// Version that will be spoken.
        version: u16,
        /// "netaware 0.1.0".
        software: String,
        /// Of the session.
        token: Token,
        /// The responder's own proof, when a key is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<String>,
        /// The responder's host.
        host: Box<HostInfo>,
        /// What its owner allows.
        limits: Limits,
        /// Opens what only the owner sees, as long as the session stands. Only over TLS, and only
        /// to who has proved the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<OwnerToken>,
    },
    /// The fields asked for will be set.
    HeaderSet,
    /// Waiting for a throughput slot.
    Queued {
        /// 1 = next.
        place: u32,
        /// Until it is your turn, if those in front use all they asked for.
        expected_wait: Span,
    },
    /// The slot is yours.
    Admitted {
        /// For [`ClientMessage::Reserve::join`].
        reservation: Token,
        /// Until when; tests that still run then are ended with what they have.
        lease: Span,
    },
    /// A test is prepared; attach its streams or flow.
    Opened {
        /// Which.
        test: u32,
    },
    /// A data channel may be opened to this port over UDP.
    Channel {
        /// Of which test.
        test: u32,
        /// The responder's end.
        end: ChannelEnd,
    },
    /// Everything is attached.
    Ready {
        /// Which.
        test: u32,
    },
    /// It runs.
    Started {
        /// Which.
        test: u32,
    },
    /// Progress of a receiving responder.
    ReceiverTicks {
        /// Which.
        test: u32,
        /// New slices, oldest first.
        ticks: Vec<ReceiverTick>,
    },
    /// Progress of a sending responder.
    SenderTicks {
        /// Which.
        test: u32,
        /// New slices, oldest first.
        #[serde(serialize_with = "older::sender_ticks")]
        ticks: Vec<SenderTick>,
    },
    /// One stream's final figures; they come before `Finished`, because 512 of them exceed one
    /// message.
    StreamEnds {
        /// Which.
        test: u32,
        /// Some streams.
        #[serde(serialize_with = "older::streams")]
        streams: Vec<StreamEnd>,
    },
    /// Filled bins of a histogram that somebody asked for, as `(lower edge in ns, entries)`; they
    /// come before `Finished`, because thousands of them exceed one message.
    Bins {
        /// Which.
        test: u32,
        /// Some bins, ascending.
        bins: Vec<(u64, u64)>,
    },
    /// Arrivals of a logged UDP stream in the order of arrival; they come before `Finished`.
    Arrivals {
        /// Which.
        test: u32,
        /// Some of them.
        arrivals: Vec<LoggedArrival>,
    },
    /// Samples of one stream over time, oldest first; they come before `Finished`, after the
    /// stream's end.
    StreamSamples {
        /// Which test.
        test: u32,
        /// Position among the streams.
        stream: u16,
        /// Some samples.
        #[serde(serialize_with = "older::samples")]
        samples: Vec<StreamSample>,
    },
    /// When packets of a volley came to this end, in the order of arrival, or left it; in as many
    /// messages as it takes.
    VolleyTimes {
        /// Which test.
        test: u32,
        /// Which volley.
        volley: u32,
        /// Sequence number and instant of this end's clock, ns.
        times: Vec<(u64, u64)>,
        /// Nothing more will come of this volley.
        last: bool,
        /// Of the packets in this message that came, those stamped by the program because the
        /// kernel had no stamp.
        #[serde(default, skip_serializing_if = "netaware_units::is_default")]
        unstamped: u64,
    },
    /// The test is over.
    Finished {
        /// Which.
        test: u32,
        /// How it ended.
        outcome: Outcome,
        /// What the responder saw.
        #[serde(serialize_with = "older::report", deserialize_with = "older::read_report")]
        report: EndReport,
    },
    /// I heard you.
    Pong {
        /// From the ping.
        seq: u64,
        /// For how long the responder's program has not run in this session, because it was stopped
        /// or its host was suspended; absent where it has run all the time, and from who does not
        /// tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stood_still: Option<Span>,
    },
    /// Something is refused.
    Error {
        /// Kind.
        code: ErrorCode,
        /// A sentence.
        message: String,
        /// The test it concerns, if one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test: Option<u32>,
        /// Versions spoken, with [`ErrorCode::Version`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        versions: Vec<u16>,
    },
    /// The responder is stopping.
    Bye {
        /// Why.
        reason: String,
    },
}

impl ServerMessage {
    /// All `type`s of this version.
    pub const TYPES: &'static [&'static str] = &[
        "challenge",
        "welcome",
        "header_set",
        "queued",
        "admitted",
        "opened",
        "channel",
        "ready",
        "started",
        "receiver_ticks",
        "sender_ticks",
        "stream_ends",
        "bins",
        "arrivals",
        "stream_samples",
        "volley_times",
        "finished",
        "pong",
        "error",
        "bye",
    ];
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Protocol version not spoken.
    Version,
    /// A key is set and the proof is missing or wrong.
    Key,
    /// Too many sessions.
    Busy,
    /// Over a cap that the owner has set; the message names it.
    Cap,
    /// The address is not in an allowed network.
    Network,
    /// Message known, but not now.
    State,
    /// Message with fields that do not fit.
    BadMessage,
    /// Message from another version.
    UnknownMessage,
    /// No byte for too long.
    Timeout,
    /// The lease is over.
    Lease,
    /// The responder failed: its system's answer is in the message.
    Internal,
    /// A code from a later version.
    #[serde(other)]
    Other,
}

/// Caps that the owner of a responder sets; absent means none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Longest test.
    #[serde(default)]
    pub duration: Option<Span>,
    /// Highest rate of a test.
    #[serde(default)]
    pub rate: Option<BitRate>,
    /// Most bytes of a test.
    #[serde(default)]
    pub bytes: Option<ByteCount>,
    /// Most streams of a test.
    #[serde(default)]
    pub streams: Option<u16>,
}

/// What the responder saw of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one report per test")]
pub enum EndReport {
    /// An echo test: how many requests were answered.
    Echo {
        /// Requests answered.
        answered: u64,
        /// Datagrams the responder's socket dropped meanwhile (all its sessions).
        drops: u64,
    },
    /// Trains: how many packets came or left.
    Trains {
        /// How it ended.
        outcome: Outcome,
        /// Packets.
        packets: u64,
        /// Payload of them.
        bytes: ByteCount,
        /// What this end's processors did meanwhile; absent from who does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu: Option<CpuUse>,
    },
    /// It sent TCP.
    TcpSender(TcpEnd),
    /// It received TCP.
    TcpReceiver(TcpEnd),
    /// It sent UDP.
    UdpSender(UdpSenderEnd),
    /// It received UDP.
    UdpReceiver(UdpReceiverEnd),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;

    #[test]
    fn every_type_is_listed() {
        let client = [
            ClientMessage::Hello { version: 1, software: "x".into(), nonce: Token::default() },
            ClientMessage::Authenticate { proof: String::new() },
            ClientMessage::SetHeader { header: HeaderFields { dscp: 1, ttl: Some(2), flow_label: Some(3) } },
            ClientMessage::Reserve { expected: Span::ZERO, join: None },
            ClientMessage::Release,
            ClientMessage::Channel {
                test: 1,
                end: ChannelEnd { ufrag: "u".into(), pwd: "p".into(), fingerprint: "f".into() },
            },
            ClientMessage::Start { test: 1 },
            ClientMessage::Stop { test: 1 },
            ClientMessage::Volley {
                test: 1,
                volley: VolleySpec { number: 0, first: 0, trains: Vec::new(), patience: Span::ZERO },
            },
            ClientMessage::Ping { seq: 1 },
            ClientMessage::Bye,
        ];
        for message in client {
            let bytes = frame::emit(&message).unwrap();
            assert_eq!(frame::parse(&bytes[4..]), Ok(message));
        }
    }

    #[test]
    fn a_pong_of_a_responder_that_does_not_tell_whether_it_stood_still_is_a_pong() {
        let parsed: ServerMessage = frame::parse(br#"{"type":"pong","seq":7}"#).unwrap();
        assert_eq!(parsed, ServerMessage::Pong { seq: 7, stood_still: None });
        let bytes = frame::emit(&parsed).unwrap();
        assert_eq!(&bytes[4..], br#"{"type":"pong","seq":7}"#);
    }

    #[test]
    fn an_error_code_of_a_later_version_is_still_an_error() {
        let text = br#"{"type":"error","code":"gravity","message":"m"}"#;
        let parsed: ServerMessage = frame::parse(text).unwrap();
        assert!(matches!(parsed, ServerMessage::Error { code: ErrorCode::Other, .. }));
    }
}
