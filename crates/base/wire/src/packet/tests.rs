use proptest::prelude::*;

use super::frames::{ethernet, ethernet_of, tcp, udp, v4, v4_with, v6};
use super::*;

fn whole(link: LinkType, frame: &[u8]) -> Result<Packet<'_>, PacketError> {
    parse(link, frame, frame.len() as u32)
}

#[test]
fn an_ipv4_packet_says_what_it_is() {
    let frame = ethernet(&[], &v4(UDP, &udp(5353, 53, b"hello")));
    let packet = whole(LinkType::Ethernet, &frame).unwrap();
    assert_eq!((packet.version, packet.dscp, packet.ecn, packet.ttl), (4, 46, 1, 57));
    assert_eq!((packet.source, packet.destination), ([192, 0, 2, 1].into(), [198, 51, 100, 2].into()));
    assert_eq!((packet.length, packet.identification, packet.fragment), (33, Some(0x1234), 0x4000));
    assert_eq!((packet.protocol, packet.transport, packet.frame_length), (UDP, 20, 47));
    assert_eq!((packet.ports(), packet.later_fragment), (Some((5353, 53)), false));
    let udp = packet.udp().unwrap();
    assert_eq!((udp.length, udp.checksum, udp.payload), (13, 0xbeef, &b"hello"[..]));
    assert!(packet.tcp().is_none() && packet.icmp().is_none() && !packet.is_cut() && !packet.is_fragment());
}

#[test]
fn an_ipv6_packet_says_what_it_is() {
    let frame = ethernet(&[], &v6(TCP, &tcp(&[], b"data")));
    let packet = whole(LinkType::Ethernet, &frame).unwrap();
    assert_eq!((packet.version, packet.dscp, packet.ecn, packet.ttl), (6, 46, 1, 58));
    assert_eq!((packet.flow_label, packet.length, packet.identification), (0x1_2345, 64, None));
    assert_eq!(packet.source, "2001:db8::1".parse::<IpAddr>().unwrap());
    assert_eq!(packet.destination, "2001:db8::2".parse::<IpAddr>().unwrap());
    let tcp = packet.tcp().unwrap();
    assert_eq!(
        (tcp.source, tcp.destination, tcp.sequence, tcp.acknowledgment),
        (443, 12345, 0x0102_0304, 0x0506_0708)
    );
    assert_eq!(
        (tcp.flags, tcp.window, tcp.payload, tcp.payload_length),
        (Tcp::PSH | Tcp::ACK, 0x7fff, &b"data"[..], 4)
    );
}

#[test]
fn tags_and_other_links_are_passed() {
    let inner = v4(UDP, &udp(1, 2, &[]));
    let label = |bottom| [0, 1, bottom, 64];
    let rows: Vec<(&str, LinkType, Vec<u8>, [u16; 2])> = vec![
        ("one tag", LinkType::Ethernet, ethernet(&[(0x8100, 5)], &inner), [5, 0]),
        ("QinQ", LinkType::Ethernet, ethernet(&[(0x88a8, 100), (0x8100, 4094)], &inner), [100, 4094]),
        ("old QinQ", LinkType::Ethernet, ethernet(&[(0x9100, 7), (0x8100, 8)], &inner), [7, 8]),
        ("three", LinkType::Ethernet, ethernet(&[(0x88a8, 1), (0x88a8, 2), (0x8100, 3)], &inner), [1, 2]),
        (
            "MPLS",
            LinkType::Ethernet,
            ethernet_of(&[], 0x8847, &[&label(0), &label(1), &inner[..]].concat()),
            [0, 0],
        ),
        (
            "PPPoE",
            LinkType::Ethernet,
            ethernet_of(&[(0x8100, 7)], 0x8864, &[&[0x11, 0, 0, 1, 0, 30, 0, 0x21], &inner[..]].concat()),
            [7, 0],
        ),
        (
            "SNAP",
            LinkType::Ethernet,
            ethernet_of(&[], 36, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &inner[..]].concat()),
            [0, 0],
        ),
        ("raw", LinkType::Raw, inner.clone(), [0, 0]),
        (
            "cooked",
            LinkType::Cooked,
            [&[0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0], &inner[..]].concat(),
            [0, 0],
        ),
        (
            "cooked, tagged",
            LinkType::Cooked,
            [&[0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x81, 0, 0, 9, 8, 0], &inner[..]].concat(),
            [9, 0],
        ),
        (
            "cooked 2",
            LinkType::CookedV2,
            [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0], &inner[..]].concat(),
            [0, 0],
        ),
        ("null, little", LinkType::Null, [&[2, 0, 0, 0], &inner[..]].concat(), [0, 0]),
        ("null, big", LinkType::Null, [&[0, 0, 0, 2], &inner[..]].concat(), [0, 0]),
    ];
    for (name, link, frame, vlans) in rows {
        let packet = whole(link, &frame).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!((packet.ports(), packet.vlans, packet.bytes), (Some((1, 2)), vlans, &inner[..]), "{name}");
        assert_eq!(packet.frame_length as usize, frame.len(), "{name}");
    }
}

