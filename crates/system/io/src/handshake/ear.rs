//! Hears answers to SYNs when they come in, before TCP does.
//!
//! A raw socket is given a copy of each segment that comes from its peer, with the kernel's stamp.
//! So what is timed does not hold the wait until the program has a core again, which may be longer
//! than the path. Nothing is sent through it.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use netaware_units::{Mono, Span};
use netaware_wire::icmp::behind_ipv4;
use socket2::{Domain, Protocol, Socket, Type};

use crate::ancillary::{ClockPair, RealTime};
use crate::clock;
use crate::hop_socket::{Queue, receive, set};
use crate::zone::ZonedIp;

/// Open for one host, over all of its ports.
#[derive(Debug)]
pub struct AnswerEar {
    socket: Socket,
    is_v4: bool,
    clocks: RealTime,
    opened_at: Mono,
}

impl AnswerEar {
    /// Listens for segments of this host.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or without a way to the host.
    pub fn open(host: ZonedIp) -> io::Result<Self> {
        let at = host.at(0);
        let socket = Socket::new(Domain::for_address(at), Type::RAW, Some(Protocol::TCP))?;
        socket.connect(&at.into())?;
        ask_for_stamps(socket.as_raw_fd())?;
        await_stamps();
        hear_nothing_but_answers(&socket, at.is_ipv4())?;
        Ok(Self { socket, is_v4: at.is_ipv4(), clocks: RealTime::start(), opened_at: clock::now() })
    }

    /// When the first answer to a SYN between these ports came, after `since`. All that was heard
    /// is forgotten.
    pub(super) fn answer(&mut self, theirs: u16, ours: u16, since: Mono) -> Option<Mono> {
        let mut first = None;
        let mut bytes = [0; LARGEST_HEADERS];
        for _ in 0..MOST_SEGMENTS {
            let Ok((len, told)) = receive(self.socket.as_raw_fd(), &mut bytes, Queue::Arrivals) else {
                break;
            };
            let at = self.clocks.map_or_application(told.stamp, ClockPair::read(), self.opened_at).at;
            let packet = bytes.get(..len).unwrap_or_default();
            let segment = if self.is_v4 { behind_ipv4(packet) } else { Some(packet) };
            let is_it = segment.is_some_and(|segment| is_answer(segment, theirs, ours));
            if is_it && told.stamp.is_some() && at >= since && first.is_none() {
                first = Some(at);
            }
        }
        first
    }
}

fn ask_for_stamps(socket: RawFd) -> io::Result<()> {
    let stamps = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &stamps)
}

/// Waits until the kernel stamps what comes in. It begins some time after the first socket of the
/// system has asked for it (`net_enable_timestamp` leaves that to a worker), and an answer on a
/// short path would come before.
fn await_stamps() {
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else { return };
    let is_ready = socket.local_addr().and_then(|here| socket.connect(here));
    if is_ready.and_then(|()| ask_for_stamps(socket.as_raw_fd())).is_err() {
        return;
    }
    for _ in 0..MAX_STAMP_CHECKS {
        let heard = socket.send(&[0]).and_then(|_| receive(socket.as_raw_fd(), &mut [0], Queue::Arrivals));
        match heard {
            Ok((_, told)) if told.stamp.is_none() => clock::sleep(Span::from_micros(200)),
            _ => return,
        }
    }
}

/// Keeps out every segment that has neither SYN nor RST: the data of other connections to the same
/// host would fill the socket's buffer, and then the answer would find no room.
fn hear_nothing_but_answers(socket: &Socket, is_v4: bool) -> io::Result<()> {
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    // A raw socket of IPv4 is given the IP header too, one of IPv6 is not.
    let flags: &[libc::sock_filter] = if is_v4 {
        &[
            step(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0),
            step(libc::BPF_LD | libc::BPF_B | libc::BPF_IND, 0, FLAGS_AT),
        ]
    } else {
        &[step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, FLAGS_AT)]
    };
    let verdict = [
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, u32::from(SYN | RST)),
        step(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let mut program = [flags, &verdict].concat();
    let length = program.len() as u16;
    let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Whether a segment of these ports is a RST or a SYN with an acknowledgement (RFC 9293 §3.1).
fn is_answer(segment: &[u8], theirs: u16, ours: u16) -> bool {
    let Some(head) = segment.first_chunk::<20>() else { return false };
    let ports = (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]));
    ports == (theirs, ours) && (head[13] & RST != 0 || head[13] & (SYN | ACK) == SYN | ACK)
}

/// At 200 us each: the wait for the kernel's stamps ends after about 30 ms.
const MAX_STAMP_CHECKS: usize = 100;
/// Offset of the flags in a TCP header, bytes.
const FLAGS_AT: u32 = 13;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// IP's and TCP's; the rest of a segment is cut off.
const LARGEST_HEADERS: usize = 120;
/// Bounds what other connections to the same host cost.
const MOST_SEGMENTS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(theirs: u16, ours: u16, flags: u8) -> Vec<u8> {
        let mut bytes = vec![0; 20];
        bytes[..2].copy_from_slice(&theirs.to_be_bytes());
        bytes[2..4].copy_from_slice(&ours.to_be_bytes());
        bytes[13] = flags;
        bytes
    }

    #[test]
    fn only_answers_between_the_two_ports_count() {
        for (ports, flags, want) in [
            ((80, 4000), RST | ACK, true),
            ((80, 4000), RST, true),
            ((80, 4000), SYN | ACK, true),
            ((80, 4000), SYN, false),
            ((80, 4000), ACK, false),
            ((80, 4001), RST | ACK, false),
            ((81, 4000), RST | ACK, false),
        ] {
            assert_eq!(is_answer(&segment(ports.0, ports.1, flags), 80, 4000), want, "{ports:?} {flags:#x}");
        }
        for len in 0..20 {
            assert!(!is_answer(&segment(80, 4000, RST)[..len], 80, 4000));
        }
    }
}
