//! Does a capture see every packet of a real interface, and count each one that it does not? Run
//! one at a time: `cargo xtask netns`.

#![expect(unsafe_code, reason = "segmentation has no safe wrapper")]

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::Command;

use netaware_capture::{
    Capture, Counts, Direction, FileSource, Frame, Keep, Merging, OpenError, Options, Spread, drop_privileges,
};
use netaware_netns::{IpVersion, Pair, Side, permitted};
use netaware_units::{ByteCount, ClockSource, Span, Wall};
use netaware_wire::packet::{self, LinkType};
use netaware_wire::pcap::{Record, Writer};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const PORT: u16 = 9000;
/// Packets of the overload.
const SENT: u32 = 30_000;
const PATIENCE: Span = Span::from_millis(200);
/// More than the packets of any test here.
const MAX_READS: usize = 1_000_000;
const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn options() -> Options {
    Options { filter: Some(format!("udp dst port {PORT}")), ..Options::new("lan") }
}

fn open(side: &Side, options: &Options) -> Capture {
    side.within(|| Capture::open(options).map_err(io::Error::other)).unwrap_or_else(|error| panic!("{error}"))
}

/// A socket at the left, and one at the right so that nobody answers "port unreachable".
fn sockets(pair: &Pair, version: IpVersion) -> (UdpSocket, UdpSocket) {
    let bind = |side: &Side, port| {
        let address = side.address(version);
        side.within(|| UdpSocket::bind((address, port))).unwrap()
    };
    let (sender, receiver) = (bind(pair.left(), 0), bind(pair.right(), PORT));
    meet(pair, version);
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (sender, receiver)
}

/// Has the neighbour's address looked up, on another port: packets that wait for it may be dropped.
fn meet(pair: &Pair, version: IpVersion) {
    let bind = |side: &Side| side.within(|| UdpSocket::bind((side.address(version), 0))).unwrap();
    let (near, far) = (bind(pair.left()), bind(pair.right()));
    far.set_read_timeout(Some(Span::from_secs(5).to_std())).unwrap();
    near.send_to(b"hello", far.local_addr().unwrap()).unwrap();
    far.recv(&mut [0; 5]).unwrap();
}

fn send(socket: &UdpSocket, count: u32, length: usize) {
    let mut payload = vec![0; length];
    for number in 0..count {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        socket.send(&payload).unwrap();
    }
}

/// All that comes until nothing does for [`PATIENCE`], twice: the kernel's timer that hands a block
/// over waits for its core to wake (it is deferrable), and on an idle host the end of our first
/// wait is what wakes it.
fn drain(capture: &mut Capture, see: &mut dyn FnMut(Frame<'_>)) {
    for _ in 0..MAX_READS {
        if capture.read(PATIENCE, see).unwrap() == 0 && capture.read(PATIENCE, see).unwrap() == 0 {
            return;
        }
    }
    panic!("packets do not cease to come");
}

fn drained(capture: &mut Capture) -> Counts {
    drain(capture, &mut |_| {});
    capture.counts()
}

#[test]
fn every_packet_of_both_versions_is_seen_once_in_order_with_its_stamp() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("exact").unwrap();
    for version in BOTH {
        let mut capture = open(pair.right(), &options());
        let mut leaving = open(pair.left(), &Options { direction: Direction::Out, ..options() });
        let mut nothing = open(pair.left(), &Options { direction: Direction::In, ..options() });
        let (sender, _receiver) = sockets(&pair, version);
        send(&sender, 5000, 100);
        let mut numbers = Vec::new();
        let mut last = Wall(0);
        drain(&mut capture, &mut |frame| {
            let packet = packet::parse(frame.link, frame.bytes, frame.wire_length).unwrap();
            assert_eq!(packet.version, if version == IpVersion::V4 { 4 } else { 6 });
            assert_eq!(packet.source, pair.left().address(version));
            assert!(!frame.outgoing && frame.stamped_by == ClockSource::Kernel && frame.at >= last);
            last = frame.at;
            let payload = packet.udp().unwrap().payload;
            numbers.push(u32::from_be_bytes(*payload.first_chunk().unwrap()));
        });
        assert!(numbers.iter().copied().eq(0..5000), "{} came", numbers.len());
        let counts = capture.counts();
        assert_eq!((counts.seen, counts.lost_ring, counts.merged), (5000, 0, 0));
        assert!(!counts.link_was_down && counts.lost_nic.is_none(), "a veth is no card");
        assert_eq!(drained(&mut leaving).seen, 5000);
        assert_eq!(drained(&mut nothing).seen, 0);
        assert_eq!(capture.counts().seen, 0, "counts are told once");
    }
}