/// The IP packet that a frame holds if these bytes come before it, of four and of six.
fn behind(link: LinkType, four: &[u8], six: &[u8]) -> [Option<PacketError>; 2] {
    let packets = [v4(UDP, &udp(1, 2, &[])), v6(UDP, &udp(1, 2, &[]))];
    let mut heads = [four, six].into_iter();
    packets.map(|packet| {
        let frame = [heads.next().unwrap(), &packet[..]].concat();
        match whole(link, &frame) {
            Ok(found) => {
                assert_eq!((found.bytes, found.frame_length as usize), (&packet[..], frame.len()));
                None
            }
            Err(error) => Some(error),
        }
    })
}

const READ: [Option<PacketError>; 2] = [None; 2];
const NOT_IP: [Option<PacketError>; 2] = [Some(PacketError::NotIp); 2];

#[test]
fn ppp_is_read_with_and_without_address_and_with_a_short_protocol() {
    let ppp = |four: &[u8], six: &[u8]| behind(LinkType::Ppp, four, six);
    assert_eq!(ppp(&[0xff, 3, 0, 0x21], &[0xff, 3, 0, 0x57]), READ);
    assert_eq!(ppp(&[0, 0x21], &[0, 0x57]), READ);
    assert_eq!(ppp(&[0xff, 3, 0x21], &[0x57]), READ);
    let label = [0xff, 3, 2, 0x81, 0, 1, 1, 64];
    assert_eq!(ppp(&label, &label[2..]), READ, "MPLS");
    // Link control, and Van Jacobson's headers.
    assert_eq!(ppp(&[0xff, 3, 0xc0, 0x21], &[0, 0x2d]), NOT_IP);
    assert_eq!(whole(LinkType::Ppp, &[0xff, 3, 0]), Err(PacketError::LinkHeader));
}

#[test]
fn frame_relay_is_read_by_its_protocol_number_by_snap_and_as_cisco_has_it() {
    let relay = |four: &[u8], six: &[u8]| behind(LinkType::FrameRelay, four, six);
    assert_eq!(relay(&[0x18, 0x41, 3, 0xcc], &[0x18, 0x41, 3, 0x8e]), READ);
    // Addresses of three and four bytes, and padding.
    assert_eq!(relay(&[0x18, 0x40, 0x01, 3, 0xcc], &[0x18, 0x40, 0, 0x01, 3, 0, 0x8e]), READ);
    let snap = |high: u8, low: u8| [0x18, 0x41, 3, 0, 0x80, 0, 0, 0, high, low];
    assert_eq!(relay(&snap(8, 0), &snap(0x86, 0xdd)), READ);
    assert_eq!(relay(&[0x18, 0x41, 8, 0], &[0x18, 0x41, 0x86, 0xdd]), READ, "Cisco");
    // The link's own management, ARP by SNAP, a bridged frame.
    assert_eq!(relay(&[0, 0x01, 3, 8], &snap(8, 6)), NOT_IP);
    assert_eq!(relay(&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 7], &[0x18, 0x41, 3, 0x81]), NOT_IP);
    // An address without an end, and one of a single byte.
    assert_eq!(relay(&[0, 0, 0, 0, 3, 0xcc], &[1, 3, 0x8e]), NOT_IP);
    assert_eq!(whole(LinkType::FrameRelay, &[0x18, 0x41, 3]), Err(PacketError::LinkHeader));
}

