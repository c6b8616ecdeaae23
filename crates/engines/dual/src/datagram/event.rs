//! What a session of datagrams tells its driver.

use netaware_record::IpVersion;
use netaware_units::Span;
use netaware_wire::dual::Refusal;

use crate::stream::{Outcome, Reason};

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Datagrams can go over this version.
    Up(IpVersion),
    /// Nothing that was sent over this version is told to have come; it is tried on and on.
    Silent(IpVersion),
    /// This direction goes another way from the next datagram on.
    Turned {
        /// From there.
        from: IpVersion,
        /// To there.
        to: IpVersion,
        /// Why.
        reason: Reason,
    },
    /// A wish of this end has ended. The peer's silence counts as `Down`.
    WishEnded {
        /// As [`super::Session::switch`] gave it.
        serial: u32,
        /// How.
        outcome: Outcome,
    },
    /// There is no session any more.
    Ended(End),
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum End {
    /// This end closed it.
    #[error("the session was closed")]
    Closed,
    /// The peer did.
    #[error("the peer has ended the session")]
    PeerClosed,
    /// Neither version worked for too long.
    #[error("the peer was silent for too long")]
    Silent,
    /// The peer does not take it.
    #[error("{0}")]
    Refused(Refusal),
}

/// How one version stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It is not tried: no address, or not wanted.
    Unused,
    /// It has not worked yet.
    Greeting,
    /// It works.
    Up,
    /// It has worked; what is sent is not told to have come.
    Silent,
}

/// What is known of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionStatus {
    /// Whether it works.
    pub standing: Standing,
    /// Numbered datagrams sent over it: the application's, probes and byes.
    pub sent: u64,
    /// Of those, told by the peer to have come.
    pub confirmed: u64,
    /// Of those, missing when the peer last told; one that was overtaken by others counts until it
    /// comes. Absent while it has told nothing.
    pub lost: Option<u64>,
    /// Different ones that came.
    pub received: u64,
    /// Missing among those, lost or overtaken.
    pub missing: u64,
    /// Came more than once over this version.
    pub repeated: u64,
    /// Smoothed, from probes and what they report.
    pub round_trip: Option<Span>,
    /// How much longer datagrams take to the peer than the quickest one lately, as it tells.
    pub forward_delay: Option<Span>,
    /// The same of those that come.
    pub reverse_delay: Option<Span>,
}

impl VersionStatus {
    /// Sent, and neither told to have come nor to be missing.
    pub fn unconfirmed(&self) -> u64 {
        self.sent.saturating_sub(self.confirmed + self.lost.unwrap_or(0))
    }
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionStatus {
    /// Why it has ended, if it has.
    pub ended: Option<End>,
    /// Where this direction goes.
    pub current: Option<IpVersion>,
    /// Of IPv4.
    pub v4: VersionStatus,
    /// Of IPv6.
    pub v6: VersionStatus,
    /// Datagrams that the application has sent; one that went over both versions counts once.
    pub sent: u64,
    /// Datagrams of the peer's application that were handed over.
    pub delivered: u64,
    /// Those that came over both versions or more than once, further copies only.
    pub repeated: u64,
    /// Those that came too far behind others to be told from repeated ones, and were dropped.
    pub late: u64,
}

impl SessionStatus {
    /// That of one version.
    pub fn of(&self, ip: IpVersion) -> &VersionStatus {
        match ip {
            IpVersion::V4 => &self.v4,
            IpVersion::V6 => &self.v6,
        }
    }
}
