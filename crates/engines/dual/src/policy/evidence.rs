//! What a program's own policy sees, and what it can say.

use netaware_record::IpVersion;
use netaware_units::{BitRate, Mono, Span};

/// What is known of both versions since the last switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// When.
    pub at: Mono,
    /// Where this direction goes.
    pub present: IpVersion,
    /// Of IPv4.
    pub v4: VersionEvidence,
    /// Of IPv6.
    pub v6: VersionEvidence,
    /// Where the rules would go now, if they would.
    pub rules_say: Option<IpVersion>,
    /// When the direction last changed.
    pub switched_at: Option<Mono>,
}

impl Evidence {
    /// Of one version.
    pub fn of(&self, ip: IpVersion) -> &VersionEvidence {
        match ip {
            IpVersion::V4 => &self.v4,
            IpVersion::V6 => &self.v6,
        }
    }
}

/// What is known of one version: medians of the last observations, two dozen at most. What was not
/// seen is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VersionEvidence {
    /// Whether it can be used now.
    pub up: bool,
    /// Observations behind the figures.
    pub observations: usize,
    /// The latest one's time.
    pub seen_at: Option<Mono>,
    /// What it delivers, or would.
    pub goodput: Option<BitRate>,
    /// There and back.
    pub round_trip: Option<Span>,
    /// Share of packets lost, 0 to 1.
    pub loss: Option<f64>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Stay.
    Keep,
    /// Go over this version. One that is not up cannot be had, and that it is used already changes
    /// nothing.
    Use(IpVersion),
}

/// Who has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// The rules.
    Rules,
    /// The program's callback.
    Callback,
}
