//! What a stream costs until the first byte is there, beside a plain TCP connection over the same
//! path of 40 ms there and back.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use netaware_io::clock;
use netaware_lab::Side;
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_stream::{DualListener, DualStream, Options};
use netaware_testkit::lab;
use netaware_units::Span;

const STREAMS: u16 = 4451;
const PLAIN: u16 = 4452;
const ROUNDS: usize = 9;
/// Until a connection is there.
const PATIENCE: Span = Span::from_secs(20);

/// Until it is connected, and until one byte has come back.
fn timed<T: Read + Write>(connect: impl FnOnce() -> T) -> [Span; 2] {
    let began_at = clock::now();
    let mut stream = connect();
    let connected = clock::now() - began_at;
    stream.write_all(&[7]).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(byte, [7]);
    [connected, clock::now() - began_at]
}

fn echo(mut stream: impl Read + Write) {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    stream.write_all(&byte).unwrap();
    // Until the other end has read it.
    let _ = stream.read(&mut byte);
}

/// The median: the claim is about round trips, not about what a busy host adds to some of them.
fn typical(rounds: &[[Span; 2]]) -> [Span; 2] {
    [0, 1].map(|which| {
        let mut times: Vec<Span> = rounds.iter().map(|round| round[which]).collect();
        times.sort_unstable();
        times[times.len() / 2]
    })
}

#[test]
fn a_stream_is_there_one_round_trip_after_a_plain_connection_would_be() {
    if !permitted() {
        return;
    }
    let lab = lab::up("[[hop]]\nrate = \"50Mbit/s\"\ndelay = \"20ms\"\n", 1);
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let streams = lab
        .within(Side::B, || {
            DualListener::bind_to(&any.map(|ip| SocketAddr::new(ip, STREAMS)), Options::default())
        })
        .unwrap();
    let plain = lab.within(Side::B, || TcpListener::bind((Ipv6Addr::UNSPECIFIED, PLAIN))).unwrap();
    let at = |ip, port| SocketAddr::new(lab.address(Side::B, ip), port);
    let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(|ip| at(ip, STREAMS));
    let servers = thread::spawn(move || {
        for _ in 0..=ROUNDS {
            let (connection, _) = plain.accept().unwrap();
            connection.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
            echo(connection);
            echo(streams.accept_until(Some(clock::now() + PATIENCE)).unwrap().0);
        }
    });
    let (mut plains, mut duals) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        let address = at(IpVersion::V6, PLAIN);
        let connect = || Ok(timed(|| TcpStream::connect(address).unwrap()));
        plains.push(lab.within(Side::A, connect).unwrap());
        let connect = || Ok(timed(|| DualStream::connect_to("b", &[v6, v4], Options::default()).unwrap()));
        duals.push(lab.within(Side::A, connect).unwrap());
    }
    servers.join().unwrap();
    // The first ones resolve the neighbours.
    let (plain, dual) = (typical(&plains[1..]), typical(&duals[1..]));
    println!("connected and answered: plain {plain:?}, stream {dual:?}");
    // A plain connection is up after one round trip and answered after two.
    let round_trip = plain[0];
    assert!(round_trip >= Span::from_millis(40), "{round_trip}");
    for which in [0, 1] {
        let more = dual[which] - plain[which];
        assert!(more <= round_trip * 5 / 4, "{more} more, of a round trip of {round_trip}");
    }
    lab.end().unwrap();
}
