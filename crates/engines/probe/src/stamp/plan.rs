//! What a flow of STAMP packets is to be.

use std::fmt;

use netaware_units::{Mono, Span, Wall};
use netaware_wire::proof::Key;
use netaware_wire::stamp::tlv::Question;
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
    /// UDP payload, bytes. What exceeds the base packet holds questions to the reflector, then padding.
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
    /// One to three bytes are left behind the base packet, into which no TLV fits.
    NoTlvFits {
        /// Bytes of the base packet.
        least: usize,
    },
    /// Longer than a UDP datagram.
    TooLong,
    /// Not even a nanosecond between packets, or more of them without an answer than are remembered.
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
            Self::NoTlvFits { least } => {
                write!(
                    f,
                    "packets have {least} bytes, or {} and more",
                    least + netaware_wire::stamp::tlv::HEADER
                )
            }
            Self::TooLong => write!(f, "no packet is longer than {LONGEST} bytes"),
            Self::Interval => {
                write!(
                    f,
                    "within the time that an answer is waited for at most {MOST_OUTSTANDING} packets may be sent"
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
        // With a key, TLVs need a proof of their own.
        let header = netaware_wire::stamp::tlv::HEADER + if self.key.is_some() { 16 } else { 0 };
        match self.length.checked_sub(least) {
            None => return Err(StampPlanError::TooShort { least }),
            Some(0) => {}
            Some(rest) if rest < header => {
                return Err(StampPlanError::NoTlvFits { least: least + header - 4 });
            }
            // Room for the proof and 1 to 3 bytes.
            Some(rest) if self.key.is_some() && (header + 1..header + 4).contains(&rest) => {
                return Err(StampPlanError::NoTlvFits { least: least + header });
            }
            Some(_) => {}
        }
        if self.length > LONGEST {
            return Err(StampPlanError::TooLong);
        }
        if self.patience <= Span::ZERO {
            return Err(StampPlanError::Patience);
        }
        if self.interval <= Span::ZERO
            || self.patience.nanos() / self.interval.nanos() > (MOST_OUTSTANDING as i64) / 4
        {
            return Err(StampPlanError::Interval);
        }
        if self.ssid == 0 { Err(StampPlanError::Ssid) } else { Ok(()) }
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
/// Packets without a verdict, at most: 200 bytes each.
pub(super) const MOST_OUTSTANDING: usize = 1 << 18;
