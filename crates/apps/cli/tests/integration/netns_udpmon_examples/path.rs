//! What the cable of the examples does, by arithmetic.

/// One way.
pub(crate) const DELAY_US: f64 = 20.0;
const BITS_PER_US: f64 = 100.0;
/// Preamble, header, checksum and gap.
const ETHERNET: u64 = 38;
/// Largest IP packet.
const MTU: u64 = 1500;
/// With the option of timestamps.
const TCP_HEADER: u64 = 32;

#[derive(Clone, Copy)]
pub(crate) struct Version {
    ip_header: u64,
    /// IP, UDP and Ethernet.
    pub(crate) around_udp: u64,
    pub(crate) addresses: (&'static str, &'static str),
}

pub(crate) const V4: Version =
    Version { ip_header: 20, around_udp: 66, addresses: ("10.77.0.1", "10.77.0.2") };
pub(crate) const V6: Version = Version { ip_header: 40, around_udp: 86, addresses: ("fd77::1", "fd77::2") };

impl Version {
    /// The time that a datagram of at most one packet has the cable to itself, or at least the part
    /// of a larger one that nothing can hide.
    pub(crate) fn udp_us(self, payload: u64) -> f64 {
        ((payload + 8 + self.ip_header).min(MTU) + ETHERNET) as f64 * 8.0 / BITS_PER_US
    }

    /// The same of a TCP message.
    pub(crate) fn tcp_us(self, payload: u64) -> f64 {
        ((payload + TCP_HEADER + self.ip_header).min(MTU) + ETHERNET) as f64 * 8.0 / BITS_PER_US
    }

    /// In full segments.
    pub(crate) fn tcp_us_per_byte(self) -> f64 {
        self.tcp_us(MTU) / (MTU - TCP_HEADER - self.ip_header) as f64
    }
}
