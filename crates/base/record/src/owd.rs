//! One-way delay by packets of our own.

use netaware_units::{ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::passive::ClockState;
use crate::{DelaySummary, Health, Histogram, Pedigree};

/// Delay and loss of each way, from STAMP packets (RFC 8762) to a reflector and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OwdResult {
    /// Source of [`Self::forward`] and [`Self::reverse`]; its clock names the worse of our two
    /// stamps.
    pub pedigree: Pedigree,
    /// The reflector's port.
    pub port: u16,
    /// UDP payload of a packet, either way.
    pub payload: ByteCount,
    /// Planned time from packet to packet.
    pub spacing: Span,
    /// Packets that left.
    pub sent: u64,
    /// Packets that never left.
    pub not_sent: u64,
    /// Packets whose answer came in time.
    pub received: u64,
    /// Packets without an answer within [`Self::patience`]: those lost on either way and
    /// [`Self::lost_somewhere`].
    pub lost: u64,
    /// Of the lost: on which way is not known.
    pub lost_somewhere: u64,
    /// Packets of which nobody knows what became: sent when the measurement was ended, or after
    /// the last answer of a flow that broke off, or held up by a reflector that did not run. `sent`
    /// is `received` + `lost` + `unknown`.
    #[serde(default, skip_serializing_if = "netaware_units::is_default")]
    pub unknown: u64,
    /// Of the lost, and of the unknown: the answer came after all.
    pub late: u64,
    /// After how long a packet without an answer counted as lost.
    pub patience: Span,
    /// To the reflector.
    pub forward: OwdWay,
    /// From the reflector.
    pub reverse: OwdWay,
    /// Round trip without the reflector's time; no clock is compared with another in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<DelaySummary>,
    /// Time inside the reflector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dwell: Option<DelaySummary>,
    /// How far one-way delays can be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<OwdClock>,
    /// Who answered.
    pub reflector: OwdReflector,
    /// What the instrument did wrong.
    pub health: Health,
}

impl OwdResult {
    /// Share of the planned packets of which it is known what became of them, 0..=1.
    pub fn known_share(&self) -> f64 {
        let planned = self.sent.saturating_add(self.not_sent);
        let known = self.sent.saturating_sub(self.unknown);
        if planned > 0 { known as f64 / planned as f64 } else { 0.0 }
    }

    /// What became of so many of the lost, on no way that is known, nobody observed. Returns how
    /// many these are.
    pub fn unknown_are(&mut self, packets: u64) -> u64 {
        let unknown = packets.min(self.lost_somewhere).min(self.lost);
        self.lost -= unknown;
        self.lost_somewhere -= unknown;
        self.unknown += unknown;
        unknown
    }
}

/// One way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OwdWay {
    /// One-way delay of packets that made both ways, with the clocks' offset taken off. Those that
    /// came out negative are not in it, they are among [`Self::below_bound`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelaySummary>,
    /// Delays smaller than [`OwdClock::bound`], negative ones included: of these it is only known
    /// that they are at most twice the bound.
    pub below_bound: u64,
    /// Of these, the negative ones.
    pub negative: u64,
    /// Packets lost on this way.
    pub lost: u64,
    /// Lost of those that were sent on this way, 0..1; absent while the ways cannot be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Further copies that came.
    pub duplicates: u64,
    /// Overtaken by a later one (RFC 4737 §3).
    pub reordered: u64,
    /// Absolute difference of successive delays (RFC 3393, consecutive packets); needs no clock to
    /// be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv: Option<DelaySummary>,
    /// Excess over the smallest delay (RFC 5481 PDV); needs no clock to be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdv: Option<DelaySummary>,
    /// Routers on the way, if the packets began with one of the usual TTLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u8>,
    /// DSCP that packets arrived with, where it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Distribution of [`Self::delay`]; what is negative counts as underflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// The two clocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OwdClock {
    /// The reflector's minus ours when it began; was taken off.
    pub offset: Span,
    /// How much faster the reflector's runs, parts per million; was taken off.
    pub skew_ppm: f64,
    /// No one-way delay is further off than this because of the clocks.
    pub bound: Span,
    /// Where that is from: `same_host` (one kernel's clock), `clock_daemons` (both say how good
    /// they are), `active_exchange` (half of the least round trip, as how unequal the ways are
    /// cannot be known from it).
    pub method: String,
    /// Ours.
    pub local: ClockState,
    /// The reflector says that its clock is synchronised.
    pub remote_synchronised: bool,
    /// What the reflector says that its clock may be off by.
    pub remote_error: Span,
    /// What synchronises the reflector's clock, where it says: `ntp`, `ptp`, `satellites`, `bits`
    /// or `nothing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_source: Option<String>,
    /// What makes it doubtful: `contradicted` (both say that they are synchronised, and cannot both
    /// be right), `stepped`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// What showed of the reflector.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OwdReflector {
    /// Packets were proven by a shared key.
    pub authenticated: bool,
    /// It counts its answers, so that the ways of losses are known; absent: it has not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,
    /// It knows the extensions of RFC 8972 that it was asked; absent: there was no room to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<bool>,
    /// How often it began to count anew.
    pub restarts: u64,
    /// What came and was no answer to this flow: other keys, other sessions, noise.
    pub ignored: u64,
    /// Of these, such as do not prove the key.
    pub unproven: u64,
}