#[test]
fn an_overload_on_purpose_is_counted_to_the_packet() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("overload").unwrap();
    let tiny = Options { ring: ByteCount(64 << 10), snap: 128, ..options() };
    let mut capture = open(pair.right(), &tiny);
    let (sender, _receiver) = sockets(&pair, IpVersion::V4);
    // Nobody reads until all was sent.
    send(&sender, SENT, 64);
    let counts = drained(&mut capture);
    assert!(counts.seen > 0 && counts.lost_ring > 0 && counts.freezes > 0, "{counts:?}");
    // What was lost before the ring is counted without looking at the filter, so it may be more
    // than ours.
    let known = counts.seen + counts.lost_ring;
    assert!(known <= u64::from(SENT) && known + counts.lost_kernel >= u64::from(SENT), "{counts:?}");
    assert!(counts.lost_kernel > 0 || known == u64::from(SENT), "{counts:?}");
    // And then it is as before.
    send(&sender, 50, 64);
    let counts = drained(&mut capture);
    assert_eq!((counts.seen, counts.lost_ring), (50, 0));
}

#[test]
fn merged_packets_are_told_and_can_be_refused() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("merged").unwrap();
    let error = pair
        .left()
        .within(|| Ok(Capture::open(&Options { merging: Merging::Refuse, ..options() }).map(|_| ())));
    assert!(matches!(error.unwrap(), Err(OpenError::Merging { names, .. }) if names.contains(&"gso")));
    let mut capture = open(pair.right(), &options());
    assert_eq!(capture.offloads().gso, Some(true));
    for version in BOTH {
        let (sender, _receiver) = sockets(&pair, version);
        segment(&sender, 100);
        // Ten packets in one frame, which is less than the MTU; and 32 in one that is more.
        sender.send(&[7; 1000]).unwrap();
        sender.send(&[7; 3200]).unwrap();
        segment(&sender, 0);
        sender.send(&[7; 1000]).unwrap();
        let mut segments = Vec::new();
        drain(&mut capture, &mut |frame| segments.push(frame.segments));
        assert_eq!(segments, [10, 32, 1], "{version:?}");
        assert_eq!(capture.counts().merged, 2);
    }
}

/// `UDP_SEGMENT`: what is sent is cut into datagrams of this size behind the capture.
fn segment(socket: &UdpSocket, size: i32) {
    const SOL_UDP: i32 = 17;
    const UDP_SEGMENT: i32 = 103;
    // SAFETY: `size` is what this option takes and outlives the call.
    let answer =
        unsafe { libc::setsockopt(socket.as_raw_fd(), SOL_UDP, UDP_SEGMENT, (&raw const size).cast(), 4) };
    assert_eq!(answer, 0);
}

#[test]
fn an_interface_that_goes_down_changes_its_mtu_or_is_made_anew_is_followed() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("down").unwrap();
    let mut capture = open(pair.right(), &options());
    let (sender, _receiver) = sockets(&pair, IpVersion::V4);
    send(&sender, 10, 100);
    let counts = drained(&mut capture);
    assert_eq!((counts.seen, counts.seen_bytes, counts.link_was_down), (10, 1420, false));
    pair.right().ip(&["link", "set", "lan", "down"]).unwrap();
    assert_eq!(capture.read(PATIENCE, &mut |_| {}).unwrap(), 0);
    assert!(capture.counts().link_was_down);
    pair.right().ip(&["link", "set", "lan", "up"]).unwrap();
    pair.right().ip(&["link", "set", "lan", "mtu", "1400"]).unwrap();
    send_when_up(&sender, &mut capture);
    let counts = capture.counts();
    assert!(counts.link_was_down && counts.mtu_changed && capture.mtu() == 1400, "{counts:?}");
    send(&sender, 10, 100);
    let counts = drained(&mut capture);
    assert_eq!((counts.seen, counts.link_was_down, counts.mtu_changed), (10, false, false));
}

#[test]
fn a_new_interface_of_the_same_name_is_taken_for_the_old() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("anew").unwrap();
    let mut capture = open(pair.right(), &Options { filter: None, promiscuous: true, ..options() });
    pair.right().ip(&["link", "delete", "lan"]).unwrap();
    assert_eq!(capture.read(Span::ZERO, &mut |_| {}).unwrap(), 0);
    assert!(capture.counts().link_was_down);
    pair.right().ip(&["link", "add", "lan", "type", "veth", "peer", "name", "far"]).unwrap();
    for device in ["far", "lan"] {
        pair.right().ip(&["link", "set", device, "up"]).unwrap();
    }
    // Both ends ask for neighbours and routers by themselves once they are up.
    let mut seen = 0;
    for _ in 0..50 {
        seen += capture.read(PATIENCE, &mut |_| {}).unwrap();
        if seen > 0 {
            break;
        }
    }
    assert!(seen > 0 && capture.counts().link_was_down);
    let mut shown = pair.right().command("ip");
    let shown = shown.args(["-d", "link", "show", "lan"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("promiscuity 1"), "packets to others are seen there as well: {shown}");
}

