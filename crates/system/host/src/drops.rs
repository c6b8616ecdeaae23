//! Packets that reached this host and were dropped inside it.
//!
//! Measures, over a phase, how many UDP datagrams the stack threw away and how many packets the interfaces did. Assumes
//! that nobody else on the host was losing packets at the time; since somebody may have been, a figure here is an upper
//! bound of our own loss.
//!
//! With one exception, which reads **low by a factor of up to 64**: a socket that accepts merged datagrams (`UDP_GRO`)
//! loses them bundle by bundle, and Linux counts a bundle once, in `InErrors` and in `SO_RXQ_OVFL` alike (seen in 2026 on
//! Linux 6.18: 1,800 datagrams dropped in bundles of 40 were counted as 45 by both). Who receives with `UDP_GRO` must
//! multiply by the datagrams in a bundle.
//!
//! Sources: RFC 4113 (`udpInErrors`), `/proc/net/snmp`, `snmp6` and `dev`, all of the calling thread's network
//! namespace. The columns of `/proc/net/dev` are sums over what `ethtool -S` would split: Linux `net/core/net-procfs.c`.

use std::collections::BTreeMap;

use netaware_record::{HostDrops, IpVersion};

use crate::kernel_file;

/// The drop counters at one instant; costs about 0.2 ms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DropSnapshot {
    ipv4: Option<u64>,
    ipv6: Option<u64>,
    /// Per interface asked for; missing ones are missing.
    nics: BTreeMap<String, u64>,
}

impl DropSnapshot {
    /// Reads the counters of the stack, and of those `interfaces` that exist.
    pub fn take(interfaces: &[impl AsRef<str>]) -> Self {
        let devices = net_file("dev").map(|text| parse_dev(&text)).unwrap_or_default();
        let named = interfaces.iter().map(AsRef::as_ref);
        Self {
            ipv4: net_file("snmp").and_then(|text| parse_snmp(&text)),
            ipv6: net_file("snmp6").and_then(|text| parse_snmp6(&text)),
            nics: named.filter_map(|name| Some((name.to_owned(), *devices.get(name)?))).collect(),
        }
    }

    /// Drops since `earlier`, for datagrams of one IP version; `socket` is left at 0 for the caller.
    ///
    /// `nic` cannot be told apart by IP version: it is the same for both. Counters that are missing at either end, or
    /// that ran backwards because a device was replaced, count as 0.
    #[must_use]
    pub fn since(&self, earlier: &Self, version: IpVersion) -> HostDrops {
        let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let stack = match version {
            IpVersion::V4 => grown(self.ipv4, earlier.ipv4),
            IpVersion::V6 => grown(self.ipv6, earlier.ipv6),
        };
        let nics =
            self.nics.iter().filter_map(|(name, now)| grown(Some(*now), earlier.nics.get(name).copied()));
        HostDrops { socket: 0, stack: stack.unwrap_or(0), nic: nics.fold(0, u64::saturating_add) }
    }
}

/// `thread-self`, not `self`: threads of one process may live in different network namespaces.
fn net_file(name: &str) -> Option<String> {
    let of_thread = kernel_file::read(format!("/proc/thread-self/net/{name}"));
    of_thread.or_else(|| kernel_file::read(format!("/proc/self/net/{name}")))
}

/// `InErrors - InCsumErrors` of the `Udp:` pair of lines. `InErrors` contains full receive buffers and exhausted memory,
/// which are this host's doing, and wrong checksums, which are damage of the network and stay out.
fn parse_snmp(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let value_of = |wanted| {
        let position = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(position)?.parse::<u64>().ok()
    };
    Some(value_of("InErrors")?.saturating_sub(value_of("InCsumErrors").unwrap_or(0)))
}

/// The same of `snmp6`, which has one counter in each line.
fn parse_snmp6(text: &str) -> Option<u64> {
    let value_of = |wanted| {
        let mut counters = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
        counters.find(|(name, _)| *name == wanted)?.1.trim().parse::<u64>().ok()
    };
    Some(value_of("Udp6InErrors")?.saturating_sub(value_of("Udp6InCsumErrors").unwrap_or(0)))
}

/// Drops per interface: the receive columns `drop` (`rx_dropped + rx_missed_errors`) and `fifo` (`rx_fifo_errors` and
/// kin). A driver that books one packet under both is counted twice, and `rx_dropped` also contains frames of protocols
/// that nobody listens to (LLDP, spanning tree): both errors lean towards blaming the host.
fn parse_dev(text: &str) -> BTreeMap<String, u64> {
    text.lines().filter_map(parse_device).collect()
}