#[test]
fn hdlc_of_cisco_is_read_by_its_ether_type() {
    let hdlc = |four: &[u8], six: &[u8]| behind(LinkType::CiscoHdlc, four, six);
    assert_eq!(hdlc(&[0x0f, 0, 8, 0], &[0x8f, 0, 0x86, 0xdd]), READ);
    let label = [0x0f, 0, 0x88, 0x47, 0, 1, 1, 64];
    assert_eq!(hdlc(&label, &label), READ, "MPLS");
    // SLARP and CDP.
    assert_eq!(hdlc(&[0x8f, 0, 0x80, 0x35], &[0x8f, 0, 0x20, 0]), NOT_IP);
}

#[test]
fn ipnet_says_by_its_family_what_follows() {
    let head = |family: u8| {
        let mut bytes = vec![2, family, 0, 1, 0, 0, 0, 28];
        bytes.resize(24, 0);
        bytes
    };
    let ip_net = |four: &[u8], six: &[u8]| behind(LinkType::IpNet, four, six);
    assert_eq!(ip_net(&head(2), &head(26)), READ);
    assert_eq!(ip_net(&head(10), &head(0)), NOT_IP, "Solaris's numbers, not Linux's");
    assert_eq!(ip_net(&head(26), &head(2)), [Some(PacketError::Version); 2]);
}

/// A frame of IEEE 802.11 up to IP: radiotap, frame control, what it has beyond three addresses,
/// and SNAP.
fn wireless(radiotap: &[u8], control: [u8; 2], beyond: &[u8], ether_type: [u8; 2]) -> Vec<u8> {
    let mut bytes = radiotap.to_vec();
    bytes.extend(control);
    bytes.extend([0, 0]);
    bytes.extend([2; 18]);
    // The sequence number is 0x123, the piece 0.
    bytes.extend([0x30, 0x12]);
    bytes.extend(beyond);
    bytes.extend([0xaa, 0xaa, 3, 0, 0, 0]);
    bytes.extend(ether_type);
    bytes
}

const BARE: [u8; 8] = [0, 0, 8, 0, 0, 0, 0, 0];

#[test]
fn data_frames_of_802_11_are_read_behind_radiotap() {
    let read = |radiotap: &[u8], control, beyond: &[u8]| {
        let [four, six] =
            [[8, 0], [0x86, 0xdd]].map(|ether_type| wireless(radiotap, control, beyond, ether_type));
        behind(LinkType::Radiotap, &four, &six)
    };
    assert_eq!(read(&BARE, [0x08, 0x01], &[]), READ, "to the access point");
    assert_eq!(read(&BARE, [0x08, 0x03], &[2; 6]), READ, "four addresses");
    assert_eq!(read(&BARE, [0x88, 0x02], &[0, 0]), READ, "QoS");
    assert_eq!(read(&BARE, [0x88, 0x83], &[2, 2, 2, 2, 2, 2, 0, 0, 9, 9, 9, 9]), READ, "HT control");
    // A time, flags that say that the header is padded, and a rate.
    let mut full: Vec<u8> = vec![0, 0, 18, 0, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20, 2];
    assert_eq!(read(&full, [0x88, 0x02], &[0, 0, 0, 0]), READ, "padded");
    full[16] = 0;
    assert_eq!(read(&full, [0x88, 0x02], &[0, 0]), READ, "not padded");
    // A second word of fields: the time is at a multiple of eight.
    let more: [u8; 25] = [0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20];
    assert_eq!(read(&more, [0x88, 0x02], &[0, 0, 0, 0]), READ, "more words");
}

#[test]
fn what_is_protected_in_pieces_or_several_in_one_is_not_ip_over_802_11() {
    let read = |control, beyond: &[u8]| whole_error(&wireless(&BARE, control, beyond, [8, 0]));
    let none = Some(PacketError::NotIp);
    // A beacon, a null frame, another version; protected; more pieces follow.
    assert_eq!(
        [[0x80, 0], [0x48, 1], [0x09, 1], [0x08, 0x41], [0x08, 0x05]].map(|c| read(c, &[])),
        [none; 5]
    );
    assert_eq!(read([0x88, 0x01], &[0x80, 0]), none, "A-MSDU");
    let mut piece = wireless(&BARE, [0x08, 1], &[], [8, 0]);
    piece[8 + 22] |= 1;
    assert_eq!(whole_error(&piece), none, "the second piece");
    let other = wireless(&[1, 0, 8, 0, 0, 0, 0, 0], [0x08, 1], &[], [8, 0]);
    assert_eq!(whole_error(&other), none, "another version of radiotap");
    // Lengths that lie: less than a header, beyond the frame, words of fields without an end, flags
    // behind the header.
    let long: [u8; 8] = [0, 0, 255, 255, 0, 0, 0, 0];
    let words: [u8; 8] = [0, 0, 8, 0, 0, 0, 0, 0x80];
    let flags: [u8; 8] = [0, 0, 8, 0, 2, 0, 0, 0];
    for radiotap in [[0, 0, 7, 0, 0, 0, 0, 0], long, words, flags] {
        let frame = wireless(&radiotap, [0x08, 1], &[], [8, 0]);
        assert_eq!(whole_error(&frame), Some(PacketError::LinkHeader), "{radiotap:?}");
    }
}