#[test]
fn captures_that_share_an_interface_end_when_another_takes_its_name() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("sharedanew").unwrap();
    let open = || Capture::open_several(&options(), 2, Spread::Flow).map_err(io::Error::other);
    let mut captures = pair.right().within(open).unwrap();
    pair.right().ip(&["link", "delete", "lan"]).unwrap();
    for capture in &mut captures {
        assert_eq!(capture.read(Span::ZERO, &mut |_| {}).unwrap(), 0, "it may come back");
    }
    pair.right().ip(&["link", "add", "lan", "type", "veth", "peer", "name", "far"]).unwrap();
    for capture in &mut captures {
        let error = capture.read(PATIENCE, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("another interface has its name"), "{error}");
    }
}

#[test]
fn an_interface_that_is_no_card_does_not_stamp_and_says_what_to_do() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("stamps").unwrap();
    let nic = Options { stamps: ClockSource::Nic, ..options() };
    let opened = pair.right().within(|| Ok(Capture::open(&nic).map(|_| ())));
    let Err(error @ OpenError::NoNicStamps { .. }) = opened.unwrap() else { panic!("a veth has no clock") };
    assert!(error.to_string().starts_with("lan does not stamp packets itself"), "{error}");
    assert!(error.to_string().contains("take the kernel's stamps, or a card"), "{error}");
}

/// The link needs a moment, and the neighbour must be found anew.
fn send_when_up(sender: &UdpSocket, capture: &mut Capture) {
    for _ in 0..50 {
        let _ = sender.send(&[0; 100]);
        if capture.read(Span::from_millis(100), &mut |_| {}).unwrap() > 0 {
            return;
        }
    }
    panic!("nothing came within 5 s");
}

#[test]
fn several_captures_share_the_packets_flow_by_flow_both_directions_together() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("shared").unwrap();
    let both = Options { filter: Some(format!("udp port {PORT}")), ..options() };
    let open = || Capture::open_several(&both, 2, Spread::Flow).map_err(io::Error::other);
    let mut captures = pair.right().within(open).unwrap();
    let receiver = pair.right().within(|| UdpSocket::bind((pair.right().v4(), PORT))).unwrap();
    meet(&pair, IpVersion::V4);
    let to = receiver.local_addr().unwrap();
    for flow in 0..20 {
        let from = SocketAddr::new(IpAddr::V4(pair.left().v4()), 20_000 + flow);
        let sender = pair.left().within(|| UdpSocket::bind(from)).unwrap();
        sender.connect(to).unwrap();
        send(&sender, 50, 64);
        for _ in 0..50 {
            receiver.send_to(&[0; 64], from).unwrap();
        }
    }
    let mut owners = std::collections::BTreeMap::new();
    let mut seen = [0; 2];
    for (number, capture) in captures.iter_mut().enumerate() {
        drain(capture, &mut |frame| {
            let packet = packet::parse(frame.link, frame.bytes, frame.wire_length).unwrap();
            let flow = packet.ports().map(|(a, b)| (a.min(b), a.max(b)));
            assert_eq!(*owners.entry(flow).or_insert(number), number, "a flow was torn apart");
            seen[number] += 1;
        });
    }
    assert_eq!(seen[0] + seen[1], 2000, "{seen:?}");
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

/// Packets of one flow, sent from one core, that each of two captures at the other end sees.
fn shares(pair: &Pair, spread: Spread, core: usize) -> [u64; 2] {
    let open = || Capture::open_several(&options(), 2, spread).map_err(io::Error::other);
    let captures = pair.right().within(open).unwrap();
    let (sender, _receiver) = sockets(pair, IpVersion::V4);
    // What a veth is given by a core is received by that core.
    let sent = pair.left().within(|| {
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only)?;
        send(&sender, 100, 64);
        Ok(())
    });
    sent.unwrap();
    let mut captures = captures.into_iter();
    let mut next = || drained(&mut captures.next().unwrap());
    let counts = [next(), next()];
    assert_eq!(counts.map(|counts| counts.lost_ring), [0; 2]);
    counts.map(|counts| counts.seen)
}

#[test]
fn captures_can_share_in_turn_or_by_the_core_that_received() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("spread").unwrap();
    // The hosts' own IPv6 packets would be shared out in turn as well, and shift ours by one.
    for side in [pair.left(), pair.right()] {
        side.within(|| std::fs::write("/proc/sys/net/ipv6/conf/lan/disable_ipv6", "1")).unwrap();
    }
    assert_eq!(shares(&pair, Spread::Turn, 0), [50, 50]);
    assert_eq!(shares(&pair, Spread::Core, 0), [100, 0]);
    if sched_getaffinity(None).unwrap().is_set(1) {
        assert_eq!(shares(&pair, Spread::Core, 1), [0, 100]);
    } else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "there is one core, and CI=true");
        eprintln!("SKIPPED: there is no second core to receive");
    }
}