fn parse_device(line: &str) -> Option<(String, u64)> {
    // Names may contain colons (the old aliases did), counters never do.
    let (name, counters) = line.rsplit_once(':')?;
    let mut received = counters.split_whitespace().map(str::parse::<u64>);
    let drop = received.nth(3)?.ok()?;
    let fifo = received.next()?.ok()?;
    Some((name.trim().to_owned(), drop.saturating_add(fifo)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snmp_columns_are_found_by_name_and_checksum_errors_taken_out() {
        let rows: &[(&str, Option<u64>)] = &[
            (
                "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
              Udp: 49 1 10 50 7 0 3\nUdpLite: InErrors\nUdpLite: 99\n",
                Some(7),
            ),
            ("Udp: InErrors\nUdp: 5", Some(5)),
            ("Udp: InCsumErrors InErrors\nUdp: 9 5", Some(0)),
            ("Udp: InDatagrams InErrors\nUdp: 5", None),
            ("Udp: InErrors\nUdp: many", None),
            ("Udp: InErrors\n", None),
            ("Udp: NoPorts\nUdp: 5", None),
            ("Udp: InErrors\nUdp: 99999999999999999999", None),
            ("UdpLite: InErrors\nUdpLite: 99\n", None),
            ("", None),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_snmp(text), *want, "row {n}: {text:?}");
        }
    }

    #[test]
    fn snmp6_counters_are_found_by_their_whole_name() {
        let rows: &[(&str, Option<u64>)] = &[
            ("Ip6InReceives \t1\nUdp6InErrors   \t12\nUdp6RcvbufErrors\t9\nUdp6InCsumErrors\t2\n", Some(10)),
            ("Udp6InErrors 4", Some(4)),
            ("Udp6InErrorsToo 4", None),
            ("UdpLite6InErrors 4", None),
            ("Udp6InErrors", None),
            ("Udp6InErrors x", None),
            ("", None),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_snmp6(text), *want, "row {n}: {text:?}");
        }
    }

    #[test]
    fn device_drops_are_the_receive_columns_drop_and_fifo() {
        let text = "Inter-|   Receive                  |  Transmit\n face |bytes    packets errs drop fifo frame\n\
                    \x20   lo: 3193 29 0 0 0 0 0 0 3193 29 0 0 0 0 0 0\n  eth0:166 8508 1 20 3 0 0 0 39 44 0 77 0 0 0 0\n\
                    eth0:1: 1 1 1 5 5\nshort: 1 2 3 4\nwords: a b c d e\n: 1 2 3 4 5\n";
        let want = [("lo", 0), ("eth0", 23), ("eth0:1", 10), ("", 9)];
        assert_eq!(parse_dev(text), want.map(|(name, drops)| (name.to_owned(), drops)).into());
        assert_eq!(parse_dev(""), BTreeMap::new());
    }

    fn snapshot(ipv4: Option<u64>, ipv6: Option<u64>, nics: &[(&str, u64)]) -> DropSnapshot {
        DropSnapshot {
            ipv4,
            ipv6,
            nics: nics.iter().map(|(name, drops)| ((*name).to_owned(), *drops)).collect(),
        }
    }

    #[test]
    fn each_ip_version_gets_its_own_stack_and_both_get_the_nics() {
        let earlier = snapshot(Some(10), Some(100), &[("a", 5), ("gone", 9)]);
        let later = snapshot(Some(13), Some(107), &[("a", 7), ("new", 50)]);
        assert_eq!(later.since(&earlier, IpVersion::V4), HostDrops { socket: 0, stack: 3, nic: 2 });
        assert_eq!(later.since(&earlier, IpVersion::V6), HostDrops { socket: 0, stack: 7, nic: 2 });
    }

    #[test]
    fn missing_and_backward_counters_are_no_drops() {
        let earlier = snapshot(Some(10), None, &[("a", 5)]);
        let later = snapshot(Some(3), Some(7), &[("a", 1)]);
        assert_eq!(later.since(&earlier, IpVersion::V4), HostDrops::default());
        assert_eq!(later.since(&earlier, IpVersion::V6), HostDrops::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interface_that_is_not_there_is_left_out() {
        let taken = DropSnapshot::take(&["lo", "no such device"]);
        assert!(taken.ipv4.is_some());
        assert_eq!(taken.nics.keys().collect::<Vec<_>>(), ["lo"]);
    }
}