/// Why there is no packet behind these bytes.
fn whole_error(head: &[u8]) -> Option<PacketError> {
    whole(LinkType::Radiotap, &[head, &v4(UDP, &udp(1, 2, &[]))[..]].concat()).err()
}

#[test]
fn extension_headers_are_followed_to_what_they_lead_to() {
    let datagram = udp(7, 9, b"x");
    let hop = |next: u8| vec![next, 0, 5, 2, 0, 0, 1, 0];
    let routing = |next: u8| [&[next, 2, 4, 0][..], &[0; 20]].concat();
    let fragment = |next: u8, bits: u16| [&[next, 0][..], &bits.to_be_bytes(), &[0, 0, 0xab, 0xcd]].concat();
    let authentication = |next: u8| [&[next, 4, 0, 0][..], &[1; 20]].concat();
    let chain =
        [hop(43), routing(60), hop(44), fragment(51, 1), authentication(17), datagram.clone()].concat();
    let bytes = v6(0, &chain);
    let packet = whole(LinkType::Raw, &bytes).unwrap();
    assert_eq!((packet.ports(), packet.transport), (Some((7, 9)), 40 + 8 + 24 + 8 + 8 + 24));
    assert_eq!(
        (packet.identification, packet.fragment, packet.later_fragment),
        (Some(0xabcd), 0x2000, false)
    );
    let bytes = v6(44, &[fragment(17, 185 << 3), datagram.clone()].concat());
    let later = whole(LinkType::Raw, &bytes).unwrap();
    assert!(later.later_fragment && later.is_fragment() && later.ports().is_none() && later.udp().is_none());
    assert_eq!((later.fragment, later.protocol), (185, UDP));
    // IPv4 has one of them.
    let bytes = v4(51, &[authentication(17), datagram].concat());
    assert_eq!(whole(LinkType::Raw, &bytes).unwrap().ports(), Some((7, 9)));
}

#[test]
fn ipv4_options_and_fragments_are_told() {
    let with_options = v4_with(&[1, 1, 1, 0], 0x2000, UDP, &udp(1, 2, &[0; 16]));
    let first = whole(LinkType::Raw, &with_options).unwrap();
    assert_eq!((first.ports(), first.transport, first.is_fragment()), (Some((1, 2)), 24, true));
    let bytes = v4_with(&[], 3, UDP, &[0; 24]);
    let later = whole(LinkType::Raw, &bytes).unwrap();
    assert_eq!((later.ports(), later.later_fragment), (None, true));
}

#[test]
fn icmp_echoes_have_numbers() {
    let message = [8, 0, 0, 0, 0x12, 0x34, 0, 9, 1, 2, 3];
    let bytes = v4(ICMP, &message);
    let icmp = whole(LinkType::Raw, &bytes).unwrap().icmp().unwrap();
    assert_eq!((icmp.kind, icmp.code, icmp.echo()), (8, 0, Some((0x1234, 9))));
    let bytes = v6(ICMP_V6, &[135, 0, 0, 0, 0, 0, 0, 0]);
    let icmp = whole(LinkType::Raw, &bytes).unwrap().icmp().unwrap();
    assert_eq!((icmp.kind, icmp.echo()), (135, None));
}

#[test]
fn tcp_timestamps_are_found_among_options() {
    let stamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let rows = [
        ([&[1, 1][..], &stamps].concat(), Some((1, 2))),
        ([&[2, 4, 5, 180, 4, 2][..], &stamps, &[1, 3, 3, 7]].concat(), Some((1, 2))),
        ([&stamps[..], &[0, 0]].concat(), Some((1, 2))),
        (vec![0, 1, 8, 10], None),
        (vec![2, 0, 8, 10], None),
        (vec![1, 1, 8, 10, 0, 0, 0, 1], None),
        (vec![254, 40, 1, 1], None),
        (vec![], None),
    ];
    for (options, want) in rows {
        let bytes = v4(TCP, &tcp(&options, b"payload"));
        let packet = whole(LinkType::Raw, &bytes).unwrap();
        let tcp = packet.tcp().unwrap();
        assert_eq!((tcp.timestamps(), tcp.payload), (want, &b"payload"[..]), "{options:?}");
    }
}

