use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use netaware_path::hops::{Fate, Kind, Probe, What};
use netaware_units::Span;

use super::*;

fn probe(kind: Kind, length: u32) -> Probe {
    Probe { ttl: 64, length, kind, after: Span::from_millis(1), awaited: true, mute: false }
}

/// # Panics
/// If `CI=true`: there a test that was skipped would pass for one that has run.
fn skipped(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}, and CI=true: a skip would hide that");
    eprintln!("SKIPPED: {why}");
}

fn closed_port(ip: IpAddr) -> SocketAddr {
    // Bound and given up again: nobody listens there.
    let at = UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap();
    SocketAddr::new(ip, at.port())
}

#[test]
fn a_closed_port_on_loopback_answers_each_size_with_its_own_quote() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let mut socket = HopSocket::open(closed_port(ip), &SocketOptions::default()).unwrap();
        let probes = vec![probe(Kind::Udp, 64), probe(Kind::Udp, 200), probe(Kind::Udp, 1400)];
        let report = socket.run(&Round { probes, patience: Span::from_secs(2) }, &StopFlag::new());
        let replies: Vec<_> =
            report.probes.iter().map(|told| told.reply().unwrap_or_else(|| panic!("{told:?}"))).collect();
        assert!(replies.iter().all(|reply| reply.what == What::PortUnreachable && reply.from == ip));
        let lengths: Vec<u32> = replies.iter().map(|reply| reply.length.unwrap()).collect();
        // An error quotes the packet behind its own headers, up to 576 bytes (RFC 1812) or 1280
        // (RFC 4443).
        let header = if ip.is_ipv4() { 28 } else { 48 };
        assert_eq!(lengths[..2], [64 + header, 200 + header], "{ip}");
        assert_eq!(lengths[2], if ip.is_ipv4() { 576 } else { 1280 });
        for told in &report.probes {
            assert!(told.rtt().unwrap() > Span::ZERO && told.rtt().unwrap() < Span::from_millis(500));
        }
        assert_eq!(socket.counts().unmatched, 0);
    }
}

#[test]
fn probes_of_all_sizes_and_hops_are_one_flow() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let there = UdpSocket::bind((ip, 0)).unwrap();
        there.set_read_timeout(Some(Span::from_secs(2).to_std())).unwrap();
        let mut socket = HopSocket::open(there.local_addr().unwrap(), &SocketOptions::default()).unwrap();
        let mut from = Vec::new();
        for round in 1..=3_u8 {
            let probe = |n: u8| Probe {
                ttl: 10 * round + n,
                after: Span::from_micros(i64::from(n % 2) * 300),
                awaited: false,
                mute: n == 3,
                ..probe(Kind::Udp, 64 + 400 * u32::from(n % 4))
            };
            let probes: Vec<Probe> = (0..6).map(probe).collect();
            socket.run(&Round { probes: probes.clone(), patience: Span::ZERO }, &StopFlag::new());
            let mut bytes = [0; 2000];
            // A destination discards a mute one over IPv6 (RFC 8200 §8.1), which a router does not.
            for probe in probes.iter().filter(|probe| !probe.mute || ip.is_ipv4()) {
                let (length, address) = there.recv_from(&mut bytes).unwrap();
                let header = if ip.is_ipv4() { 28 } else { 48 };
                assert_eq!(length as u32 + header, probe.length, "{ip}");
                from.push(address);
            }
        }
        // A router that balances by addresses, protocol and ports sends them one way.
        from.dedup();
        assert_eq!(from.len(), 1, "{from:?}");
    }
}

#[test]
fn echoes_are_answered_where_they_are_permitted() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let mut socket = HopSocket::open(closed_port(ip), &SocketOptions::default()).unwrap();
        if let EchoAccess::Refused(why) = socket.echo() {
            skipped(&format!("no ICMP socket ({why})"));
            continue;
        }
        let probes = vec![probe(Kind::Echo, 60), probe(Kind::Udp, 60), probe(Kind::Echo, 1200)];
        let report = socket.run(&Round { probes, patience: Span::from_secs(2) }, &StopFlag::new());
        let said: Vec<_> =
            report.probes.iter().map(|told| told.reply().map(|reply| (reply.what, reply.length))).collect();
        assert_eq!(said[0], Some((What::EchoReply, Some(60))));
        assert_eq!(said[2], Some((What::EchoReply, Some(1200))));
        assert!(matches!(said[1], Some((What::PortUnreachable, _))));
    }
}

#[test]
fn the_kernel_answers_timestamps_over_ipv4_where_raw_sockets_are_permitted() {
    let mut socket =
        HopSocket::open(closed_port(Ipv4Addr::LOCALHOST.into()), &SocketOptions::default()).unwrap();
    if !socket.timestamps() {
        skipped("no raw socket");
        return;
    }
    let probes = vec![probe(Kind::Timestamp, 40), probe(Kind::Echo, 60), probe(Kind::Timestamp, 40)];
    let before = crate::clock::wall();
    let report = socket.run(&Round { probes, patience: Span::from_secs(2) }, &StopFlag::new());
    let after = crate::clock::wall();
    let said: Vec<_> = report.probes.iter().map(|told| told.reply().map(|reply| reply.what)).collect();
    let (stamp, echo) = (Some(What::TimestampReply), Some(What::EchoReply));
    assert_eq!(said, [stamp, echo, stamp]);
    let of_a_day = |at: netaware_units::Wall| at.0.div_euclid(1_000_000) % 86_400_000;
    for told in [report.probes[0], report.probes[2]] {
        let stamps = told.reply().unwrap().stamps.unwrap();
        for ms in [stamps.receive, stamps.transmit] {
            // The same machine, so the same clock; midnight may lie between.
            let since = (i64::from(ms) - of_a_day(before)).rem_euclid(86_400_000);
            assert!(since <= (after.0 - before.0) / 1_000_000 + 2, "{ms} of {}", of_a_day(before));
        }
        assert_eq!(told.reply().unwrap().length, Some(40));
    }
    assert_eq!(socket.counts().forged, 0);
}

#[test]
fn timestamps_never_leave_over_ipv6() {
    let mut socket =
        HopSocket::open(closed_port(Ipv6Addr::LOCALHOST.into()), &SocketOptions::default()).unwrap();
    assert!(!socket.timestamps());
    let round = Round { probes: vec![probe(Kind::Timestamp, 40)], patience: Span::from_millis(1) };
    assert_eq!(socket.run(&round, &StopFlag::new()).probes[0].fate, Fate::NotSent);
}

#[test]
fn a_stopped_round_ends_at_once() {
    let mut socket =
        HopSocket::open(closed_port(Ipv4Addr::LOCALHOST.into()), &SocketOptions::default()).unwrap();
    let stop = StopFlag::new();
    stop.raise();
    let report =
        socket.run(&Round { probes: vec![probe(Kind::Udp, 64)], patience: Span::from_secs(9) }, &stop);
    assert_eq!(report.probes[0].fate, Fate::NotSent);
}
