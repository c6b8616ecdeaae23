//! What a relay tells all of its connections.

use netaware_record::IpVersion;

/// The present orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// Take no new connection.
    pub(crate) stop: bool,
    /// End now, finished or not.
    pub(crate) give_up: bool,
    /// Counts wishes for another IP version.
    pub(crate) wishes: u32,
    /// The last one.
    pub(crate) wished: Option<IpVersion>,
}