#[test]
fn what_the_snap_length_cut_is_told_from_what_is_malformed() {
    let frame = ethernet(&[(0x8100, 5)], &v4_with(&[1; 8], 0, TCP, &tcp(&[1; 12], &[9; 100])));
    let wire = frame.len() as u32;
    for kept in 0..frame.len() {
        let cut = parse(LinkType::Ethernet, &frame[..kept], wire);
        let short = whole(LinkType::Ethernet, &frame[..kept]);
        if kept < 18 + 20 {
            assert_eq!(cut.unwrap_err(), PacketError::Cut, "{kept}");
            assert!(matches!(short.unwrap_err(), PacketError::LinkHeader | PacketError::Short), "{kept}");
            continue;
        }
        assert_eq!(short.unwrap_err(), PacketError::TotalLength, "{kept}");
        let packet = cut.unwrap();
        assert!(packet.is_cut() && packet.length == 160 && packet.rest_length() == 132);
        assert_eq!(packet.ports().is_some(), kept >= 18 + 28 + 4, "{kept}");
        assert_eq!(packet.tcp().is_some(), kept >= 18 + 28 + 20, "{kept}");
        let Some(tcp) = packet.tcp() else { continue };
        assert_eq!((tcp.payload_length, tcp.options.len()), (100, 12.min(kept - 66)), "{kept}");
    }
    // A chain that was cut leaves the packet, with the header that is not there as its protocol.
    let long = v6(0, &[&[60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0][..], &udp(1, 2, &[])].concat());
    let packet = parse(LinkType::Raw, &long[..50], long.len() as u32).unwrap();
    assert_eq!((packet.protocol, packet.transport, packet.ports()), (60, 48, None));
}

#[test]
fn each_contradiction_has_its_reason() {
    let good = v4(UDP, &udp(1, 2, &[]));
    let edited = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let nine_headers = v6(0, &[[0, 0, 0, 0, 0, 0, 0, 0].repeat(9), udp(1, 2, &[])].concat());
    let rows: Vec<(PacketError, LinkType, Vec<u8>)> = vec![
        (PacketError::NotIp, LinkType::Ethernet, ethernet_of(&[], 0x0806, &[0; 28])),
        (PacketError::NotIp, LinkType::Ethernet, ethernet_of(&[], 38, &[0x42; 38])),
        (PacketError::NotIp, LinkType::Raw, edited(0, 0x55)),
        (PacketError::NotIp, LinkType::Null, vec![9, 0, 0, 0, 0x45]),
        (PacketError::LinkHeader, LinkType::Ethernet, vec![0; 13]),
        (PacketError::LinkHeader, LinkType::CookedV2, vec![8, 0, 0, 0]),
        (PacketError::TooManyTags, LinkType::Ethernet, ethernet(&[(0x8100, 1); 5], &good)),
        (PacketError::TooManyTags, LinkType::Ethernet, ethernet_of(&[], 0x8847, &[0; 64])),
        (PacketError::Short, LinkType::Raw, good[..19].to_vec()),
        (PacketError::Short, LinkType::Raw, vec![]),
        (PacketError::Version, LinkType::Ethernet, ethernet_of(&[], 0x86dd, &good)),
        (PacketError::HeaderLength, LinkType::Raw, edited(0, 0x44)),
        (PacketError::HeaderLength, LinkType::Raw, edited(0, 0x4f)),
        (PacketError::TotalLength, LinkType::Raw, edited(3, 29)),
        (PacketError::TotalLength, LinkType::Raw, edited(3, 19)),
        (PacketError::Extension, LinkType::Raw, v6(0, &[17, 1, 0, 0, 0, 0, 0, 0])),
        (PacketError::Extension, LinkType::Raw, v6(44, &[17, 0, 0, 0])),
        (PacketError::TooManyExtensions, LinkType::Raw, nine_headers),
    ];
    let mut seen = std::collections::BTreeSet::from([PacketError::Cut.index()]);
    for (number, (want, link, frame)) in rows.into_iter().enumerate() {
        assert_eq!(whole(link, &frame), Err(want), "row {number}");
        assert_eq!(want.is_malformed(), want != PacketError::NotIp, "row {number}");
        seen.insert(want.index());
    }
    assert_eq!(seen.len(), PacketError::ALL.len(), "a reason without a row");
    assert!(PacketError::ALL.iter().enumerate().all(|(place, reason)| reason.index() == place));
}

