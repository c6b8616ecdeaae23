//! What the owner of a responder decides.

use std::net::IpAddr;
use std::sync::Arc;

use netaware_io::priority::Permits;
use netaware_io::zone::ZonedIp;
use netaware_tls::Identity;
use netaware_units::{BitRate, ByteCount, Span};
use netaware_wire::DEFAULT_PORT;
use netaware_wire::control::Limits;
use netaware_wire::proof::Key;

use crate::{Network, PublicName, Results};

/// A responder's settings. `Config::default()` serves everybody on every address.
#[derive(Debug, Clone)]
pub struct Config {
    /// TCP and UDP port; 0 lets the system choose one that is free for both on all addresses.
    pub port: u16,
    /// Addresses to listen on; empty means all, over both IP versions.
    pub bind: Vec<ZonedIp>,
    /// Shared key; without the proof of knowing it nobody gets more than a challenge.
    pub key: Option<Key>,
    /// Reservations for throughput tests that run at the same time; the others wait.
    pub max_concurrent: usize,
    /// Control sessions in all.
    pub max_sessions: usize,
    /// Control sessions of one IPv4 address or one IPv6 /64.
    pub max_sessions_per_address: usize,
    /// Latency tests in all, UDP flows and TCP connections counted alike.
    pub max_echo_flows: usize,
    /// Longest test.
    pub max_duration: Option<Span>,
    /// Longest time that one reservation holds its slot.
    pub max_reservation: Span,
    /// Highest payload rate of a test.
    pub max_rate: Option<BitRate>,
    /// Most payload of a test.
    pub max_bytes: Option<ByteCount>,
    /// Most streams of a test.
    pub max_streams: Option<u16>,
    /// UDP port of a STAMP reflector beside it, on the same addresses; 0 lets the system choose,
    /// absent: none.
    pub stamp: Option<u16>,
    /// Certificate and key of the page; absent: it comes without TLS.
    pub identity: Option<Identity>,
    /// Names by which browsers may ask for the page, beside its addresses, this host's own name and
    /// those of the certificate. If there are any, whoever comes over loopback may be a reverse
    /// proxy, and is the owner only with the key.
    pub names: Vec<PublicName>,
    /// Results that pages send and may read; absent: none.
    pub results: Option<Arc<dyn Results>>,
    /// Networks that may connect; empty means all.
    pub allow: Vec<Network>,
    /// Cores for the threads that move data, by the kernel's numbers; empty leaves them to the
    /// scheduler.
    pub affinity: Vec<usize>,
    /// Whether a paced stream may run before all ordinary threads of the host.
    pub real_time: Permits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            port: DEFAULT_PORT,
            bind: Vec::new(),
            key: None,
            max_concurrent: 1,
            max_sessions: 1000,
            max_sessions_per_address: 200,
            max_echo_flows: 1000,
            // Long enough for a soak test by somebody who asks for it, short enough that a
            // forgotten one ends.
            max_duration: Some(Span::from_secs(3600)),
            max_reservation: Span::from_secs(2 * 3600),
            max_rate: None,
            max_bytes: None,
            max_streams: None,
            stamp: None,
            identity: None,
            names: Vec::new(),
            results: None,
            allow: Vec::new(),
            affinity: Vec::new(),
            // Whoever asks for a stream is not the host's owner.
            real_time: Permits::none(),
        }
    }
}

impl Config {
    /// As told to every prober.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            duration: self.max_duration,
            rate: self.max_rate,
            bytes: self.max_bytes,
            streams: self.max_streams,
        }
    }

    /// How long a reservation may last at most: several of the longest tests, one after the other.
    pub(crate) fn longest_lease(&self) -> Span {
        let by_tests = self.max_duration.map(|longest| longest.or_zero() * TESTS_IN_A_LEASE + LEASE_SLACK);
        by_tests.map_or(self.max_reservation, |most| most.min(self.max_reservation))
    }

    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|network| network.contains(address))
    }
}

/// Both IP versions, both directions and both numbers of streams.
const TESTS_IN_A_LEASE: i64 = 8;
/// Beside them: see the lease of a reservation.
const LEASE_SLACK: Span = Span::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    /// A lease of two hours was given under a longest test of 30 s.
    #[test]
    fn a_lease_is_bound_by_the_longest_test() {
        let lease = |max_duration| Config { max_duration, ..Config::default() }.longest_lease();
        assert_eq!(lease(Some(Span::from_secs(30))), Span::from_secs(270));
        assert_eq!(lease(Some(Span::from_secs(3600))), Span::from_secs(7200));
        assert_eq!(lease(None), Span::from_secs(7200));
    }

    #[test]
    fn a_printed_configuration_does_not_tell_the_key() {
        let config = Config { key: Some(Key::new(*b"sesame").unwrap()), ..Config::default() };
        assert!(!format!("{config:?}").contains("115"), "{config:?}");
        assert!(!format!("{config:?}").contains("sesame"));
    }
}
