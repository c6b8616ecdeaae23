//! What a flow of STAMP packets is to be.

use std::fmt;

use netaware_units::{Mono, Span, Wall};
use netaware_wire::proof::Key;
use netaware_wire::stamp::tlv::{HEADER, Question};
use netaware_wire::stamp::{ErrorEstimate, Mode};

/// A flow.
#[derive(Debug, Clone)]
pub struct StampPlan {
    /// First packet.
    pub start: Mono,
    /// From packet to packet.
    pub interval: Span,
    /// Packets; absent: until it is stopped.
    pub count: Option<u64>,
    /// UDP payload, bytes. What exceeds the base packet holds questions to the reflector, then
    /// padding.
    pub length: usize,
    /// A packet without an answer for so long is lost.
    pub patience: Span,
    /// Number of the session, not 0; with the ports it tells this flow from others (RFC 8972 §3).
    pub ssid: u16,
    /// How good our clock is.
    pub error: ErrorEstimate,
    /// The wall clock at the monotonic clock's zero.
    pub epoch: Wall,
    /// Packets prove it and must.
    pub key: Option<Key>,
    /// DSCP that replies are asked to have.
    pub dscp: u8,
    /// Random: nobody else's question whether both read the same clock has the same answer.
    pub nonce: [u8; 16],
    /// `boot_id` of our kernel; absent: not asked.
    pub run_of_kernel: Option<Vec<u8>>,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampPlanError {
    /// Shorter than the base packet.
    TooShort {
        /// Bytes of that.
        least: usize,
    },
    /// What is left behind the base packet, or behind the proof of its TLVs, is too short for a
    /// TLV.
    NoTlvFits {
        /// Bytes of the next shorter packet that there can be.
        shorter: usize,
        /// Bytes of the next longer one.
        longer: usize,
    },
    /// Longer than a UDP datagram.
    TooLong,
    /// Not even a nanosecond between packets, or more of them without an answer than are
    /// remembered.
    Interval,
    /// No patience.
    Patience,
    /// Session number 0.
    Ssid,
}

impl fmt::Display for StampPlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { least } => write!(f, "the shortest packet has {least} bytes"),
            Self::NoTlvFits { shorter, longer } => {
                write!(
                    f,
                    "no packet has that many bytes: the nearest lengths are {shorter} and {longer} bytes"
                )
            }
            Self::TooLong => write!(f, "no packet is longer than {LONGEST} bytes"),
            Self::Interval => {
                write!(
                    f,
                    "within the time that an answer is waited for, at most {MOST_IN_PATIENCE} packets may be sent"
                )
            }
            Self::Patience => f.write_str("answers must be waited for"),
            Self::Ssid => f.write_str("the session's number must not be zero"),
        }
    }
}

impl std::error::Error for StampPlanError {}

impl StampPlan {
    pub(super) fn check(&self) -> Result<(), StampPlanError> {
        let least = Mode::of(self.key.as_ref()).base_len();
        if self.length < least {
            return Err(StampPlanError::TooShort { least });
        }
        // With a key, TLVs need a proof of their own.
        let proven = least + if self.key.is_some() { HEADER + PROOF } else { 0 };
        for (shorter, longer) in [(least, proven), (proven, proven + HEADER)] {
            if shorter < self.length && self.length < longer {
                return Err(StampPlanError::NoTlvFits { shorter, longer });
            }
        }
        if self.length > LONGEST {
            return Err(StampPlanError::TooLong);
        }
        if self.patience <= Span::ZERO {
            return Err(StampPlanError::Patience);
        }
        if self.interval <= Span::ZERO || self.patience.nanos() / self.interval.nanos() > MOST_IN_PATIENCE {
            return Err(StampPlanError::Interval);
        }
        if self.ssid == 0 { Err(StampPlanError::Ssid) } else { Ok(()) }
    }

    /// Longer patience would have more packets without a verdict than are remembered.
    pub(super) fn most_patience(&self) -> Span {
        self.interval * MOST_IN_PATIENCE
    }

    /// What the reflector is asked, most needed first.
    pub(super) fn questions(&self) -> Vec<Question> {
        let same_clock = self.run_of_kernel.as_ref().map(|_| Question::SameClock(self.nonce));
        let others =
            [Question::Counters, Question::ClassOfService(self.dscp), Question::TimestampInformation];
        same_clock.into_iter().chain(others).collect()
    }
}

/// UDP over IPv6 without jumbograms.
const LONGEST: usize = 65_527;
/// Bytes of the proof of TLVs (RFC 8972 §4.8).
const PROOF: usize = 16;
/// A loss may wait for its verdict for longer than patience, until an answer tells its way.
const MOST_IN_PATIENCE: i64 = (MOST_OUTSTANDING as i64) / 4;
/// Packets without a verdict, at most: 200 bytes each.
pub(super) const MOST_OUTSTANDING: usize = 1 << 18;