#[test]
fn vlan_tags_are_where_they_were_and_filters_see_them() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("vlan").unwrap();
    let tagged = Options { filter: Some("vlan 5 and udp port 9000".to_owned()), ..Options::new("lan") };
    let service = Options { filter: Some("vlan 100 and vlan 5".to_owned()), ..Options::new("lan") };
    let mut all = open(pair.right(), &Options { filter: Some("udp port 9000".to_owned()), ..tagged.clone() });
    let (mut tagged, mut service) = (open(pair.right(), &tagged), open(pair.right(), &service));
    let inject = |tags: &[u8]| pair.left().inject(&datagram(tags)).unwrap();
    inject(&[]);
    inject(&[0x81, 0, 0, 5]);
    inject(&[0x88, 0xa8, 0, 100, 0x81, 0, 0, 5]);
    let vlans = |capture: &mut Capture| {
        let mut found = Vec::new();
        drain(capture, &mut |frame| {
            let packet = packet::parse(frame.link, frame.bytes, frame.wire_length).unwrap();
            found.push((packet.vlans, packet.ports(), frame.wire_length));
        });
        found
    };
    let ports = Some((9, PORT));
    // The kernel's program sees frames without their outer tag.
    assert_eq!(vlans(&mut all), [([0, 0], ports, 42), ([5, 0], ports, 46)]);
    assert_eq!(vlans(&mut tagged), [([5, 0], ports, 46)]);
    assert_eq!(vlans(&mut service), [([100, 5], ports, 50)]);
}

/// A broadcast frame with an empty UDP datagram behind these tags.
fn datagram(tags: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1];
    bytes.extend(tags);
    bytes.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 255, 0, 9]);
    bytes.extend(PORT.to_be_bytes());
    bytes.extend([0, 8, 0, 0]);
    bytes
}

/// Runs in a process of its own, which gives its privileges back: see the test below.
#[test]
#[ignore = "started by the test below in a process of its own"]
fn child_without_privileges() {
    let keep = if std::env::var("KEEP").as_deref() == Ok("raw") { Keep::RawSockets } else { Keep::Nothing };
    let mut capture = Capture::open(&Options { direction: Direction::In, ..Options::new("lo") }).unwrap();
    drop_privileges("nobody", keep).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    socket.send(b"hello").unwrap();
    let counts = drained(&mut capture);
    assert_eq!((counts.seen, counts.link_was_down), (1, false), "an open capture goes on");
    let again = Capture::open(&Options::new("lo"));
    assert_eq!(again.is_ok(), keep == Keep::RawSockets, "{again:?}");
    assert!(std::fs::File::open("/etc/shadow").is_err(), "nobody reads this");
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let want = if keep == Keep::RawSockets { "0000000000002000" } else { "0000000000000000" };
    assert!(line("CapEff").ends_with(want) && line("CapPrm").ends_with(want), "{status}");
    assert!(line("NoNewPrivs").ends_with('1') && !line("Uid").contains("\t0\t"), "{status}");
    println!("child is through");
}

#[test]
fn privileges_are_given_back_and_an_open_capture_goes_on() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("privileges").unwrap();
    for keep in ["nothing", "raw"] {
        let mut command: Command = pair.left().command(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "netns_capture::child_without_privileges",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ]);
        let output = command.env("KEEP", keep).output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && words.contains("child is through"), "{keep}: {output:?}");
    }
}

#[test]
fn what_was_captured_live_is_the_same_from_a_file() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("file").unwrap();
    let mut capture = open(pair.right(), &options());
    let (sender, _receiver) = sockets(&pair, IpVersion::V6);
    send(&sender, 100, 300);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcap");
    let mut writer = Writer::pcap(std::fs::File::create(&path).unwrap(), LinkType::Ethernet, 256).unwrap();
    let mut live = Vec::new();
    drain(&mut capture, &mut |frame| {
        live.push((frame.at, frame.wire_length, frame.bytes.to_vec()));
        let Frame { at, wire_length, bytes, .. } = frame;
        let record = Record { at, wire_length, bytes, link: 1, interface: 0, outgoing: None };
        writer.write(&record).unwrap();
    });
    writer.finish().unwrap();
    let mut source = FileSource::open(&path, Some("udp dst port 9000"), Direction::Both).unwrap();
    let mut read = Vec::new();
    source
        .read(Span::ZERO, &mut |frame| read.push((frame.at, frame.wire_length, frame.bytes.to_vec())))
        .unwrap();
    assert_eq!((read.len(), read[0].2.len()), (100, 256));
    assert_eq!(read, live);
}
