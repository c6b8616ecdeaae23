//! The constant delay that a lab adds, to some microseconds.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use netaware_io::{clock, thread};
use netaware_lab::{Lab, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_units::Span;

use crate::ground::{VERSIONS, believed, scenario};

/// What the issue of the lab asks for, of the emulator's report and of the delay alike.
const BOUND: Span = Span::from_micros(20);
const PAYLOAD: usize = 172;
const PACKETS: usize = 300;

#[test]
fn constant_delay_is_right_to_twenty_microseconds() {
    if !permitted() {
        return;
    }
    let rows = [
        ("one hop of 5 ms", "[[hop]]\nrate = '1Gbit/s'\ndelay = '5ms'\n"),
        ("serialisation", "[[hop]]\nrate = '10Mbit/s'\ndelay = '1ms'\n"),
        (
            "three hops",
            "[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n[[hop]]\nrate = '100Mbit/s'\ndelay = '4ms'\n[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n",
        ),
    ];
    for (name, text) in rows {
        let path = scenario(text);
        for (version, from) in VERSIONS.into_iter().zip([Side::A, Side::B]) {
            let truth = path.base_delay(from, version, PAYLOAD as u32 + 8 + version.header_len()).unwrap();
            let (delays, report) = believed("acc-delay", &path, BOUND, |lab| one_way(lab, version, from));
            let [least, half] = [delays[0], delays[delays.len() / 2]].map(|delay| delay - truth);
            println!(
                "{name}, {} from {from:?}: {truth} and {least} (least), {half} (half); {report}",
                version.name()
            );
            assert!(least >= Span::ZERO, "{name}: {least} too early; {report}");
            assert!(half <= BOUND, "{name}: {half} too late; {report}");
        }
    }
}

/// Delays from before `send` to after `recv`, ascending. One thread does both and never sleeps, so no wake-up is in them but
/// the two system calls and the kernel's way between a socket and a TUN device are.
fn one_way(lab: &Lab, version: IpVersion, from: Side) -> Vec<Span> {
    let socket = |side| {
        let socket = lab.within(side, || UdpSocket::bind((lab.address(side, version), 7))).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let (near, far) = (socket(from), socket(from.other()));
    let target = SocketAddr::from((lab.address(from.other(), version), 7));
    let measured = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            // The emulator has the last core.
            let _ = thread::pin(0);
            (0..PACKETS).map(|_| once(&near, &far, target)).collect::<io::Result<Vec<Span>>>()
        });
        work.join().unwrap()
    });
    let mut delays = measured.unwrap();
    delays.sort_unstable();
    delays
}

fn once(near: &UdpSocket, far: &UdpSocket, target: SocketAddr) -> io::Result<Span> {
    let begin = clock::now();
    near.send_to(&[7; PAYLOAD], target)?;
    let mut buffer = [0; 2 * PAYLOAD];
    loop {
        match far.recv(&mut buffer) {
            Ok(_) => return Ok(clock::now() - begin),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if clock::now() - begin > Span::from_secs(1) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
}
