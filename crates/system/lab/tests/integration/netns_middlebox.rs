//! Do real sockets meet the middleboxes that a scenario names? Needs root.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};

use netaware_io::clock;
use netaware_lab::{Lab, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab;
use netaware_units::Span;

const HOP: &str = "[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\n";

/// For what must come, however busy the machine is.
const PATIENCE: Span = Span::from_secs(10);

fn listener(lab: &Lab, address: &str) -> TcpListener {
    lab.within(Side::B, || TcpListener::bind(address)).unwrap()
}

fn connected(lab: &Lab, address: &str) -> TcpStream {
    let stream = lab.within(Side::A, || TcpStream::connect(address)).unwrap();
    stream.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
    stream
}

#[test]
fn a_nat_hides_host_a_and_forgets_its_port_when_it_rebinds() {
    if !permitted() {
        return;
    }
    let lab = lab::up(&format!("{HOP}[nat]\nkind = 'nat44'\nidle = '30s'\nrebinds = ['3s']\n"), 1);
    let bind = |side| {
        let socket = lab.within(side, || UdpSocket::bind((lab.address(side, IpVersion::V4), 9))).unwrap();
        socket.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
        socket
    };
    let (near, far) = (bind(Side::A), bind(Side::B));
    let mut buffer = [0; 9];
    near.send_to(b"asked", "10.77.0.2:9").unwrap();
    let (length, outside) = far.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], outside.ip().to_string().as_str()), (&b"asked"[..], "10.77.0.3"));
    far.send_to(b"answer", outside).unwrap();
    let (length, from) = near.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from.to_string().as_str()), (&b"answer"[..], "10.77.0.2:9"));
    let rebinding = lab.zero() + Span::from_millis(3100);
    clock::sleep((rebinding - clock::now()).or_zero());
    near.send_to(b"again", "10.77.0.2:9").unwrap();
    let (_, other) = far.recv_from(&mut buffer).unwrap();
    assert_eq!(other.ip(), outside.ip());
    assert_ne!(other.port(), outside.port());
}

#[test]
fn a_host_with_ipv6_alone_reaches_one_with_ipv4_alone_through_a_nat64() {
    if !permitted() {
        return;
    }
    let more = "v4 = { mtu = 1480 }\n[host.a]\nlacks = 'v4'\n[host.b]\nlacks = 'v6'\n[nat]\nkind = 'nat64'\nidle = '30s'\n";
    let lab = lab::up(&format!("{HOP}{more}"), 1);
    let listener = listener(&lab, "10.77.0.2:9");
    let mut near = connected(&lab, "[64:ff9b::10.77.0.2]:9");
    let (mut far, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), "10.77.0.3");
    // More than a segment each way: lengths and checksums are those of both versions.
    let sent: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut came = vec![0; sent.len()];
            far.read_exact(&mut came).unwrap();
            far.write_all(&came).unwrap();
        });
        near.write_all(&sent).unwrap();
        let mut back = vec![0; sent.len()];
        near.read_exact(&mut back).unwrap();
        assert!(back == sent);
    });
}

#[test]
fn both_ends_of_a_connection_are_reset_after_its_bytes() {
    if !permitted() {
        return;
    }
    let filter = "filters = [{ protocol = 'tcp', after = '20kB', action = 'reset' }]\n";
    let lab = lab::up(&format!("{HOP}{filter}"), 1);
    for address in ["10.77.0.2:9", "[fd77::2]:9"] {
        let listener = listener(&lab, address);
        let mut near = connected(&lab, address);
        let (mut far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
        std::thread::scope(|scope| {
            let receiver = scope
                .spawn(move || std::iter::repeat_with(|| far.read(&mut [0; 4096])).find_map(Result::err));
            let deadline = clock::now() + PATIENCE;
            let refused = std::iter::repeat_with(|| near.write(&[7; 1000])).find_map(Result::err).unwrap();
            assert!(clock::now() < deadline, "the sender is told");
            assert!(
                matches!(refused.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                "{refused}"
            );
            let ended = receiver.join().unwrap().unwrap();
            assert_eq!(ended.kind(), ErrorKind::ConnectionReset, "{address}");
        });
    }
}
