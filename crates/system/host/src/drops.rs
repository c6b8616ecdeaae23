//! Packets that reached this host and were dropped inside it.
//!
//! Measures, over a phase, how many UDP datagrams the stack threw away and how many packets the
//! interfaces did. Assumes that nobody else on the host was losing packets at the time; since
//! somebody may have been, a figure here is an upper bound of our own loss.
//!
//! With one exception, which reads **low by a factor of up to 64**: a socket that accepts merged
//! datagrams (`UDP_GRO`) loses them bundle by bundle, and Linux counts a bundle once, in
//! `RcvbufErrors` and in `SO_RXQ_OVFL` alike (seen in 2026 on Linux 6.18: 1,800 datagrams dropped
//! in bundles of 40 were counted as 45 by both). Who receives with `UDP_GRO` must multiply by the
//! datagrams in a bundle.
//!
//! Sources: `/proc/net/snmp`, `snmp6` and `dev`, all of the calling thread's network namespace;
//! what the counters hold: Linux `net/ipv4/udp.c`. The columns of `/proc/net/dev` are sums over
//! what `ethtool -S` would split: Linux `net/core/net-procfs.c`.

use std::collections::BTreeMap;

use netaware_record::{HostDrops, IpVersion};

use crate::kernel_file;

/// The drop counters at one instant; costs about 0.2 ms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DropSnapshot {
    ipv4: Option<UdpErrors>,
    ipv6: Option<UdpErrors>,
    /// Per interface asked for; missing ones are missing.
    nics: BTreeMap<String, u64>,
}

/// Why the stack threw UDP datagrams away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct UdpErrors {
    /// Full receive buffers and exhausted memory (`RcvbufErrors + MemErrors`): this host's doing.
    here: u64,
    /// The rest of `InErrors` (RFC 4113): a wrong checksum or length, damage of the network.
    damaged: u64,
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

    /// Drops since `earlier`, for datagrams of one IP version. `socket` is what the receiving
    /// sockets counted meanwhile (`SO_RXQ_OVFL`): that count has damaged datagrams in it, which are
    /// taken out.
    ///
    /// `nic` cannot be told apart by IP version: it is the same for both. Counters that are missing
    /// at either end are absent; those that ran backwards because a device was replaced count as 0.
    #[must_use]
    pub fn since(&self, earlier: &Self, version: IpVersion, socket: Option<u64>) -> HostDrops {
        let (now, before) = match version {
            IpVersion::V4 => (self.ipv4, earlier.ipv4),
            IpVersion::V6 => (self.ipv6, earlier.ipv6),
        };
        let errors = now.zip(before).map(|(now, then)| now.since(then));
        let damaged = errors.unwrap_or_default().damaged;
        let grown = |(name, now): (&String, &u64)| Some(now.saturating_sub(*earlier.nics.get(name)?));
        HostDrops {
            socket: socket.map(|dropped| dropped.saturating_sub(damaged)),
            stack: errors.map(|errors| errors.here),
            nic: self.nics.iter().filter_map(grown).reduce(u64::saturating_add),
        }
    }
}

impl UdpErrors {
    fn read(value_of: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        // `MemErrors` came with Linux 5.11.
        let here = value_of("RcvbufErrors")?.saturating_add(value_of("MemErrors").unwrap_or(0));
        Some(Self { here, damaged: value_of("InErrors")?.saturating_sub(here) })
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            here: self.here.saturating_sub(earlier.here),
            damaged: self.damaged.saturating_sub(earlier.damaged),
        }
    }
}

/// `thread-self`, not `self`: threads of one process may live in different network namespaces.
fn net_file(name: &str) -> Option<String> {
    let of_thread = kernel_file::read(format!("/proc/thread-self/net/{name}"));
    of_thread.or_else(|| kernel_file::read(format!("/proc/self/net/{name}")))
}

/// The `Udp:` pair of lines.
fn parse_snmp(text: &str) -> Option<UdpErrors> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    UdpErrors::read(|wanted| {
        let position = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(position)?.parse().ok()
    })
}

/// The same of `snmp6`, which has one counter in each line.
fn parse_snmp6(text: &str) -> Option<UdpErrors> {
    UdpErrors::read(|wanted| {
        let mut counters = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
        let of_udp = |name: &str| name.strip_prefix("Udp6") == Some(wanted);
        counters.find(|(name, _)| of_udp(name))?.1.trim().parse().ok()
    })
}