#[test]
fn padding_is_no_part_of_the_packet_and_lengths_beyond_16_bits_are_the_frames() {
    let mut frame = ethernet(&[], &v4(UDP, &udp(1, 2, &[])));
    frame.resize(60, 0xee);
    let packet = whole(LinkType::Ethernet, &frame).unwrap();
    assert_eq!((packet.bytes.len(), packet.length, packet.frame_length), (28, 28, 60));
    let mut merged = v4(TCP, &tcp(&[], &[0; 60]));
    merged[2..4].fill(0);
    assert_eq!(parse(LinkType::Raw, &merged, 100_000).unwrap().length, 100_000);
    let mut merged = v6(0, &[&[6, 0, 0xc2, 4, 0, 1, 0x86, 0xa0][..], &tcp(&[], &[0; 60])].concat());
    merged[4..6].fill(0);
    let packet = parse(LinkType::Raw, &merged, 100_040).unwrap();
    assert_eq!((packet.length, packet.tcp().unwrap().payload_length), (100_040, 100_040 - 68));
}

#[test]
fn tunnels_are_opened_by_rule_only() {
    let inner = v6(UDP, &udp(7, 9, b"x"));
    let all: Tunnels = "gre, ip,vxlan,gtp".parse().unwrap();
    let bridged = ethernet(&[(0x8100, 5)], &inner);
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("ip", v4(IPV6, &inner)),
        ("ip", v6(IPV6, &inner)),
        ("gre", v4(GRE, &[&[0, 0, 0x86, 0xdd], &inner[..]].concat())),
        ("gre", v4(GRE, &[&[0xb0, 0, 0x86, 0xdd, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2], &inner[..]].concat())),
        ("gre", v6(GRE, &[&[0, 0, 0x65, 0x58], &bridged[..]].concat())),
        ("vxlan", v4(UDP, &udp(50000, 4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], &bridged[..]].concat()))),
        ("gtp", v4(UDP, &udp(2152, 2152, &[&[0x30, 255, 0, 9, 0, 0, 0, 1], &inner[..]].concat()))),
        (
            "gtp",
            v4(
                UDP,
                &udp(
                    2152,
                    2152,
                    &[&[0x34, 255, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], &inner[..]].concat(),
                ),
            ),
        ),
    ];
    for (number, (name, outer)) in rows.into_iter().enumerate() {
        let frame = ethernet(&[(0x8100, 3)], &outer);
        let wire = frame.len() as u32;
        let open = parse_with(all, LinkType::Ethernet, &frame, wire).unwrap();
        assert_eq!((open.version, open.ports(), open.vlans), (6, Some((7, 9)), [3, 0]), "row {number}");
        assert_eq!((open.bytes, open.frame_length), (&inner[..], wire), "row {number}");
        assert_eq!(
            parse_with(name.parse().unwrap(), LinkType::Ethernet, &frame, wire),
            Ok(open),
            "row {number}"
        );
        let shut = parse_with(Tunnels::default(), LinkType::Ethernet, &frame, wire).unwrap();
        assert_eq!(shut.bytes, &outer[..], "row {number}");
    }
    assert_eq!("vxlan=8472".parse::<Tunnels>().unwrap().vxlan, Some(8472));
    assert!("vlan".parse::<Tunnels>().unwrap_err().to_string().contains("'vlan'"));
}

#[test]
fn tunnels_in_tunnels_end_and_strange_insides_leave_the_outside() {
    let rules: Tunnels = "ip,gre".parse().unwrap();
    let nested = (0..6).fold(v4(UDP, &udp(1, 2, &[])), |inner, _| v4(IPV4, &inner));
    let packet = parse_with(rules, LinkType::Raw, &nested, nested.len() as u32).unwrap();
    assert_eq!((packet.protocol, packet.length), (IPV4, 28 + 2 * 20), "four of six");
    let keepalive = v4(GRE, &[0, 0, 0, 0]);
    let lie = v4(IPV4, &[0x45; 8]);
    let piece = v4_with(&[], 0x2000, IPV4, &v4(UDP, &udp(1, 2, &[])));
    for outer in [keepalive, lie, piece] {
        let packet = parse_with(rules, LinkType::Raw, &outer, outer.len() as u32).unwrap();
        assert_eq!(packet.bytes, &outer[..]);
    }
}

