//! What a host's kernel has counted.

use netaware_lab::{Lab, Side};
use netaware_record::IpVersion;

/// UDP datagrams of one IP version since the host was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpCounters {
    /// Given to programs.
    pub received: u64,
    /// Sent by programs.
    pub sent: u64,
}

/// Reads what the kernel of one host of a lab counts.
///
/// # Panics
/// If the kernel does not tell.
#[track_caller]
pub fn udp(lab: &Lab, side: Side, version: IpVersion) -> UdpCounters {
    let read = || match version {
        IpVersion::V4 => std::fs::read_to_string("/proc/thread-self/net/snmp"),
        IpVersion::V6 => std::fs::read_to_string("/proc/thread-self/net/snmp6"),
    };
    let text = lab.within(side, read).unwrap();
    let number = |name: &str| match version {
        IpVersion::V4 => {
            let mut rows = text.lines().filter(|line| line.starts_with("Udp: ")).map(str::split_whitespace);
            let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
            names.zip(values).find(|(of, _)| *of == name).unwrap().1.parse::<u64>().unwrap()
        }
        IpVersion::V6 => {
            let line = text.lines().find(|line| line.starts_with(&format!("Udp6{name} "))).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        }
    };
    UdpCounters { received: number("InDatagrams"), sent: number("OutDatagrams") }
}