/// Drops per interface: the receive columns `drop` (`rx_dropped + rx_missed_errors`) and `fifo`
/// (`rx_fifo_errors` and kin). A driver that books one packet under both is counted twice, and
/// `rx_dropped` also contains frames of protocols that nobody listens to (LLDP, spanning tree):
/// both errors lean towards blaming the host.
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

    #[expect(clippy::unnecessary_wraps, reason = "what is compared is optional")]
    const fn errors(here: u64, damaged: u64) -> Option<UdpErrors> {
        Some(UdpErrors { here, damaged })
    }

    #[test]
    fn snmp_columns_are_found_by_name_and_damage_of_the_network_stays_apart() {
        let rows: &[(&str, Option<UdpErrors>)] = &[
            (
                "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors \
                 IgnoredMulti MemErrors\nUdp: 49 1 20 50 7 0 3 5 2\nUdpLite: RcvbufErrors\nUdpLite: 99\n",
                errors(9, 11),
            ),
            ("Udp: RcvbufErrors InErrors\nUdp: 5 6", errors(5, 1)),
            ("Udp: RcvbufErrors InErrors\nUdp: 5 4", errors(5, 0)),
            ("Udp: InErrors RcvbufErrors\nUdp: 5", None),
            ("Udp: RcvbufErrors InErrors\nUdp: many 1", None),
            ("Udp: RcvbufErrors\n", None),
            ("Udp: InErrors\nUdp: 5", None),
            ("Udp: RcvbufErrors InErrors\nUdp: 99999999999999999999 1", None),
            ("Udp: RcvbufErrors MemErrors InErrors\nUdp: 18446744073709551615 1 3", errors(u64::MAX, 0)),
            ("UdpLite: RcvbufErrors InErrors\nUdpLite: 99 99\n", None),
            ("", None),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_snmp(text), *want, "row {n}: {text:?}");
        }
    }

    #[test]
    fn snmp6_counters_are_found_by_their_whole_name() {
        let rows: &[(&str, Option<UdpErrors>)] = &[
            (
                "Ip6InReceives \t1\nUdp6InErrors   \t12\nUdp6RcvbufErrors\t9\nUdp6MemErrors\t2\n",
                errors(11, 1),
            ),
            ("Udp6RcvbufErrors 4\nUdp6InErrors 4", errors(4, 0)),
            ("Udp6RcvbufErrorsToo 4\nUdp6InErrors 4", None),
            ("UdpLite6RcvbufErrors 4\nUdp6InErrors 4", None),
            ("Udp6RcvbufErrors", None),
            ("Udp6RcvbufErrors x\nUdp6InErrors 4", None),
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

    fn snapshot(ipv4: Option<UdpErrors>, ipv6: Option<UdpErrors>, nics: &[(&str, u64)]) -> DropSnapshot {
        DropSnapshot {
            ipv4,
            ipv6,
            nics: nics.iter().map(|(name, drops)| ((*name).to_owned(), *drops)).collect(),
        }
    }

    #[test]
    fn each_ip_version_gets_its_own_stack_and_both_get_the_nics() {
        let earlier = snapshot(errors(10, 0), errors(100, 4), &[("a", 5), ("gone", 9)]);
        let later = snapshot(errors(13, 2), errors(107, 4), &[("a", 7), ("new", 50)]);
        for (version, stack) in [(IpVersion::V4, 3), (IpVersion::V6, 7)] {
            let want = HostDrops { socket: Some(0), stack: Some(stack), nic: Some(2) };
            assert_eq!(later.since(&earlier, version, Some(0)), want);
        }
    }

    #[test]
    fn what_came_damaged_is_no_drop_of_the_socket() {
        let earlier = snapshot(errors(10, 5), None, &[]);
        let later = snapshot(errors(13, 16), None, &[]);
        // Three for want of room and eleven damaged make fourteen that the socket counts.
        let want = HostDrops { socket: Some(3), stack: Some(3), nic: None };
        assert_eq!(later.since(&earlier, IpVersion::V4, Some(14)), want);
        assert_eq!(later.since(&earlier, IpVersion::V4, Some(4)).socket, Some(0));
        let alone = later.since(&earlier, IpVersion::V6, Some(4));
        let want = HostDrops { socket: Some(4), ..HostDrops::default() };
        assert_eq!(alone, want, "without counters all that is known");
    }

    #[test]
    fn backward_counters_are_no_drops_and_missing_ones_are_unknown() {
        let earlier = snapshot(errors(10, 0), None, &[("a", 5)]);
        let later = snapshot(errors(3, 0), errors(7, 0), &[("a", 1)]);
        let want = HostDrops { socket: None, stack: Some(0), nic: Some(0) };
        assert_eq!(later.since(&earlier, IpVersion::V4, None), want);
        assert_eq!(later.since(&earlier, IpVersion::V6, None), HostDrops { stack: None, ..want });
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interface_that_is_not_there_is_left_out() {
        let taken = DropSnapshot::take(&["lo", "no such device"]);
        assert!(taken.ipv4.is_some());
        assert_eq!(taken.nics.keys().collect::<Vec<_>>(), ["lo"]);
    }
}