/// Returns the ports within a packet without a link layer, if these rules open it.
fn opened(rules: &str, outer: &[u8]) -> Option<(u16, u16)> {
    let packet = parse_with(rules.parse().unwrap(), LinkType::Raw, outer, outer.len() as u32).unwrap();
    packet.ports().filter(|_| packet.bytes.len() < outer.len())
}

#[test]
fn a_rule_opens_tunnels_of_its_kind_and_no_others() {
    let inner = v6(UDP, &udp(7, 9, b"x"));
    let rows: [(&str, &str, Vec<u8>); 5] = [
        ("ip", "gre,vxlan,gtp", v4(IPV6, &inner)),
        ("ip", "gre,vxlan,gtp", v6(IPV4, &v4(UDP, &udp(7, 9, b"x")))),
        ("gre", "ip,vxlan,gtp", v4(GRE, &[&[0, 0, 0x86, 0xdd], &inner[..]].concat())),
        (
            "vxlan",
            "gre,ip,gtp,vxlan=4788",
            v4(UDP, &udp(1, 4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], &ethernet(&[], &inner)[..]].concat())),
        ),
        (
            "gtp",
            "gre,ip,vxlan",
            v4(UDP, &udp(1, 2152, &[&[0x30, 255, 0, 0, 0, 0, 0, 1], &inner[..]].concat())),
        ),
    ];
    for (own, others, outer) in rows {
        assert_eq!((opened(own, &outer), opened(others, &outer)), (Some((7, 9)), None), "{own}");
    }
}

#[test]
fn each_optional_field_of_gre_is_four_bytes_long() {
    let inner = v4(UDP, &udp(7, 9, b"x"));
    let gre = |flags: u8, version: u8, fields: usize| {
        let outer = v4(GRE, &[&[flags, version, 8, 0][..], &vec![0; 4 * fields][..], &inner[..]].concat());
        opened("gre", &outer)
    };
    let found = Some((7, 9));
    // Checksum, key and sequence number.
    assert_eq!([0x80, 0x20, 0x10].map(|flags| gre(flags, 0, 1)), [found; 3]);
    assert_eq!([0xa0, 0x90, 0x30].map(|flags| gre(flags, 0, 2)), [found; 3]);
    // A source route, and PPTP.
    assert_eq!((gre(0x40, 0, 1), gre(0, 1, 0)), (None, None));
}

#[test]
fn a_vxlan_header_without_a_valid_network_is_not_opened() {
    let inner = ethernet(&[], &v4(UDP, &udp(7, 9, b"x")));
    let vxlan = |flags: u8| {
        let payload = [&[flags, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
        opened("vxlan", &v4(UDP, &udp(1, 4789, &payload)))
    };
    assert_eq!([0x08, 0xff, 0xf7].map(vxlan), [Some((7, 9)), Some((7, 9)), None]);
}

#[test]
fn extensions_of_gtp_are_followed_but_not_without_end() {
    let inner = v4(UDP, &udp(7, 9, b"x"));
    let gtp = |head: &[u8]| {
        let payload = [&[head[0], head[1], 0, 0, 0, 0, 0, 1][..], &head[2..], &inner[..]].concat();
        opened("gtp", &v4(UDP, &udp(1, 2152, &payload)))
    };
    let found = Some((7, 9));
    // A sequence number, or the number of an N-PDU. Without an extension its type does not count.
    assert_eq!(gtp(&[0x32, 255, 0, 1, 0, 0x85]), found);
    assert_eq!(gtp(&[0x31, 255, 0, 1, 0, 0x85]), found);
    // Extensions of one and two times four bytes, the type of the next at the end of each.
    assert_eq!(gtp(&[0x34, 255, 0, 0, 0, 0x85, 1, 0, 0, 0x85, 2, 0, 0, 0, 0, 0, 0, 0]), found);
    let chain = |extensions: usize| {
        let mut head = vec![0x34, 255, 0, 0, 0, 0x85];
        head.extend([1, 0, 0, 0x85].repeat(extensions - 1));
        head.extend([1, 0, 0, 0]);
        gtp(&head)
    };
    assert_eq!((chain(1), chain(4), chain(5)), (found, found, None));
    // An extension of no bytes, another message, another version, and GTP'.
    assert_eq!(gtp(&[0x34, 255, 0, 0, 0, 0x85, 0, 0, 0, 0]), None);
    assert_eq!((gtp(&[0x30, 254]), gtp(&[0x50, 255]), gtp(&[0x20, 255])), (None, None, None));
}

#[test]
fn links_keep_their_number() {
    for link in LinkType::ALL {
        assert_eq!(LinkType::of_number(link.number().into()), Some(link));
    }
    assert_eq!(LinkType::of_number(105), None, "IEEE 802.11 without radiotap");
}

/// Whatever was read lies within the frame and agrees with itself.
fn hold(link: LinkType, frame: &[u8], wire: u32) {
    let all: Tunnels = "gre,ip,vxlan,gtp".parse().unwrap();
    let Ok(packet) = parse_with(all, link, frame, wire) else { return };
    assert!(packet.bytes.len() <= frame.len() && packet.bytes.len() as u64 <= u64::from(packet.length));
    assert!(packet.length <= packet.frame_length && packet.transport as u64 <= u64::from(packet.length));
    assert!(packet.version == 4 || packet.version == 6);
    if let Some(tcp) = packet.tcp() {
        let _ = tcp.timestamps();
        assert!(tcp.payload.len() as u64 <= u64::from(tcp.payload_length));
    }
    let _ = packet.udp();
    let _ = packet.icmp().and_then(|icmp| icmp.echo());
    assert!(packet.ports().is_none() || !packet.later_fragment);
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..120), wire in any::<u32>()) {
        for link in LinkType::ALL {
            hold(link, &bytes, wire);
            hold(link, &bytes, 0);
        }
    }

    #[test]
    fn no_edit_of_a_good_frame_breaks_the_reader(
        kind in 0..5_usize,
        edits in prop::collection::vec((0..140_usize, any::<u8>()), 0..4),
        kept in 0..200_usize,
        missing in 0..2000_u32,
    ) {
        let datagram = udp(2152, 4789, &[8; 40]);
        let mut frame = match kind {
            0 => ethernet(&[(0x88a8, 1), (0x8100, 2)], &v4(TCP, &tcp(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], &[1; 20]))),
            1 => ethernet(&[], &v6(0, &[&[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 1][..], &datagram].concat())),
            2 => ethernet(&[], &v4(GRE, &[&[0x20, 0, 8, 0, 0, 0, 0, 1], &v4(UDP, &datagram)[..]].concat())),
            3 => ethernet(&[], &v4(IPV6, &v6(UDP, &datagram))),
            _ => ethernet_of(&[(0x8100, 9)], 0x8847, &[&[0, 0, 1, 9], &v6(TCP, &tcp(&[], &[]))[..]].concat()),
        };
        for (at, byte) in edits {
            let place = at % frame.len();
            frame[place] = byte;
        }
        frame.truncate(kept);
        hold(LinkType::Ethernet, &frame, frame.len() as u32 + missing);
    }

    #[test]
    fn what_was_written_is_read(
        six in any::<bool>(),
        ports in any::<(u16, u16)>(),
        payload in prop::collection::vec(any::<u8>(), 0..64),
        tags in prop::collection::vec(1..4095_u16, 0..3),
        padding in 0..20_usize,
    ) {
        let datagram = udp(ports.0, ports.1, &payload);
        let packet = if six { v6(UDP, &datagram) } else { v4(UDP, &datagram) };
        let tagged: Vec<(u16, u16)> = tags.iter().map(|id| (0x8100, *id)).collect();
        let mut frame = ethernet(&tagged, &packet);
        frame.resize(frame.len() + padding, 0);
        let read = whole(LinkType::Ethernet, &frame).unwrap();
        prop_assert_eq!(read.bytes, &packet[..]);
        prop_assert_eq!(read.ports(), Some(ports));
        prop_assert_eq!(read.udp().unwrap().payload, &payload[..]);
        let want = [tags.first().copied().unwrap_or(0), tags.get(1).copied().unwrap_or(0)];
        prop_assert_eq!(read.vlans, want);
    }
}
